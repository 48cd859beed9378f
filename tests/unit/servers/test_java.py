from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.errors import EnvironmentMissing
from bridge.servers.java import find_jdk, inspect_jdk


def jdk(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    for program in ("java", "javac"):
        (home / "bin" / program).write_text("#!/bin/sh\n")
        (home / "bin" / program).chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def jdks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """JDKs 8, 17 and 25 side by side; 17 is on the path."""
    for name, version in (("eight", "1.8.0_412"), ("b", "17.0.15"), ("a", "25")):
        jdk(tmp_path / name, version)
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    for variable in ("JAVA_HOME", "SKIPBRIDGE_JDK17", "SKIPBRIDGE_JDK25", "SKIPBRIDGE_JDK99"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("bridge.servers.java._PLACES", ())
    return tmp_path


def test_versions_are_read(jdks: Path) -> None:
    assert [inspect_jdk(jdks / n).version for n in ("eight", "b", "a")] == [8, 17, 25]  # type: ignore[union-attr]
    (jdks / "a" / "bin" / "javac").unlink()
    inspect_jdk.cache_clear()
    assert inspect_jdk(jdks / "a") is None  # a JRE


def test_the_one_on_the_path_then_its_neighbours(jdks: Path) -> None:
    assert find_jdk(17).home == jdks / "b"
    assert find_jdk(25).home == jdks / "a"
    assert find_jdk(8).version == 17


def test_variables_come_first(jdks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdks / "a"))
    assert find_jdk(17).version == 25
    assert find_jdk(17, 24).version == 17
    monkeypatch.setenv("SKIPBRIDGE_JDK17", str(jdks / "b"))
    assert find_jdk(17).version == 17
    monkeypatch.setenv("SKIPBRIDGE_JDK17", str(jdks / "eight"))
    with pytest.raises(EnvironmentMissing, match="not a JDK of version 17"):
        find_jdk(17)


def test_none_is_new_enough(jdks: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="version 99 or newer; found: 17 in") as caught:
        find_jdk(99)
    assert "SKIPBRIDGE_JDK99" in caught.value.hint
