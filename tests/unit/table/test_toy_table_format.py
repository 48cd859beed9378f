"""A table format of another distribution: versions, a row filter, deletes, two file formats.

No file of the package is edited for it. The law: a file of a version that holds a row of that
version which satisfies the predicate is in the plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.api.session import Session
from bridge.expression.nodes import AlwaysTrue
from bridge.expression.parsing.text import parse_where
from bridge.formats.registry import file_formats
from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.building.listed import list_snapshot
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    FileCorrupt,
    ReadVersionNotFound,
    ReadVersionUnsupported,
    SnapshotExpired,
    UnsupportedTable,
)
from bridge.kernel.types import BIGINT, INTEGER
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.answers.system_tables import COLUMNS, system_table_rows
from bridge.planner.open_snapshots import OpenSnapshots
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.planner.splits.coalesce import SplitSettings, coalesce
from bridge.sync.storage import SyncStorage
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column
from bridge.table.read_version import NEWEST, AsOfTime, AsOfVersion, ChangesBetween, ReadVersion
from bridge.table.registry import recognise_format, table_format, table_formats
from bridge.table.snapshot import TableContext
from tests.support.lake import NAME, age
from tests.support.toy_tables import PLUGIN, VersionedLake
from tests.support.wheels import install, wheel_of

TSV = PLUGIN.parent / "toy_formats"
WHERES = ("x < 20", "x >= 40 AND x < 60", "x = 33", "p = 1", "p = 2 OR x < 5", "x IS NULL")


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("toys")
    for project in (PLUGIN, TSV):
        install(wheel_of(project, root), root / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "site"))
        for registry in (table_formats, file_formats):
            registry.cache_clear()
        yield
    for registry in (table_formats, file_formats):
        registry.cache_clear()


@pytest.fixture
def lake(tmp_path: Path) -> VersionedLake:
    found = VersionedLake(tmp_path, (Column("x", BIGINT),), (Column("p", INTEGER),))
    found.partition_values = [("1",), ("2",)]
    return found


def write(lake: VersionedLake, name: str, values: list[int | None], partition: int = 1) -> str:
    """A Parquet file, or one of the toy file format. Returns its path within the table."""
    path = f"p={partition}/{name}"
    if name.endswith(".tsv"):
        target = lake.root / "t" / path
        target.parent.mkdir(exist_ok=True)
        lines = "".join("\\N\n" if v is None else f"{v}\n" for v in values)
        target.write_text(f"#tsv\tx:bigint\n{lines}")
        age(target)
    else:
        lake.write(name, pa.table({"x": pa.array(values, pa.int64())}), (str(partition),))
    return path


def slices(*paths: str, deletes: dict[str, list[str]] | None = None) -> list[dict[str, Any]]:
    return [
        {
            "path": path,
            "format": "typed_tsv" if path.endswith(".tsv") else "parquet",
            "deletes": (deletes or {}).get(path, []),
        }
        for path in paths
    ]


def index(lake: VersionedLake) -> None:
    """Built from the newest snapshot, as `skipbridge index build` does."""
    lister = DirectoryLister(lake.storage, 2)
    context = TableContext(lake.storage, lake, lister, None, lambda _: None, Live())
    table = lake.table()
    report = build_index(
        table,
        lambda: list_snapshot(table_format(table).snapshot(table, NEWEST, context)),
        lake.store(),
        collector=ThreadCollector(lake.storage),
    )
    assert not report.failed
    lister.close()


def plan(planner: Planner, where: str = "", **request: Any) -> set[str]:
    predicate = parse_where(where)[0] if where else AlwaysTrue()
    found = planner.plan(ScanRequest(NAME, predicate, **request))
    paths = [path for batch in found.batches() for path in batch.files.paths.to_pylist()]
    assert len(paths) == len(set(paths))
    return {"/".join(path.split("/")[-2:]) for path in paths}


def version(number: int) -> ReadVersion:
    return ReadVersion(AsOfVersion(str(number)))


def test_a_version_is_indexed_and_pruned(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2, 3])
    b = write(lake, "b.parquet", [50, 60])
    c = write(lake, "c.tsv", [70, None], 2)
    stray = write(lake, "stray.parquet", [1])
    first = lake.commit({"p=1": slices(a)}, committed_at=100)
    lake.commit({"p=1": slices(a, b), "p=2": slices(c)}, committed_at=200)
    index(lake)
    planner = lake.planner()
    assert plan(planner) == {a, b, c} and stray not in plan(planner)
    assert plan(planner, "x < 10") == {a}
    assert plan(planner, "x > 65") == {c}  # by the bounds of a toy file
    assert plan(planner, "x > 65 AND p = 1") == set()
    assert plan(planner, read=version(first)) == {a}
    assert plan(planner, "x > 10", read=version(first)) == set()
    assert plan(planner, read=ReadVersion(AsOfTime(150))) == {a}
    report = planner.plan(ScanRequest(NAME)).report()
    assert report.freshness == "committed"
    with pytest.raises(ReadVersionNotFound, match="version:17"):
        plan(planner, read=version(17))
    (lake.root / "t" / b).unlink()
    with pytest.raises(FileCorrupt, match="version:2 names a file that is gone"):  # never a listing
        plan(lake.planner())


def test_the_row_filter_counts_for_always_and_for_never(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2, 3])
    b = write(lake, "b.parquet", [20, 40])
    c = write(lake, "c.parquet", [50, 60])
    lake.commit({"p=1": slices(a, b, c)}, where="x >= 30")
    index(lake)
    planner = lake.planner()
    assert plan(planner) == {b, c}  # no row of a belongs to the version
    assert plan(planner, "x < 100", limit=2) == {c}  # b's rows are not all of the version
    counted = AggregateRequest((Aggregate("count"),))
    assert aggregate(planner.plan(ScanRequest(NAME)), counted).rows is None
    lake.commit({"p=1": slices(a, b, c)}, where="x >= 20")
    assert aggregate(planner.plan(ScanRequest(NAME)), counted).rows == ((4,),)


def test_slices_with_logs_are_never_counted_on_and_never_cut(lake: VersionedLake) -> None:
    a, b = write(lake, "a.parquet", [1, 2]), write(lake, "b.parquet", [50, 60])
    (lake.root / "t" / "p=1" / "b.del").write_text("0")
    lake.commit({"p=1": slices(a, b, deletes={b: ["p=1/b.del"]})})
    index(lake)
    planner = lake.planner()
    assert plan(planner, "x < 10") == {a}  # deletes add no row
    assert plan(planner, limit=2) == {a}
    assert plan(planner, limit=3) == {a, b}
    counted = AggregateRequest((Aggregate("count"),))
    assert aggregate(planner.plan(ScanRequest(NAME)), counted).rows is None
    (batch,) = planner.plan(ScanRequest(NAME)).batches()
    splits = coalesce(batch, SplitSettings(target_bytes=100, parallelism=1))
    assert splits.logs is not None and splits.logs.counts.tolist()[-1] == 1
    whole = [splits.paths[i].as_py().endswith("b.parquet") for i in range(splits.num_files)]
    assert whole.count(True) == 1  # a was cut, b is merged as a whole


def test_one_query_reads_two_versions_and_never_mixes_them(lake: VersionedLake) -> None:
    a, b = write(lake, "a.parquet", [1]), write(lake, "b.parquet", [2])
    first = lake.commit({"p=1": slices(a)})
    lake.commit({"p=1": slices(a, b)})
    index(lake)
    planner = lake.planner()
    assert plan(planner, query_id="q") == {a, b}
    assert plan(planner, query_id="q", read=version(first)) == {a}
    lake.commit({"p=1": slices(b)})
    assert plan(planner, query_id="q") == {a, b}  # what the query saw first
    assert plan(planner, query_id="other") == {b}


def test_a_query_that_outlives_its_snapshot_opens_the_same_again(lake: VersionedLake) -> None:
    a, b = write(lake, "a.parquet", [1]), write(lake, "b.parquet", [2])
    lake.commit({"p=1": slices(a)})
    index(lake)
    planner = lake.planner()
    planner.snapshots = OpenSnapshots(seconds=-1.0)
    assert plan(planner, query_id="q") == {a}
    lake.commit({"p=1": slices(a, b)})
    assert plan(planner, query_id="q") == {a}
    (lake.root / "t" / "_versions" / "1.json").unlink()
    with pytest.raises(SnapshotExpired):
        plan(planner, query_id="q")
    assert plan(planner, query_id="q2") == {a, b}
    assert plan(planner, query_id="q3", snapshot_id="version:2") == {a, b}


def test_what_sync_asks_is_the_newest_version(lake: VersionedLake) -> None:
    a, b = write(lake, "a.parquet", [1]), write(lake, "b.parquet", [2], 2)
    write(lake, "stray.parquet", [3], 3)
    lake.commit({"p=1": slices(a)})
    lake.commit({"p=1": slices(a), "p=2": slices(b)})
    found = SyncStorage(lake.storage, 2, False).look(lake.location, format="manifest")
    assert found.paths == ["p=1", "p=2"]


def test_a_format_is_known_by_its_property_or_its_name() -> None:
    assert recognise_format({"toy.versions": "true"}) == "manifest"
    assert recognise_format({"skipbridge.table_format": "manifest"}) == "manifest"
    assert recognise_format({}) == "directory"


def test_the_read_optimised_version_leaves_deletes_unread(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2])
    (lake.root / "t" / "p=1" / "a.del").write_text("0")
    lake.commit({"p=1": slices(a, deletes={a: ["p=1/a.del"]})})
    index(lake)
    planner = lake.planner()
    (batch,) = planner.plan(ScanRequest(NAME)).batches()
    assert batch.logs is not None
    optimised = ReadVersion(read_optimized=True)
    (batch,) = planner.plan(ScanRequest(NAME, read=optimised)).batches()
    assert batch.logs is None
    counted = AggregateRequest((Aggregate("count"),))
    assert aggregate(planner.plan(ScanRequest(NAME, read=optimised)), counted).rows == ((2,),)


def test_system_tables_tell_logs_and_history(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2])
    b = write(lake, "b.parquet", [50, 60, 70])
    for name, text in (("b1.del", "0"), ("b2.del", "12")):
        (lake.root / "t" / "p=1" / name).write_text(text)
    held = slices(a, b, deletes={b: ["p=1/b1.del", "p=1/b2.del"]})
    held[0]["added"] = 1
    lake.commit({"p=1": slices(a)})
    lake.commit({"p=1": held})
    index(lake)

    def rows(kind: str) -> list[dict[str, Any]]:
        wanted = COLUMNS[kind]
        pages = system_table_rows(lake.planner().plan(ScanRequest(NAME)), kind, wanted)
        found = [row for page in pages for row in zip(*page, strict=True)]
        return [dict(zip(wanted, row, strict=True)) for row in found]

    files = {row["path"].rpartition("/")[2]: row for row in rows("files")}
    first, second = files["a.parquet"], files["b.parquet"]
    assert (first["rows"], first["logs"], first["log_bytes"], first["commit"]) == (2, 0, 0, "1")
    assert (second["rows"], second["logs"], second["log_bytes"], second["commit"]) == (
        None,
        2,
        3,
        None,
    )
    (partition,) = rows("partitions")
    assert partition["files"] == partition["indexed_files"] == 2
    assert (partition["rows"], partition["logs"], partition["log_bytes"]) == (None, 2, 3)
    assert partition["size"] == first["size"] + second["size"]
    timeline = rows("timeline")
    assert [(t["instant"], t["action"], t["state"]) for t in timeline] == [
        ("1", "commit", "completed"),
        ("2", "commit", "completed"),
    ]
    assert all(t["size"] > 0 and t["modified"] > 0 for t in timeline)


def test_changes_that_a_table_cannot_tell_are_refused(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2])
    lake.commit({"p=1": slices(a)})
    planner = lake.planner()
    with pytest.raises(ReadVersionUnsupported, match="does not tell"):
        plan(planner, read=ReadVersion(ChangesBetween("0", "1")))
    lake.commit({"p=1": slices(a)}, written_in="x")
    for after, until in (("0", "7"), ("first", "")):
        with pytest.raises(ReadVersionNotFound):
            plan(planner, read=ReadVersion(ChangesBetween(after, until)))


@pytest.mark.parametrize("seed", range(8))
def test_changes_are_all_rows_written_between_two_versions(lake: VersionedLake, seed: int) -> None:
    """Column x is the version in which a row was written; each version rewrites some files."""
    rng = random.Random(seed)
    live: dict[str, list[int]] = {}
    versions: dict[int, list[int]] = {}
    for number in range(1, 7):
        rewritten = rng.sample(sorted(live), rng.randrange(len(live) + 1))
        kept = [live.pop(path) for path in rewritten]
        held = [*(x for file in kept for x in file), *[number] * rng.randrange(1, 3)]
        live[write(lake, f"f{number}.parquet", list(held))] = held
        assert lake.commit({"p=1": slices(*live)}, written_in="x") == number
        versions[number] = [x for file in live.values() for x in file]
        if rng.random() < 0.5:
            index(lake)
    planner, skipped = lake.planner(), 0
    for after in range(7):
        for until in range(1, 7):
            read = ReadVersion(ChangesBetween(str(after), "" if until == 6 else str(until)))
            where = rng.choice(("", "x <> 3"))
            found = plan(planner, where, read=read, query_id=rng.choice(("", "q")))
            got = [
                x
                for path in sorted(found)
                for x in pq.read_table(lake.root / "t" / path)["x"].to_pylist()
                if after < x <= until and (x != 3 or not where)
            ]
            expected = [x for x in versions[until] if after < x <= until and (x != 3 or not where)]
            assert sorted(got) == sorted(expected), (read, where)
            filter = planner.snapshot(ScanRequest(NAME, read=read)).snapshot.row_filter
            assert filter == parse_where(f"x > {after} AND x <= {until}")[0]
            whole = plan(planner, read=version(until))
            skipped += len(whole - found)
    assert skipped > 0


def _belongs(value: int | None, where: str, partition: int) -> bool:
    """By hand, for the predicates of this test."""
    null = value is None
    x = 0 if value is None else value
    rules = {
        "": True,
        "x < 20": not null and x < 20,
        "x >= 40 AND x < 60": not null and 40 <= x < 60,
        "x = 33": not null and x == 33,
        "p = 1": partition == 1,
        "p = 2 OR x < 5": partition == 2 or (not null and x < 5),
        "x IS NULL": null,
        "x >= 10": not null and x >= 10,
    }
    return rules[where]


@pytest.mark.parametrize("seed", range(12))
def test_no_file_of_a_version_with_a_matching_row_is_left_out(
    lake: VersionedLake, seed: int
) -> None:
    rng = random.Random(seed)
    held: dict[str, tuple[int, list[int | None]]] = {}
    versions: dict[int, tuple[str, dict[str, list[str]]]] = {}
    for number in range(6):
        partition, kind = rng.choice((1, 2)), rng.choice(("parquet", "tsv"))
        values = [rng.choice((None, rng.randrange(80))) for _ in range(rng.randrange(1, 5))]
        path = write(lake, f"f{number}.{kind}", values, partition)
        held[path] = (partition, values)
        live = rng.sample(sorted(held), rng.randrange(1, len(held) + 1))
        deletes = {}
        for each in live:
            if rng.random() < 0.3:
                file = Path(lake.root / "t" / f"{each}.del")
                file.write_text("0")  # the first row is gone
                deletes[each] = [f"{each}.del"]
        where = rng.choice(("", "x >= 10"))
        found = {
            f"p={p}": slices(*(f for f in live if held[f][0] == p), deletes=deletes) for p in (1, 2)
        }
        versions[lake.commit(found, where=where)] = (where, {f: deletes.get(f, []) for f in live})
        if rng.random() < 0.5:
            index(lake)
    planner = lake.planner()
    kept = total = 0
    for number, (filter, live) in versions.items():
        for where in WHERES:
            found = plan(planner, where, read=version(number), query_id=rng.choice(("", "q")))
            must = {
                file
                for file, deleted in live.items()
                if any(
                    _belongs(v, filter, held[file][0]) and _belongs(v, where, held[file][0])
                    for v in held[file][1][1 if deleted else 0 :]
                )
            }
            assert must <= found <= set(live), (number, where, must - found)
            kept, total = kept + len(found), total + len(live)
    assert kept < total


def test_the_python_api_reads_a_version_and_nothing_else(lake: VersionedLake) -> None:
    a = write(lake, "a.parquet", [1, 2, 3])
    b = write(lake, "b.parquet", [20, 40])
    c = write(lake, "c.tsv", [50, 60], 2)
    lake.commit({"p=1": slices(a, b), "p=2": slices(c)}, where="x >= 2")
    index(lake)
    session = Session(Config())
    session._planners[""] = lake.planner()
    table = session.table("db.t")

    def rows(where: str | None = None, **options: Any) -> list[int]:
        return sorted(table.scan(where, **options).to_arrow()["x"].to_pylist())

    assert rows() == rows(pruning=False) == [2, 3, 20, 40, 50, 60]
    assert rows("x < 30") == rows("x < 30", columns=["x", "p"]) == [2, 3, 20]
    assert len(rows(limit=3)) == 3
    (lake.root / "t" / "p=1" / "b.del").write_text("0")
    lake.commit({"p=1": slices(a, b, deletes={b: ["p=1/b.del"]})})
    assert rows("x < 10") == [1, 2, 3]
    with pytest.raises(UnsupportedTable, match="deletes"):
        rows()
    session.close()
