"""Which files of a Hudi table are named to a reader that lists it by itself, as Hive does.

The law: a file is named only if none of the rows that it holds satisfies the predicate, whichever
version the reader reads; a log only where merged rows are rows that were written.
"""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.expression.statistics import ColumnStatistics
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.threads import Threads
from bridge.kernel.types import HIVE
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import planner_of, resolve, storage_of
from bridge.service.indexed_tables import IndexedTables
from bridge.service.skippable_files import encode_skippable_files
from bridge.table.hudi.files import base_files, column_bounds
from bridge.table.hudi.files.base_files import EqualityIndex
from bridge.table.hudi.files.column_bounds import HudiBounds
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.model import CatalogTable
from bridge.table.registry import table_hooks
from tests.support.hudi_fixtures import BUNDLES, HudiFixture, hudi_fixtures
from tests.tiers import examples, seed


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, these queries wait for Hudi's bounds."""
    monkeypatch.setattr(column_bounds, "PATIENCE", 300.0)


def opened(root: Path) -> tuple[Planner, CatalogTable]:
    config = Config({"planner.cache_dir": Setting(str(root.parent / "cache"), "test")})
    storage = storage_of(config)
    catalog, name = resolve(config, str(root), storage)
    planner = planner_of(config, catalog, storage)
    return planner, planner.table(name)


def named(root: Path, condition: str) -> set[str]:
    """Names of files, without the directories."""
    planner, table = opened(root)
    request = ScanRequest(
        table.name, parse_where(condition, "hive")[0], semantics=HIVE, engine="hive"
    )
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


@pytest.mark.parametrize("bundle", BUNDLES)
def test_before_an_index_exists_files_are_named_by_hudis_own_bounds(
    bundle: str, tmp_path: Path
) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_metadata"])
    root = fixture.unpack(tmp_path)
    every = {s.base_file for s in fixture.answers().slices}
    assert named(root, "id > 100") == every and len(every) == 2
    assert len(named(root, "id = 1")) == len(named(root, "name = 'n4'")) == 1
    assert not named(root, "id IS NULL") and not named(root, "price > 100")
    assert not named(root, "id = 1 AND id = 2"), "a contradiction says nothing of any one file"


@pytest.mark.parametrize("bundle", ["0.15.0", "1.2.0"])
def test_of_a_slice_with_logs_at_most_the_base_file_is_named(bundle: str, tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["mor_statistics"])
    found = named(fixture.unpack(tmp_path), "n > 100000")
    alone = {s.base_file for s in fixture.answers().slices if not s.logs}
    assert found and found <= alone


def test_our_own_index_wins_where_it_knows_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_metadata"])
    root = indexed(fixture, tmp_path)
    told = HudiBounds.column
    asked = []

    def column(self: HudiBounds, reference: BoundReference) -> ColumnStatistics | None:
        asked.append(found := told(self, reference))
        if found is None:
            return None
        wrong = np.full(len(found.lower), 10_000, np.int64)
        return replace(found, lower=wrong, upper=wrong)

    monkeypatch.setattr(HudiBounds, "column", column)
    assert len(named(root, "id = 1")) == 1 and any(asked)


LAW = [f for n in ("cow_statistics", "mor_statistics") for f in hudi_fixtures(names=[n])]


@pytest.mark.parametrize("fixture", LAW, ids=lambda f: f.id)
def test_no_named_file_holds_a_matching_row(fixture: HudiFixture, tmp_path: Path) -> None:
    """Hudi's own bounds alone; each named file is read whole, by PyArrow."""
    root = fixture.unpack(tmp_path)
    luck, skipped = random.Random(seed(41)), 0
    paths = {p.name: p for p in root.rglob("*.parquet") if ".hoodie" not in p.parts}
    held = {name: pq.ParquetFile(path).read(["n", "l"]) for name, path in paths.items()}
    for at in range(examples(6, 30, 300)):
        column = luck.choice(("n", "l"))
        known = [v for t in held.values() for v in t[column].to_pylist() if v is not None]
        value, op = luck.choice(known), luck.choice(("=", "<", ">", "<=", ">=", "<>"))
        if not at:
            value, op = max(known), ">"
        found = named(root, f"{column} {op} {value}")
        skipped += len(found)
        compare = {"=": pc.equal, "<": pc.less, ">": pc.greater, "<>": pc.not_equal}
        compare |= {"<=": pc.less_equal, ">=": pc.greater_equal}
        for name in found:
            assert not pc.any(compare[op](held[name][column], value)).as_py(), (name, op, value)
    assert skipped


@pytest.mark.parametrize(("name", "told"), [("cow_metadata", True), ("cow_upserts", False)])
def test_the_hook_is_told_of_a_table_with_bounds_of_its_own(
    name: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = hudi_fixtures(bundle="1.2.0", names=[name])[0].unpack(tmp_path)
    planner, table = opened(root)
    registered = replace(table, input_format=next(iter(table_hooks())))
    monkeypatch.setattr(planner, "table", lambda name: registered)
    with Threads(1, "test") as pool:
        found = IndexedTables(pool, planner).among([str(table.name)])
    assert found.locations == ({str(table.name): table.location} if told else {})


@pytest.mark.parametrize(
    ("name", "condition", "held"),
    [
        ("cow_record_index", "id = 51", 1),
        ("cow_bloom_filters", "name = 'k051'", 1),
        ("cow_secondary_index", "name = 'none'", 2),  # what the index does not know
    ],
)
def test_files_without_a_value_are_named_by_hudis_own_indexes(
    name: str, condition: str, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_files, "PATIENCE", 300.0)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=[name])
    every = {s.base_file for s in fixture.answers().slices}
    found = named(fixture.unpack(tmp_path), condition)
    assert len(found) == len(every) - held and found < every


def test_of_bloom_filters_no_file_with_logs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_files, "PATIENCE", 300.0)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["mor_bloom_filters"])
    alone = {s.base_file for s in fixture.answers().slices if not s.logs}
    assert named(fixture.unpack(tmp_path), "id = 1000") == alone


def test_all_indexes_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits until another is read too, so a query waits for all of them as for one."""
    monkeypatch.setattr(base_files, "PATIENCE", 300.0)
    begun = {"record_index": threading.Event(), "secondary_index": threading.Event()}
    attempt = EqualityIndex._attempt

    def together(own: EqualityIndex, column: str) -> object:
        begun[own.source].set()
        assert all(each.wait(120) for each in begun.values())
        return attempt(own, column)

    monkeypatch.setattr(EqualityIndex, "_attempt", together)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_secondary_index"])
    every = {s.base_file for s in fixture.answers().slices}
    condition = "id = 'none' AND name = 'none'"
    assert named(fixture.unpack(tmp_path / "hive"), condition) == every
    for each in begun.values():
        each.clear()
    planner, table = opened(fixture.unpack(tmp_path / "trino"))
    plan = planner.plan(ScanRequest(table.name, parse_where(condition)[0]))
    assert sum(map(len, plan.batches())) == 0
