"""What can go wrong with `skipbridge hive` without any server: a code, the value, the remedy."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from bridge.app.cli.main import cli
from bridge.servers.java import find_jdk


def run(*words: str, **environment: str) -> Result:
    result = CliRunner().invoke(cli, ["hive", *words], env=environment)
    assert "Traceback" not in result.output
    return result


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
