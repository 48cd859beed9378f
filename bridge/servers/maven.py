"""Downloads files from Maven repositories with the installed ``mvn`` and its settings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import platformdirs

from bridge.kernel.errors import EnvironmentMissing, ExternalError

_DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_TIMEOUT = 1800.0


class ArtifactUnavailable(ExternalError):
    """Maven could not download a file."""

    code = "ARTIFACT_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Artifact:
    """The coordinates of one file.

    Attributes:
        exclusions: ``group:artifact`` of excluded dependencies; ``*`` matches any.
    """

    group: str
    name: str
    version: str
    type: str = "jar"
    classifier: str = ""
    exclusions: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.group, self.name, self.version]
        if self.type != "jar" or self.classifier:
            parts.append(self.type)
        if self.classifier:
            parts.append(self.classifier)
        return ":".join(parts)

    @property
    def file_name(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.type}"


def parse_artifact(text: str, *exclusions: str) -> Artifact:
    """Parses ``group:artifact:version[:type[:classifier]]``."""
    parts = text.split(":")
    if not 3 <= len(parts) <= 5 or not all(parts):
        raise ValueError(f"not Maven coordinates: {text!r}")
    group, name, version = parts[:3]
    kind, classifier = ([*parts[3:], "", ""])[:2]
    return Artifact(group, name, version, kind or "jar", classifier, exclusions)


def cache_directory() -> Path:
    """The cache directory of unpacked servers and class paths."""
    return Path(platformdirs.user_cache_dir("skipbridge"))


def artifact_file(artifact: Artifact) -> Path:
    """The file of one artifact in the local repository, without its dependencies.

    Errors:
        EnvironmentMissing: there is no ``mvn``.
        ArtifactUnavailable: Maven cannot download it.
    """
    file = _local_file(artifact)
    if not file.is_file():
        run_maven(f"{_DEPENDENCY_PLUGIN}:get", f"-Dartifact={artifact}", "-Dtransitive=false")
    if not file.is_file():
        raise ArtifactUnavailable(
            f"Maven reported success, but there is no {file}",
            "if mvn keeps its repository elsewhere, set SKIPBRIDGE_MAVEN_REPOSITORY to it",
        )
    return file


def bytes_here(artifact: Artifact) -> int:
    """The bytes of an artifact in the local repository, also while Maven downloads it."""
    file = _local_file(artifact)
    return max((part.stat().st_size for part in file.parent.glob(f"{file.name}*")), default=0)


def class_path(*artifacts: Artifact) -> tuple[Path, ...]:
    """The jars of these artifacts and their run-time dependencies, in Maven's order.

    The list is cached under a digest of the coordinates. Maven runs again only if a jar is missing.
    """
    pom = _pom(artifacts)
    digest = hashlib.sha256(pom.encode()).hexdigest()[:16]
    kept = (
        cache_directory() / "classpath" / f"{artifacts[0].name}-{artifacts[0].version}-{digest}.txt"
    )
    with contextlib.suppress(FileNotFoundError):
        jars = tuple(Path(line) for line in kept.read_text("utf-8").splitlines())
        if jars and all(jar.is_file() for jar in jars):
            return jars
    with tempfile.TemporaryDirectory(prefix="skipbridge-pom-") as directory:
        file, out = Path(directory) / "pom.xml", Path(directory) / "classpath.txt"
        file.write_text(pom, "utf-8")
        run_maven(
            "-f",
            str(file),
            f"{_DEPENDENCY_PLUGIN}:build-classpath",
            "-DincludeScope=runtime",
            f"-Dmdep.outputFile={out}",
        )
        jars = tuple(Path(p) for p in out.read_text("utf-8").strip().split(os.pathsep))
    build_once(kept, lambda target: target.write_text("\n".join(map(str, jars)), "utf-8"))
    return jars


def run_maven(*arguments: str) -> None:
    """Runs Maven. Errors: EnvironmentMissing without ``mvn``; ArtifactUnavailable if it fails."""
    program = shutil.which("mvn")
    if program is None:
        raise EnvironmentMissing(
            "mvn is not on the path", "install Maven 3.8 or newer (https://maven.apache.org)"
        )
    try:
        done = subprocess.run(
            [program, "-B", "-q", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ArtifactUnavailable(
            f"mvn took longer than {_TIMEOUT:.0f} s", "check the connection to its repositories"
        ) from error
    if done.returncode != 0:
        said = [_COLOURS.sub("", line) for line in done.stdout.splitlines() if "ERROR" in line]
        raise ArtifactUnavailable(
            f"mvn {' '.join(arguments)} failed: {said[0] if said else done.stderr.strip()}",
            "check the connection and the repositories in Maven's settings.xml",
        )


def build_once(target: Path, build: Callable[[Path], object]) -> Path:
    """Builds a file or directory under a temporary name and moves it into place atomically.

    An interrupted build leaves nothing that looks finished. Of two concurrent builders one wins.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        build(workplace / "new")
        try:
            (workplace / "new").rename(target)
        except OSError:
            if not target.exists():  # otherwise another process built the same content first
                raise
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return target


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def _local_file(artifact: Artifact) -> Path:
    group = artifact.group.replace(".", "/")
    return _local_repository() / group / artifact.name / artifact.version / artifact.file_name


def _local_repository() -> Path:
    if named := os.environ.get("SKIPBRIDGE_MAVEN_REPOSITORY"):
        return Path(named)
    settings = Path("~/.m2/settings.xml").expanduser()
    if settings.is_file():
        text = settings.read_text("utf-8", errors="replace")
        found = re.search(r"<localRepository>\s*([^<]+?)\s*</localRepository>", text)
        if found:
            return Path(found[1].replace("${user.home}", str(Path.home()))).expanduser()
    return Path("~/.m2/repository").expanduser()


def _pom(artifacts: tuple[Artifact, ...]) -> str:
    dependencies = "".join(_dependency(a) for a in artifacts)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>io.skipbridge</groupId><artifactId>classpath</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
    )


def _dependency(artifact: Artifact) -> str:
    exclusions = "".join(
        "<exclusion>"
        f"<groupId>{escape(e.partition(':')[0])}</groupId>"
        f"<artifactId>{escape(e.partition(':')[2])}</artifactId>"
        "</exclusion>"
        for e in artifact.exclusions
    )
    classifier = (
        f"<classifier>{escape(artifact.classifier)}</classifier>" if artifact.classifier else ""
    )
    return (
        f"<dependency><groupId>{escape(artifact.group)}</groupId>"
        f"<artifactId>{escape(artifact.name)}</artifactId>"
        f"<version>{escape(artifact.version)}</version><type>{escape(artifact.type)}</type>"
        f"{classifier}<exclusions>{exclusions}</exclusions></dependency>"
    )
