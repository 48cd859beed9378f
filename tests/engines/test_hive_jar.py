"""The hooks' jar as `skipbridge hive jar` builds it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli

PARQUET_HOOK = "io.skipbridge.hive.BridgeParquetInputFormat"
ORC_HOOK = "io.skipbridge.hive.BridgeOrcInputFormat"
TEXT_HOOK = "io.skipbridge.hive.BridgeTextInputFormat"
JAVA_8 = 52


@pytest.mark.full
def test_an_older_version_compiles(tmp_path: Path) -> None:
    version = "2.3.10"
    result = CliRunner().invoke(
        cli, ["hive", "jar", "--hive-version", version, "--to", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    made = Path(result.stdout.strip())
    assert made == tmp_path / f"skipbridge-hive-{version}.jar"
    assert list(tmp_path.iterdir()) == [made]


def test_what_is_in_it(hive_jar: Path) -> None:
    assert hive_jar.name == "skipbridge-hive-4.0.1.jar"
    with zipfile.ZipFile(hive_jar) as jar:
        classes = [name for name in jar.namelist() if name.endswith(".class")]
        # HiveServer2 carries old libraries of its own: any other class could be the wrong one.
        own = ("io/skipbridge/hive/", "io/skipbridge/client/")
        assert all(name.startswith(own) for name in classes)
        for hook in (PARQUET_HOOK, ORC_HOOK, TEXT_HOOK):
            assert hook.replace(".", "/") + ".class" in classes
        for name in classes:
            assert int.from_bytes(jar.read(name)[6:8], "big") <= JAVA_8, name
