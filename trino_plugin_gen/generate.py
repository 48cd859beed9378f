"""Makes a connector project from the template: overlays whole files, then renames whole tokens.

Law: generating the default release under the default names gives the template byte for byte, and
the sources that it shares with other JVM clients, which its pom then finds in the project itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .versions import DEFAULT, target

DEFAULT_PACKAGE = "io.skipbridge.trino"
DEFAULT_NAME = "skipbridge"

CLIENT_PACKAGE = "io.skipbridge.client"

_HOME = Path(__file__).parent
# Beside this package; in a wheel both names have an underscore in front.
CLIENT = _HOME.with_name(_HOME.name.replace("trino_plugin_gen", "jvm_client")) / "java"
_CLIENT_HERE = "src/client/java"
_PACKAGE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_LEFT_OUT = frozenset({"target", ".idea", ".settings", "__pycache__"})
_TEXT = frozenset({".java", ".xml", ".json", ".md", ".properties", ".interceptors", ""})


class InvalidName(ValueError):
    """A package or connector name that Java or Trino would not take."""


def generate(
    version: int = DEFAULT,
    package: str = DEFAULT_PACKAGE,
    connector_name: str = DEFAULT_NAME,
) -> dict[str, bytes]:
    """The project's files by their path below its root.

    Args:
        version: Trino release, one of `versions.supported()`.
        package: Java package in place of `io.skipbridge.trino`; the shared sources move below it.
        connector_name: what `connector.name` of a catalog will say.

    Raises:
        UnsupportedVersion: no template for the release.
        InvalidName: the package or the name is not one.
    """
    chosen = target(version)
    if not _PACKAGE.fullmatch(package):
        raise InvalidName(f"'{package}' is not a Java package of at least two lower-case parts")
    if not _NAME.fullmatch(connector_name):
        raise InvalidName(
            f"'{connector_name}' is not a name of lower-case letters, digits, - and _"
        )
    files = dict(_files(_HOME / "template"))
    files |= {f"{_CLIENT_HERE}/{path}": data for path, data in _files(CLIENT)}
    for overlay in chosen.overlays:
        files |= _files(_HOME / "overlay" / overlay)
    renamed = dict(_rename(files, package, connector_name))
    return {path: _pin(path, data, version) for path, data in sorted(renamed.items())}


def write(files: dict[str, bytes], directory: Path) -> None:
    """Writes a generated project; a file that is the same already keeps its time."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not _LEFT_OUT.intersection(relative.parts):
            yield relative.as_posix(), path.read_bytes()


def _rename(
    files: dict[str, bytes], package: str, connector_name: str
) -> Iterator[tuple[str, bytes]]:
    client = CLIENT_PACKAGE if package == DEFAULT_PACKAGE else f"{package}.client"
    packages = ((DEFAULT_PACKAGE, package), (CLIENT_PACKAGE, client))
    for path, data in files.items():
        new, renamed = data, path
        if Path(path).suffix in _TEXT or "META-INF/services" in path:
            for before, after in packages:
                new = _replace(new, before, after)
            if path.endswith("/ConnectorName.java"):
                new = _replace(new, f'"{DEFAULT_NAME}"', f'"{connector_name}"')
            if Path(path).name == "pom.xml":
                group = package.rpartition(".")[0]
                new = _replace(new, "<groupId>io.skipbridge<", f"<groupId>{group}<")
                new = _replace(new, f">trino-{DEFAULT_NAME}", f">trino-{connector_name}")
        for before, after in packages:
            folders = before.replace(".", "/") + "/", after.replace(".", "/") + "/"
            renamed = renamed.replace(*folders).replace(before, after)
        yield renamed, new


def _replace(data: bytes, old: str, new: str) -> bytes:
    return data if old == new else data.replace(old.encode(), new.encode())


def _pin(path: str, data: bytes, version: int) -> bytes:
    if Path(path).name != "pom.xml":
        return data
    data = re.sub(
        rb"<client\.sources>.*</client\.sources>",
        f"<client.sources>{_CLIENT_HERE}</client.sources>".encode(),
        data,
    )
    return re.sub(
        rb"<trino\.version>\d+</trino\.version>",
        f"<trino.version>{version}</trino.version>".encode(),
        data,
    )
