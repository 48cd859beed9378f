"""Finds a suitable JDK for a server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bridge.kernel.errors import EnvironmentMissing

# The options that Spark passes to its JVMs, because Java 17 encapsulates its internals. Hive and
# DataNucleus use reflection on the same packages.
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
ADD_OPENS: tuple[str, ...] = tuple(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in _OPENED)

_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_PRINTED = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Jdk:
    """An installed JDK: its home and its feature version, such as 17."""

    home: Path
    version: int

    @property
    def java(self) -> str:
        return str(self.home / "bin" / "java")

    @property
    def javac(self) -> str:
        return str(self.home / "bin" / "javac")


def find_jdk(minimum: int, maximum: int | None = None) -> Jdk:
    """The first JDK from ``minimum`` to ``maximum`` (inclusive; no maximum by default).

    Searches ``SKIPBRIDGE_JDK<minimum>``, ``JAVA_HOME``, the ``java`` on the path, and then the
    system's JDK directories, oldest version first.

    Errors:
        EnvironmentMissing: there is none. The message lists the JDKs found.
    """
    seen: list[Jdk] = []
    for home in _candidates(minimum):
        jdk = inspect_jdk(home)
        if jdk is None or jdk in seen:
            continue
        seen.append(jdk)
    named = os.environ.get(f"SKIPBRIDGE_JDK{minimum}")
    fitting = [
        j for j in seen if j.version >= minimum and (maximum is None or j.version <= maximum)
    ]
    if named and (not fitting or fitting[0].home != Path(named).resolve()):
        raise EnvironmentMissing(
            f"SKIPBRIDGE_JDK{minimum} is {named}, not a JDK of version {_range(minimum, maximum)}",
            "point it at the home directory of such a JDK, or unset it",
        )
    if not fitting:
        found = ", ".join(f"{j.version} in {j.home}" for j in seen) or "none"
        raise EnvironmentMissing(
            f"no JDK of version {_range(minimum, maximum)}; found: {found}",
            "install one (https://adoptium.net) and set "
            f"SKIPBRIDGE_JDK{minimum} or JAVA_HOME to its home directory",
        )
    return fitting[0]


@cache
def inspect_jdk(home: Path) -> Jdk | None:
    """The JDK in this home directory; None if there is no compiler or its version is unknown."""
    home = home.resolve()
    if not os.access(home / "bin" / "javac", os.X_OK):
        return None
    release = home / "release"
    if release.is_file():
        match = _VERSION.search(release.read_text("utf-8", errors="replace"))
    else:
        shown = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=False
        )
        match = _PRINTED.search(shown.stderr)
    return Jdk(home, int(match[1])) if match else None


def _candidates(minimum: int) -> Iterator[Path]:
    homes = [Path(v) for n in (f"SKIPBRIDGE_JDK{minimum}", "JAVA_HOME") if (v := os.environ.get(n))]
    if program := shutil.which("java"):
        homes.append(Path(program).resolve().parent.parent)
    yield from homes
    # JDKs are installed side by side, so look beside the one on the path.
    places = [home.parent for home in homes] + [
        base for text in _PLACES if (base := Path(text).expanduser())
    ]
    neighbours = [entry for place in places if place.is_dir() for entry in place.iterdir()]
    neighbours += [entry / "Contents" / "Home" for entry in neighbours]
    known = {jdk for home in neighbours if (jdk := inspect_jdk(home))}
    yield from (jdk.home for jdk in sorted(known, key=lambda j: (j.version, str(j.home))))


_PLACES = (
    "/opt",
    "/opt/java",
    "/usr/java",
    "/Library/Java/JavaVirtualMachines",
    "~/.sdkman/candidates/java",
    "~/.jdks",
)


def _range(minimum: int, maximum: int | None) -> str:
    if maximum is None:
        return f"{minimum} or newer"
    return str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
