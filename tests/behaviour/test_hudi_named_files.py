"""Which files of a Hudi table are named to a reader that lists it by itself, as Hive does.

The law: a file is named only if none of the rows that it holds satisfies the predicate, whichever
version the reader reads; a log only where merged rows are rows that were written.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import HIVE
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import planner_of, resolve, storage_of
from bridge.service.skippable_files import encode_skippable_files
from bridge.table.hudi.files.file_system_view import FileSystemView
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures


def named(root: Path, condition: str) -> set[str]:
    """Names of files, without the directories."""
    config = Config({"planner.cache_dir": Setting(str(root.parent / "cache"), "test")})
    storage = storage_of(config)
    catalog, name = resolve(config, str(root), storage)
    planner = planner_of(config, catalog, storage)
    table = planner.table(name)
    request = ScanRequest(name, parse_where(condition, "hive")[0], semantics=HIVE, engine="hive")
    view = planner.views.view(table)
    found = list_skippable_files(table, view, request, planner.written_files(table))
    sent = encode_skippable_files(found, ())
    assert sent.skipped == len(found.paths)
    for path, size in zip(found.paths.to_pylist(), found.sizes.tolist(), strict=True):
        assert Path(path.removeprefix("file://")).stat().st_size == size
    times = (found.modified // 1000).tolist()
    assert set(times) <= {-1}, "the reader takes them for files that nobody writes again"
    return {path.rpartition("/")[2] for path in found.paths.to_pylist()}


def indexed(fixture: HudiFixture, directory: Path) -> Path:
    root = fixture.unpack(directory)
    config = Config({"planner.cache_dir": Setting(str(directory / "cache"), "test")})
    index_table(config, str(root), local=True, progress=lambda a, b: None, say=lambda text: None)
    return root


def logs(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith(".")}


def test_base_files_and_logs_are_named_one_by_one(tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["mor_upserts"])
    root = indexed(fixture, tmp_path)
    held = {f.name for s in fixture.answers().slices for f in (root / s.partition).iterdir()}
    everything = {n for n in held if "parquet" in n or ".log." in n} - logs({".hoodie"})
    everything = {n for n in everything if not n.endswith(".crc") and "metadata" not in n}
    found = named(root, "id > 1000")
    assert found <= everything and logs(found) and found - logs(found)
    some = named(root, "name = 'uno'")  # an update in a log wrote it
    assert 0 < len(some) < len(found)
    assert logs(found) - some


@pytest.mark.parametrize("name", ["mor_payload_partial", "mor_partial_updates", "mor_types"])
def test_logs_are_not_named_where_a_merge_makes_rows(name: str, tmp_path: Path) -> None:
    fixture = hudi_fixtures(names=[name])[-1]
    root = indexed(fixture, tmp_path)
    found = named(root, "`_hoodie_commit_time` < '1'")
    assert found - logs(found)
    assert bool(logs(found)) == (name == "mor_types")


def test_conditions_on_partitions_and_times_name_nothing(tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_types"])
    root = indexed(fixture, tmp_path)
    times = [f.name for f in fixture.answers().snapshot.schema if str(f.type).startswith("time")]
    assert times
    for name in times:
        assert not named(root, f"`{name}` > TIMESTAMP '2999-01-01 00:00:00'")
    assert named(root, "`_hoodie_commit_time` < '1'")


def test_a_float_that_became_a_double_names_nothing(tmp_path: Path) -> None:
    """Hudi's readers widen it by its shortest text, which is another number."""
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_widened"])
    root = indexed(fixture, tmp_path)
    assert not named(root, "f > 1e300")
    assert named(root, "id > 1000") and named(root, "n > 100000000000")


def test_a_table_with_other_defaults_than_null_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_upserts"])
    root = indexed(fixture, tmp_path)
    assert named(root, "id > 1000")
    told = FileSystemView.schema

    def schema(self: FileSystemView, as_of: str | None) -> str | None:
        fields = json.loads(told(self, as_of) or "")
        fields["fields"][-1]["default"] = "x"
        return json.dumps(fields)

    monkeypatch.setattr(FileSystemView, "schema", schema)
    with pytest.raises(UnsupportedTable, match="defaults"):
        named(root, "id > 1000")


def test_a_column_that_files_spell_in_another_case_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's readers compare the names of logs as they are, and show NULL."""
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["mor_upserts"])
    root = indexed(fixture, tmp_path)
    assert named(root, "name = 'nobody'")
    told = FileSystemView.schema

    def schema(self: FileSystemView, as_of: str | None) -> str | None:
        return (told(self, as_of) or "").replace('"name":"name"', '"name":"Name"')

    monkeypatch.setattr(FileSystemView, "schema", schema)
    assert not named(root, "name = 'nobody'")
    assert logs(named(root, "id > 1000"))


def test_files_of_tables_whose_columns_were_renamed_are_not_named(tmp_path: Path) -> None:
    """Entries are by the names in the files: ``name`` in old files is ``title`` in the query."""
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_renamed"])
    root = indexed(fixture, tmp_path)
    with pytest.raises(UnsupportedTable, match="renamed"):
        named(root, "title = 'n1'")
