"""Builds the hooks' jar with Maven.

The project in ``java/`` compiles against the Hive version in its property ``hive.version`` and
leaves exactly one jar to install in ``target/``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

Progress = Callable[[str], None]

PROJECT = Path(__file__).with_name("java")
_HOME = Path(__file__).parent
# Beside this package; in a wheel both names have an underscore in front.
CLIENT = _HOME.with_name(_HOME.name.replace("hive_hooks", "jvm_client")) / "java"
# Hive versions to compile against, the default first. 4.0.1 is tested in a HiveServer2.
VERSIONS = ("4.0.1", "3.1.3", "2.3.10")
_NOT_TO_INSTALL = ("-sources.jar", "-javadoc.jar", "-tests.jar")


class BuildFailed(RuntimeError):
    """The jar could not be built. The message has the compiler's output."""


class MavenMissing(BuildFailed):
    """There is no ``mvn`` on the path."""


def jar_name(hive_version: str) -> str:
    """The jar's file name, from which ``doctor`` reads its Hive version."""
    return f"skipbridge-hive-{hive_version}.jar"


def build(
    out_dir: Path,
    java_home: Path,
    hive_version: str = VERSIONS[0],
    progress: Progress = lambda _: None,
) -> Path:
    """Compiles the hooks against a Hive version and copies the jar to a directory.

    Raises:
        MavenMissing, BuildFailed.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise MavenMissing("mvn is not on the path")
    progress(f"building with Maven against Hive {hive_version}: the first build downloads its jars")
    with tempfile.TemporaryDirectory(prefix="skipbridge-hive-") as temporary:
        project = Path(temporary) / "java"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("target"))
        done = subprocess.run(
            [
                maven,
                "-q",
                "-B",
                "-Dmaven.test.skip=true",
                f"-Dhive.version={hive_version}",
                f"-Dclient.sources={CLIENT}",
                "package",
            ],
            cwd=project,
            env={**os.environ, "JAVA_HOME": str(java_home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            output = (done.stdout + done.stderr).strip().splitlines()
            raise BuildFailed("\n".join(["the build failed:", *output[-40:]]))
        jars = [
            jar
            for jar in sorted((project / "target").glob("*.jar"))
            if not jar.name.endswith(_NOT_TO_INSTALL) and not jar.name.startswith("original-")
        ]
        if len(jars) != 1:
            names = ", ".join(jar.name for jar in jars) or "none"
            raise BuildFailed(f"the build left not one jar to install: {names}")
        out_dir.mkdir(parents=True, exist_ok=True)
        target = out_dir / jar_name(hive_version)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(jars[0], draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    progress(f"built {target}")
    return target
