from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.errors import EnvironmentMissing
from bridge.servers import maven
from bridge.servers.maven import (
    Artifact,
    ArtifactUnavailable,
    artifact_file,
    build_once,
    class_path,
    parse_artifact,
)

FAKE = """#!/bin/sh
echo run >> {calls}
for argument in "$@"; do case "$argument" in
  -Dmdep.outputFile=*) printf '%s:%s' {jar} {jar} > "${{argument#*=}}" ;;
esac; done
{end}
"""


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven that writes down its runs and answers with one jar."""
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mvn"
    program.write_text(FAKE.format(calls=tmp_path / "calls", jar=jar, end=""))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.setenv("SKIPBRIDGE_MAVEN_REPOSITORY", str(tmp_path / "repository"))
    monkeypatch.setattr(maven, "cache_directory", lambda: tmp_path / "cache")
    return tmp_path


def test_coordinates() -> None:
    assert parse_artifact("g:a:1") == Artifact("g", "a", "1")
    tar = parse_artifact("g.h:a:1:tar.gz:bin")
    assert (tar.type, tar.classifier, tar.file_name) == ("tar.gz", "bin", "a-1-bin.tar.gz")
    assert str(tar) == "g.h:a:1:tar.gz:bin"
    with pytest.raises(ValueError, match="not Maven coordinates"):
        parse_artifact("g:a")


def test_a_class_path_is_resolved_once(mvn: Path) -> None:
    artifact = Artifact("g", "a", "1", exclusions=("x:*",))
    first = class_path(artifact)
    assert first == (mvn / "a.jar", mvn / "a.jar")
    assert class_path(artifact) == first
    assert (mvn / "calls").read_text() == "run\n"
    class_path(Artifact("g", "a", "1"))  # other exclusions, another class path
    assert (mvn / "calls").read_text() == "run\nrun\n"


def test_a_file_that_is_there_needs_no_maven(mvn: Path) -> None:
    file = mvn / "repository" / "g" / "h" / "a" / "1" / "a-1.jar"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    assert artifact_file(Artifact("g.h", "a", "1")) == file
    assert not (mvn / "calls").exists()
    with pytest.raises(ArtifactUnavailable, match="there is no"):
        artifact_file(Artifact("g.h", "a", "2"))


def test_maven_fails_or_is_missing(mvn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = mvn / "bin" / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] Could not find artifact g:a'\nexit 1\n")
    with pytest.raises(ArtifactUnavailable, match="Could not find artifact"):
        class_path(Artifact("g", "a", "1"))
    monkeypatch.setenv("PATH", str(mvn))
    with pytest.raises(EnvironmentMissing, match="mvn is not on the path"):
        class_path(Artifact("g", "a", "1"))


def test_what_was_interrupted_does_not_look_finished(tmp_path: Path) -> None:
    target = tmp_path / "server"

    def half(place: Path) -> None:
        place.mkdir()
        (place / "first").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once(target, half)
    assert list(tmp_path.iterdir()) == []
    build_once(target, lambda place: place.mkdir())
    build_once(target, half)  # not called again
    assert [p.name for p in tmp_path.iterdir()] == ["server"]
