"""What a command imports before its own work: modules are counted, not seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.cli.main import _COMMANDS

LARGE = ("numpy", "pyarrow", "obstore", "sqlglot", "thrift", "prometheus_client", "rich", "pyspark")
_RUN = """
import json, os, sys
from bridge.app.cli import main
os._exit = lambda status: None
sys.argv = ["skipbridge", *sys.argv[1:]]
main.main()
print("\\n" + json.dumps(list(sys.modules)))
"""


def imported(*words: str) -> set[str]:
    """Modules that a command has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", [["--help"], ["config", "show"], ["metastore", "stop"]])
def test_a_command_that_reads_no_table_imports_no_large_package(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path))
    assert imported(*words).isdisjoint(LARGE)


def test_no_module_of_commands_imports_a_large_package() -> None:
    """So `skipbridge VERB --help` answers at once, for every verb."""
    places = sorted({place.partition(":")[0] for place, _ in _COMMANDS.values()})
    code = f"import sys, {', '.join(places)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(LARGE)


def test_explain_of_a_directory_imports_neither_a_metastore_nor_pandas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "f.parquet")
    found = imported("explain", str(tmp_path), "x = 5")
    assert "pyarrow" in found and "sqlglot" in found
    assert found.isdisjoint({"pandas", "pyspark", "jinja2", "rich", "trino", "pyhive"})
    assert "bridge.metastore._gen" not in found
    rooms = {
        "bridge.segments.sql",
        "bridge.storage.hdfs",
        "bridge.storage.object_store.objectstore",
    }
    assert found.isdisjoint(rooms)


def test_choices_that_are_written_again_to_import_less_agree() -> None:
    from bridge.app.cli.doctor import doctor
    from bridge.app.cli.sync import sync
    from bridge.hive.server import AUTHENTICATIONS
    from bridge.sync.run_all import INDEXES

    choices = {p.name: getattr(p.type, "choices", ()) for c in (doctor, sync) for p in c.params}
    assert tuple(choices["hive_authentication"]) == tuple(AUTHENTICATIONS)
    assert tuple(choices["index"]) == tuple(INDEXES)
