"""What can go wrong with `skipbridge hive` without any server: a code, the value, the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridge.cli.main import cli
from bridge.servers.java import find_jdk


def run(*words: str, **environment: str) -> Result:
    result = CliRunner().invoke(cli, ["hive", *words], env=environment)
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize("verb", ["hook", "unhook", "ddl"])
def test_no_metastore(verb: str) -> None:
    result = run(
        verb,
        "a.b",
        SKIPBRIDGE_METASTORE_URI="thrift://127.0.0.1:1",
        SKIPBRIDGE_METASTORE_TIMEOUT="100ms",
    )
    assert "error METASTORE_UNAVAILABLE: no metastore answers at thrift://127.0.0.1:1" in (
        result.stderr
    )
    assert "\n  -> " in result.stderr
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize("verb", ["hook", "unhook", "ddl"])
def test_usage(verb: str) -> None:
    for words in ([], ["a.b", "c.d"], ["a.b", "--colour", "red"]):
        result = run(verb, *words)
        assert result.exit_code == 2 and "Usage:" in result.stderr
    assert "DB.TABLE" in run(verb, "--help").stdout


def test_jar_for_a_version_that_was_never_compiled(tmp_path: Path) -> None:
    result = run("jar", "--hive-version", "1.2.1", "--to", str(tmp_path))
    assert "error HOOK_BUILD_FAILED: no hooks for Hive '1.2.1'" in result.stderr
    assert "4.0.1" in result.stderr and "2.3.10" in result.stderr
    assert (result.exit_code, result.stdout) == (2, "")
    assert run("versions").stdout.splitlines()[0] == "4.0.1"


def test_jar_without_maven(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(find_jdk(17, 24).java)
    result = run("jar", "--to", str(tmp_path), PATH=str(tmp_path))
    assert "error ENVIRONMENT: mvn is not on the path" in result.stderr
    assert "install Maven" in result.stderr
    assert (result.exit_code, result.stdout) == (2, "")


def test_jar_into_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("jar", "--to", str(tmp_path / "file"))
    assert result.exit_code == 2 and "file" in result.stderr
    result = run("jar", "--to", str(tmp_path / "file" / "below"))
    assert "error INVALID_REQUEST: " in result.stderr, result.stderr
    assert str(tmp_path / "file" / "below") in result.stderr
    assert (result.exit_code, result.stdout) == (2, "")
