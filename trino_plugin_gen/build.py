"""Builds the connector into a plugin directory: by Maven, or by javac from an installed server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatch
from pathlib import Path

from .generate import DEFAULT_NAME, DEFAULT_PACKAGE, generate, write
from .versions import (
    HIVE,
    HIVE_CLASSES,
    NEEDED,
    NEEDED_FILE_SYSTEMS,
    NEEDED_FORMATS,
    PROVIDED,
    STORES,
    Target,
    target,
)

Progress = Callable[[str], None]


class BuildFailed(RuntimeError):
    """The connector could not be built; says what was missing or what the compiler said."""


def build(
    version: int,
    out_dir: Path,
    java_home: Path,
    from_server: Path | None = None,
    connector_name: str = DEFAULT_NAME,
    package: str = DEFAULT_PACKAGE,
    progress: Progress = lambda _: None,
    stores: Collection[str] = (),
    hudi: bool = False,
    hive: bool = False,
) -> Path:
    """Builds the connector.

    Args:
        version: Trino release, one of `versions.supported()`.
        out_dir: where the plugin directory is made; an earlier one of the same name is replaced.
        java_home: a JDK of the release's Java version or later.
        from_server: an installed Trino server of that release with its hive plugin. Given, nothing
            is downloaded and Maven is not used: the server's own jars are compiled against and
            copied.
        connector_name: what `connector.name` of a catalog will say; also the directory's name.
        package: Java package of the connector.
        progress: called with a line for each step.
        stores: of `versions.STORES`, besides S3 and local files.
        hudi: adds Hudi's reader, which merges logs into base files. It comes from Maven alone.
        hive: adds Trino's hive connector whole, with all of its stores. Of 476 it comes from a
            server, of later releases from Maven, without HDFS.

    Returns:
        The plugin directory: copy or link it into the server's `plugin/`.

    Raises:
        UnsupportedVersion, InvalidName: see `generate`.
        BuildFailed: JDK or Maven missing or too old, the server not of the release, or an error
            of the compiler.
    """
    chosen = target(version)
    if unknown := sorted(set(stores) - set(STORES)):
        raise BuildFailed(f"no store {unknown[0]}: known are {', '.join(STORES)}")
    if hudi and from_server is not None:
        raise BuildFailed("Hudi's reader is built by Maven only: leave out the server or Hudi")
    if hive and chosen.from_server and from_server is None:
        raise BuildFailed(f"the hive connector is built from an installed Trino {version}: name it")
    _require_java(java_home, chosen.java_release)
    out_dir.mkdir(parents=True, exist_ok=True)  # now, and not after minutes
    progress(f"generating the connector for Trino {version}")
    files = generate(version, package, connector_name)
    plugin = out_dir / connector_name
    with tempfile.TemporaryDirectory(prefix="skipbridge-plugin-") as temporary:
        project = Path(temporary)
        write(files, project)
        if from_server is None:
            built = _maven(project, java_home, stores, progress, hive)
            if hudi:
                _maven_hudi(project, chosen, java_home, progress)
        else:
            built = _javac(project, chosen, java_home, from_server, stores, progress, hive)
        _replace(plugin, built)
    progress(f"built {plugin}: {len(list(plugin.rglob('*.jar')))} jars")
    return plugin


def require_server(version: int, server: Path) -> None:
    """Raises BuildFailed where the connector cannot be compiled against an installed server."""
    _server_jars(server, target(version), ())


def _require_java(java_home: Path, release: int) -> None:
    javac = java_home / "bin" / "javac"
    if not javac.is_file():
        raise BuildFailed(f"{java_home} is not a JDK: no bin/javac. Install JDK {release} or later")
    output = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r"javac (\d+)", output.stdout + output.stderr)
    if found is None or int(found[1]) < release:
        version = found[1] if found else "unknown"
        raise BuildFailed(f"{java_home} is JDK {version}: this Trino needs JDK {release} or later")


def _maven(
    project: Path, java_home: Path, stores: Collection[str], progress: Progress, hive: bool
) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildFailed("Maven (mvn) is not installed; install it, or build from a server")
    size = 400 if hive else 100
    progress(f"building with Maven: the first build downloads about {size} MB")
    environment = {"JAVA_HOME": str(java_home)}
    profiles = sorted({*STORES, "hive"} if hive else set(stores))
    profiles = [name for name in profiles if name != "hdfs"]
    command: list[str | Path] = [maven, "-q", "-B", *(f"-P{name}" for name in profiles)]
    _run([*command, "-DskipTests", "package"], project, environment)
    if "hdfs" in stores:
        progress("fetching Hadoop's client with Maven: about 100 MB")
        _run([maven, "-q", "-B", "-f", "hdfs/pom.xml", "package"], project, environment)
    return project / "target" / "plugin"


def _maven_hudi(project: Path, chosen: Target, java_home: Path, progress: Progress) -> None:
    """Adds Hudi's reader to a plugin that `_maven` built, in a directory of its own."""
    progress("building Hudi's reader with Maven: about 12 MB")
    command: list[str | Path] = ["mvn", "-q", "-B", "-f", "hudi/pom.xml", "-DskipTests"]
    release = f"-Dmaven.compiler.release={chosen.java_release}"
    _run([*command, release, "package"], project, {"JAVA_HOME": str(java_home)})


def _javac(
    project: Path,
    chosen: Target,
    java_home: Path,
    server: Path,
    stores: Collection[str],
    progress: Progress,
    whole: bool,
) -> Path:
    stores = STORES if whole else stores
    shared, needed, [hive] = _server_jars(server, chosen, stores)
    progress("compiling against the server's own jars")
    classes = project / "target" / "classes"
    classes.mkdir(parents=True)
    folders = ("src/main/java", "src/client/java")
    sources = sorted(str(path) for each in folders for path in (project / each).rglob("*.java"))
    class_path = os.pathsep.join(str(jar) for jar in [*shared, *needed, hive])
    options = ["-proc:none", "-nowarn", "--release", str(chosen.java_release)]
    options += ["-d", str(classes), "-cp", class_path]
    arguments = project / "target" / "javac.args"
    arguments.write_text("\n".join(f'"{each}"' for each in options + sources), encoding="utf-8")
    _run([java_home / "bin" / "javac", f"@{arguments}"], project, {})
    shutil.copytree(project / "src/main/resources", classes, dirs_exist_ok=True)

    if whole:
        needed.append(hive)
    else:
        _unpack(hive, HIVE_CLASSES, classes)
    plugin = project / "target" / "plugin"
    plugin.mkdir()
    _jar(classes, plugin / "connector.jar")
    for jar in needed:
        _link(jar, plugin / jar.name)
    if "hdfs" in stores:
        (plugin / "hdfs").mkdir()
        for jar in (server / "plugin" / "hive" / "hdfs").glob("*.jar"):
            _link(jar, plugin / "hdfs" / jar.name)
    return plugin


def _link(jar: Path, copy: Path) -> None:
    """The same file under another name, which costs no space; a copy on another file system."""
    source = jar.resolve()
    try:
        os.link(source, copy)
    except OSError:
        shutil.copy2(source, copy)


def _server_jars(
    server: Path, chosen: Target, stores: Collection[str]
) -> tuple[list[Path], list[Path], list[Path]]:
    """The jars the server shares with plugins, those the connector takes from plugin/hive, and
    that of which it takes classes.
    """
    if not chosen.from_server:
        raise BuildFailed(f"the connector for Trino {chosen.version} is built by Maven only")
    spi = f"io.trino_trino-spi-{chosen.version}.jar"
    if not (server / "lib" / spi).is_file():
        raise BuildFailed(f"{server} is not a Trino {chosen.version} server: it has no lib/{spi}")
    hive = server / "plugin" / "hive"
    if "hdfs" in stores and not (hive / "hdfs").is_dir():
        raise BuildFailed(f"{hive} has no hdfs: the server's hive plugin is needed whole")
    needed = _find(hive, (*NEEDED, *NEEDED_FORMATS, *NEEDED_FILE_SYSTEMS))
    own = _find(hive, (HIVE,))
    if set(stores) - {"hdfs"}:
        # The clients of other clouds reach most of the plugin, but it must not register itself.
        left_out = {*own, *hive.glob("trino-hive-*-services.jar")}
        needed = [jar for jar in sorted(hive.glob("*.jar")) if jar not in left_out]
    return _find(server / "lib", PROVIDED), needed, own


def _find(folder: Path, names: Iterable[str]) -> list[Path]:
    jars = sorted(folder.glob("*.jar"))
    found = []
    for name in names:
        pattern = re.compile(rf"{re.escape(name)}-\d[\w.-]*\.jar")
        matching = [jar for jar in jars if pattern.fullmatch(jar.name)]
        if not matching:
            raise BuildFailed(f"{folder} has no {name}: the server's hive plugin is needed whole")
        found.extend(matching)
    return found


def _unpack(jar: Path, patterns: Iterable[str], directory: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class") and any(fnmatch(name, each) for each in patterns):
                archive.extract(name, directory)


def _jar(classes: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(classes.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(classes).as_posix())


def _run(command: list[str | Path], directory: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip().splitlines()
        raise BuildFailed("\n".join(["the build failed:", *output[-40:]]))


def _replace(plugin: Path, built: Path) -> None:
    """Puts a plugin whole in place of an earlier one, or leaves that as it was."""
    with tempfile.TemporaryDirectory(prefix=f".{plugin.name}-", dir=plugin.parent) as draft:
        whole = Path(draft) / plugin.name
        try:
            shutil.move(built, whole)
        except shutil.Error as error:  # names each file that another file system did not take
            first = error.args[0][0]
            raise BuildFailed(f"{plugin} cannot be written: {first[2]}") from error
        if plugin.exists():
            plugin.rename(Path(draft) / "earlier")
        whole.rename(plugin)
