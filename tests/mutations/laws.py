"""How a law is asked in a copy of the sources, under a seed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

from bridge.servers.java import find_jdk

_TIMEOUT = 900
_FAILED = re.compile(r"^FAILED (?:\S*/)?(\S+?\.py::\S+)", re.MULTILINE)
# The same sources give the same jar.
_MAVEN = ("mvn", "-q", "-B", "-Dproject.build.outputTimestamp=2024-01-01T00:00:00Z")


class LawFailed(Exception):
    """A law could not be asked at all: the copy does not build, or its tests do not start."""


class Law(Protocol):
    """A test of ``make test`` that draws its examples at random."""

    def prepare(self, copy: Path) -> str:
        """Builds what is tested, and tells what was built; empty for sources that run as they are.

        Errors:
            LawFailed: it does not build.
        """

    def broken(self, copy: Path, seed: int) -> list[str]:
        """The tests that fail in the copy under a seed.

        Errors:
            LawFailed: no test failed, and they did not pass either.
        """

    def places(self) -> list[tuple[str, str]]:
        """Each test's file, and a text that it must have."""


@dataclass(frozen=True, slots=True)
class Python:
    """Tests of pytest, by their ids without parameters."""

    tests: tuple[str, ...]

    def prepare(self, copy: Path) -> str:
        found = _run([sys.executable, "-c", "import bridge; print(bridge.__file__)"], copy)
        if not Path(found.stdout.strip()).is_relative_to(copy):
            raise LawFailed(f"the copy would test {found.stdout.strip()}")
        return ""

    def broken(self, copy: Path, seed: int) -> list[str]:
        shutil.rmtree(copy / ".hypothesis", ignore_errors=True)  # examples of the seed before
        options = ["-q", "-x", "-rf", "--tb=line", "-p", "no:cacheprovider"]
        options += ["-p", "tests.mutations.unshrunk", "--tier=fast", f"--seed={seed}"]
        options.append(f"--basetemp={copy / 'tmp'}")
        found = _run([sys.executable, "-m", "pytest", *options, *self.tests], copy)
        failed = _FAILED.findall(found.stdout)
        if found.returncode != bool(failed):
            raise LawFailed(f"pytest ended with {found.returncode}\n{found.stdout[-2000:]}")
        return failed

    def places(self) -> list[tuple[str, str]]:
        named = [test.partition("::") for test in self.tests]
        return [(file, f"def {name}(") for file, _, name in named]


@dataclass(frozen=True, slots=True)
class Java:
    """A JUnit class of a Maven project, which takes its seed from the property skipbridge.seed.

    Attributes:
        jar: in the project.
        jdk: its oldest and newest version; 0 for any newer.
    """

    project: str
    test: str
    jar: str
    jdk: tuple[int, int]

    def prepare(self, copy: Path) -> str:
        project = copy / self.project
        found = self._maven(project, "clean", "package", "-DskipTests")
        if found.returncode:
            raise LawFailed(f"{self.project} does not build\n{found.stdout[-2000:]}")
        digest = hashlib.sha256()
        with zipfile.ZipFile(project / self.jar) as jar:
            for name in sorted(jar.namelist()):
                digest.update(name.encode() + jar.read(name))
        return f"{Path(self.jar).name} {digest.hexdigest()[:12]}"

    def broken(self, copy: Path, seed: int) -> list[str]:
        reports = copy / self.project / "target" / "surefire-reports"
        shutil.rmtree(reports, ignore_errors=True)
        told = (f"-Dtest={self.test}", f"-Dskipbridge.seed={seed}")
        found = self._maven(copy / self.project, "surefire:test", *told)
        failed = []
        for report in reports.glob("TEST-*.xml"):
            for case in ElementTree.parse(report).iter("testcase"):
                if case.find("failure") is not None:
                    failed.append(f"{self.test}.{case.get('name')}")
        if bool(found.returncode) != bool(failed):
            raise LawFailed(f"Maven ended with {found.returncode}\n{found.stdout[-2000:]}")
        return failed

    def places(self) -> list[tuple[str, str]]:
        named = Path(self.jar).name.rpartition("-")[0]
        return [
            (self._source(), '"skipbridge.seed"'),
            (f"{self.project}/pom.xml", f"<artifactId>{named}</artifactId>"),
        ]

    def _source(self) -> str:
        root = Path(__file__).parents[2]
        (found,) = (root / self.project / "src/test").rglob(f"{self.test}.java")
        return str(found.relative_to(root))

    def _maven(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        home = find_jdk(self.jdk[0], self.jdk[1] or None).home
        return _run([*_MAVEN, *arguments], project, JAVA_HOME=str(home))


def _run(
    command: list[str], directory: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in the copy; everything that it prints is in ``stdout``."""
    path = {"PYTHONPATH": str(directory)} if command[0] == sys.executable else {}
    try:
        return subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise LawFailed(f"{command[0]} took longer than {_TIMEOUT} seconds") from None
