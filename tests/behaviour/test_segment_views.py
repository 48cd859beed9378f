"""Views of tables of segments: scans return the same rows with them and without them.

A scan with ``pruning=False`` reads the facts, all of them, and is the oracle.
``--tier=nightly`` asks twenty times as often.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import ColumnNotFound, InvalidRequest, SegmentConflict, SegmentLogCorrupt
from bridge.segments.commands import (
    add,
    compaction,
    indexes,
    manage,
    opened,
    refresh,
    tables,
    view_files,
    view_indexes,
    views,
)
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import Range
from bridge.table.segments.log import SegmentLog
from tests.support.exact_rows import exact_rows
from tests.support.index_builds import Dying, Killed
from tests.support.views_of import states_of_views
from tests.tiers import examples

pytestmark = pytest.mark.full

HISTORIES = examples(4, 4, 200)
STEPS = 8
COLUMNS = [
    ("a", "bigint"),
    ("d", "double"),
    ("s", "string"),
    ("t", "timestamp"),
    ("m", "decimal(9,2)"),
]
happened: Counter[str] = Counter()


class Facts:
    """A table of segments, whose fact files are Parquet."""

    def __init__(self, root: Path, seed: int = 0) -> None:
        self.root, self.rng = root, random.Random(seed)
        self.config, self.table = Config(), str(root / "t")
        self.session = bridge.connect()
        self.files = 0
        tables.create_table(self.config, self.table, format="parquet", columns=COLUMNS)

    def rows(self, count: int) -> pa.Table:
        rng = self.rng

        def some(values: list[Any]) -> list[Any]:
            return [None if rng.random() < 0.1 else rng.choice(values) for _ in range(count)]

        return pa.table(
            {
                "a": pa.array(some(list(range(100))), pa.int64()),
                "d": pa.array(some([0.0, -0.0, float("nan"), 1.5, float("-inf")]), pa.float64()),
                "s": pa.array(some(["", "x", "y ", "é"]), pa.string()),
                "t": pa.array(some([0, -1, 10**15]), pa.timestamp("us")),
                "m": pa.array(some([None, 1, 250]), pa.int64())
                .cast(pa.decimal128(38, 0))
                .cast(pa.decimal128(9, 2)),
            }
        )

    def write(self, path: Path, rows: pa.Table | None = None) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows if rows is not None else self.rows(self.rng.randint(1, 30)), path)
        self.files += 1
        os.utime(path, (1.6e9 + self.files, 1.6e9 + self.files))
        return str(path)

    def add(self, count: int = 2) -> str:
        where = self.root / "facts" / f"d{self.files}"
        for i in range(count):
            self.write(where / f"{i}.parquet")
        found = add.add_segment(self.config, self.table, paths=[str(where)], local=True)
        return str(found["segment"])

    def view(self, name: str = "hot", **options: Any) -> dict[str, Any]:
        given = {"columns": ["a", "s", "d"], "sort_by": ["a"], **options}
        return views.create_view(self.config, self.table, name=name, local=True, **given)

    def scan(self, where: str | None, columns: list[str] | None, **options: Any) -> Any:
        return self.session.table(self.table).scan(where, columns, **options)

    def used(self, where: str | None = None, columns: list[str] | None = None) -> dict[str, int]:
        """Files of facts that each view stands for."""
        report = self.scan(where, columns).explain().to_dict()
        return {
            stage["index"]: stage["total"]
            for stage in report["stages"]
            if str(stage["index"]).startswith("view(")
        }

    def same(self, where: str | None = None, columns: list[str] | None = None) -> None:
        found = self.scan(where, columns).to_arrow()
        facts = self.scan(where, columns, pruning=False).to_arrow()
        assert found.schema == facts.schema
        assert exact_rows(found) == exact_rows(facts)

    def state(self, name: str = "hot") -> dict[str, str]:
        return states_of_views(self.config, self.table)[name]


class Counting(LocalStorage):
    """Counts the reads of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    def read(self, uri: str) -> bytes:
        self.reads[uri] += 1
        return super().read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        self.reads[uri] += 1
        return super().read_ranges(uri, ranges)


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    return Facts(tmp_path)


def test_a_scan_reads_the_view_if_it_holds_all_columns(facts: Facts) -> None:
    facts.add()
    facts.add(3)
    assert facts.view()["segments"] == {"0": "built", "1": "built"}
    assert facts.used("a > 5", ["s"]) == {"view(hot)": 5}
    assert facts.used(None, ["a", "d"]) == {"view(hot)": 5}
    for where, columns in [
        ("t IS NULL", ["a"]),
        (None, ["m"]),
        (None, None),
        (None, ["a", "$path"]),
    ]:
        assert facts.used(where, columns) == {}
        facts.same(where, columns)
    for where in (None, "a > 50", "d = 0", "is_nan(d)", "s = 'x' OR a IS NULL"):
        facts.same(where, ["a", "s", "d"])
    assert facts.scan("a > 5", ["s"]).explain().files_total == 2


def test_the_report_says_why_facts_are_read(facts: Facts) -> None:
    facts.add()
    facts.view()
    reasons = {
        n["index"]: n["detail"] for n in facts.scan("m > 1", ["a"]).explain().to_dict()["not_used"]
    }
    assert reasons["view(hot)"] == "the view does not hold m"


def test_adding_a_segment_builds_the_view_in_the_same_version(facts: Facts) -> None:
    facts.view()
    facts.add()
    assert facts.state() == {"0": "built"}
    log = SegmentLog(LocalStorage(), f"file://{facts.table}")
    assert log.latest().operation.startswith("ADD SEGMENT")
    assert log.latest().segments[0].views[0].files.count == 1
    facts.same("a < 50", ["a", "s"])


@pytest.mark.parametrize("kept_in_memory", [True, False])
def test_each_file_is_read_once(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, kept_in_memory: bool
) -> None:
    """For two indexes and two views; for the schema as well, if all files fit in memory."""
    if not kept_in_memory:
        monkeypatch.setattr(add, "MEMORY", 0)
    indexes.create_index(facts.config, facts.table, name="m", kind="minmax", local=True)
    indexes.create_index(
        facts.config, facts.table, name="b", kind="bloomfilter", columns=["a"], local=True
    )
    facts.view()
    facts.view("other", columns=["t", "m"], sort_by=[])
    storage = Counting()
    monkeypatch.setattr(opened, "storage_of", lambda _: storage)
    facts.add(5)
    read = {uri: count for uri, count in storage.reads.items() if "/facts/" in uri}
    assert len(read) == 5 and set(read.values()) == {1 if kept_in_memory else 2}
    assert facts.state() == {"0": "built"} == facts.state("other")


def test_facts_that_the_index_knew_already_are_in_the_view(facts: Facts) -> None:
    """The pass that reads new files for the index builds a part of the view alone."""
    indexes.create_index(facts.config, facts.table, name="m", kind="minmax", local=True)
    facts.view()
    where = facts.root / "facts" / "d"
    first = facts.write(where / "0.parquet")
    facts.write(where / "1.parquet")
    add.add_segment(facts.config, facts.table, paths=[first], local=True)
    manage.delete_segments(facts.config, facts.table, ids=["0"])
    added = add.add_segment(facts.config, facts.table, paths=[str(where)], local=True)
    assert added["indexed"] == 1
    assert facts.state() == {"1": "built"} and facts.used(None, ["a"]) == {"view(hot)": 2}
    facts.same(None, ["a", "s"])


def test_a_disabled_view_is_not_used_and_not_built(facts: Facts) -> None:
    facts.add()
    facts.view()
    views.enable_view(facts.config, facts.table, name="HOT", enabled=False)
    facts.add()
    assert facts.used(None, ["a"]) == {}
    views.enable_view(facts.config, facts.table, name="hot", enabled=True)
    assert facts.state() == {"0": "built", "1": "absent"}
    assert facts.used(None, ["a"]) == {"view(hot)": 2}
    facts.same("a < 50", ["a", "s"])
    views.rebuild_view(facts.config, facts.table, name="hot", local=True)
    assert facts.state() == {"0": "built", "1": "built"}
    assert facts.used(None, ["a"]) == {"view(hot)": 4}


def test_another_type_of_a_column_makes_the_view_stale(facts: Facts) -> None:
    tables.create_table(
        facts.config,
        str(facts.root / "u"),
        format="parquet",
        columns=[("a", "int"), ("s", "string")],
    )
    facts.table = str(facts.root / "u")
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "s": ["x", "y"]})
    facts.write(facts.root / "u0.parquet", rows)
    add.add_segment(facts.config, facts.table, paths=[str(facts.root / "u0.parquet")], local=True)
    facts.view(columns=["a"])
    facts.view("other", columns=["s"], sort_by=[])
    tables.change_type(facts.config, facts.table, "a", "bigint")
    assert facts.state() == {"0": "stale"} and facts.state("other") == {"0": "built"}
    assert facts.used(None, ["a"]) == {} and facts.used(None, ["s"]) == {"view(other)": 1}
    facts.same(None, ["a"])
    views.rebuild_view(facts.config, facts.table, local=True)
    assert facts.state() == {"0": "built"}
    facts.same(None, ["a"])
    with pytest.raises(InvalidRequest, match="view hot holds column a"):
        tables.drop_columns(facts.config, facts.table, ["a"])


def test_compaction_makes_one_sorted_file_set(facts: Facts) -> None:
    facts.view(properties={"SORT_SCOPE": "GLOBAL_SORT"})
    for _ in range(3):
        facts.add()
    compaction.compact(facts.config, facts.table, kind="custom", ids=["0", "1", "2"])
    assert facts.state() == {"0.1": "built"}
    assert facts.used(None, ["a"]) == {"view(hot)": 6}
    log = SegmentLog(LocalStorage(), f"file://{facts.table}")
    (view,) = log.latest().readable[0].views
    (path,) = log.read_files(view.files).files.paths.to_pylist()
    numbers = pq.read_table(path.removeprefix("file://"))["a"].to_pylist()
    assert numbers == sorted(numbers, key=lambda v: (v is None, v or 0))
    facts.same("a < 50", ["a", "s"])


def test_the_index_of_a_view_skips_its_files(facts: Facts) -> None:
    where = facts.root / "facts"
    for i in range(4):
        numbers = pa.array(range(i * 10, i * 10 + 10), pa.int64())
        rows = facts.rows(10).set_column(0, "a", numbers)
        facts.write(where / f"{i}" / "f.parquet", rows)
    facts.view(columns=["a"])
    for i in range(4):
        add.add_segment(facts.config, facts.table, paths=[str(where / f"{i}")], local=True)
    assert facts.scan("a = 15", ["a"]).explain().files_kept == 1
    made = view_indexes.create_view_index(
        facts.config,
        facts.table,
        view="hot",
        name="b",
        kind="bloomfilter",
        columns=["a"],
        local=True,
    )
    assert made["created"]
    facts.session = bridge.connect()  # a session looks for a newer index once a second
    stages = {s["index"] for s in facts.scan("a = 15", ["a"]).explain().to_dict()["stages"]}
    assert {"minmax", "bloom"} <= stages
    facts.same("a = 15", ["a"])
    with pytest.raises(ColumnNotFound, match="does not hold column m"):
        view_indexes.create_view_index(
            facts.config, facts.table, view="hot", name="c", kind="bloom", columns=["m"], local=True
        )


def test_one_index_of_a_view_is_hidden_built_anew_and_dropped(facts: Facts) -> None:
    facts.view(columns=["a"])
    facts.add(3)
    given = {"view": "hot", "kind": "bloomfilter", "columns": ["a"]}
    for name in ("b", "same"):
        view_indexes.create_view_index(facts.config, facts.table, name=name, local=True, **given)  # type: ignore[arg-type]
    one = (facts.config, facts.table)

    def asked() -> bool:
        facts.session = bridge.connect()
        stages = facts.scan("a = 15", ["a"]).explain().to_dict()["stages"]
        return "bloom" in {stage["index"] for stage in stages}

    assert asked()
    view_indexes.show_view_index(*one, view="hot", name="b", visible=False)
    assert not asked()
    built = view_indexes.rebuild_view_index(*one, view="hot", name="b", local=True)
    assert built["files"] == 1 and not asked()
    view_indexes.show_view_index(*one, view="HOT", name="B", visible=True)
    assert asked()
    view_indexes.drop_view_index(*one, view="hot", name="b")
    assert asked(), "the other index is of the same kind on the same column"
    view_indexes.drop_view_index(*one, view="hot", name="same")
    assert not asked()
    with pytest.raises(InvalidRequest, match="view hot has no index 'b'"):
        view_indexes.drop_view_index(*one, view="hot", name="b")
    facts.add()
    assert set(facts.state().values()) == {"built"} and not asked()
    facts.same("a = 15", ["a"])


def test_refreshed_facts_leave_no_old_rows(facts: Facts) -> None:
    facts.add()
    facts.view()
    facts.write(facts.root / "facts" / "d0" / "0.parquet")
    refresh.refresh_segments(facts.config, facts.table, local=True)
    assert facts.state() == {"0": "built"}
    facts.same(None, ["a", "s", "d"])


def test_what_is_not_certain_stays_with_the_facts(facts: Facts) -> None:
    rows = facts.rows(5)
    path = facts.root / "facts" / "old.parquet"
    path.parent.mkdir()
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    facts.view(columns=["a", "t"])
    facts.view("plain", columns=["a"])
    add.add_segment(facts.config, facts.table, paths=[str(path)], local=True)
    assert "INT96" in facts.state()["0"] and facts.state("plain") == {"0": "built"}
    assert facts.used(None, ["t"]) == {}
    facts.same(None, ["a", "t"])


def test_a_dropped_view_is_forgotten_and_its_files_are_cleaned(facts: Facts) -> None:
    facts.add()
    facts.view()
    with pytest.raises(InvalidRequest, match="already"):
        facts.view()
    assert facts.view(if_not_exists=True) == {"view": "hot", "created": False}
    views.drop_view(facts.config, facts.table, name="hot")
    assert (
        views.drop_view(facts.config, facts.table, name="hot", if_exists=True)["dropped"] is False
    )
    with pytest.raises(InvalidRequest, match="no view 'hot'"):
        views.drop_view(facts.config, facts.table, name="hot")
    assert facts.used(None, ["a"]) == {}
    manage.clean(facts.config, facts.table, keep=1, older_than=0)
    left = (Path(facts.table) / "_segments" / "views").rglob("*.parquet")
    assert not [p for p in left if ".skipbridge" not in p.parts]
    assert len(list((facts.root / "facts").rglob("*.parquet"))) == 2


def test_two_rebuilds_at_once_are_one(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    facts.add()
    facts.view(deferred=True)
    build = views.build_segments

    def beside(*arguments: Any) -> Any:
        monkeypatch.setattr(views, "build_segments", build)
        views.rebuild_view(facts.config, facts.table, local=True)
        return build(*arguments)

    monkeypatch.setattr(views, "build_segments", beside)
    with pytest.raises(SegmentConflict, match="another command has built view hot"):
        views.rebuild_view(facts.config, facts.table, local=True)
    assert facts.state() == {"0": "built"}


def test_files_that_a_cleaner_took_are_not_committed(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts.add()

    def clean(*_: Any, **__: Any) -> None:
        for path in (Path(facts.table) / "_segments" / "views").rglob("*.parquet"):
            path.unlink()

    monkeypatch.setattr(view_files, "index_view_files", clean)
    with pytest.raises(SegmentLogCorrupt, match="deleted before it was committed"):
        facts.view()
    assert states_of_views(facts.config, facts.table) == {}


def test_text_is_cast_where_engines_agree(tmp_path: Path) -> None:
    """Facts in CSV are read by an engine; their view by the Python API as well."""
    config, table = Config(), str(tmp_path / "t")
    columns = [("k", "bigint"), ("d", "double"), ("s", "string"), ("day", "date")]
    columns.append(("m", "decimal(5,2)"))
    tables.create_table(
        config, table, format="csv", columns=columns, properties={"csv.header_lines": "1"}
    )
    views.create_view(config, table, name="hot", columns=["k", "d", "day", "m"], sort_by=["k"])
    texts = [
        "s,k,d,day,m\nx,12,-0.5,2024-01-05,1.25\ny,-3,1000.25,1999-12-31,7\n",
        "k,d,s,day,m\n5,0.5,z,2024-02-01,-3.10\n",
        "k,d,s,day,m\nmany,0.5,z,2024-02-01,1\n",
    ]
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.csv"
        path.write_text(text)
        os.utime(path, (1.6e9, 1.6e9))
        add.add_segment(config, table, paths=[str(path)], local=True)
    (states,) = states_of_views(config, table).values()
    assert states["0"] == states["1"] == "built"
    assert "column k" in states["2"] and "read differently" in states["2"]
    manage.delete_segments(config, table, ids=["2"])
    found = bridge.connect().table(table).scan(None, ["k", "d", "day", "m"]).to_arrow()
    expected = pa.table(
        {
            "k": pa.array([12, -3, 5], pa.int64()),
            "d": pa.array([-0.5, 1000.25, 0.5]),
            "day": pa.array([date(2024, 1, 5), date(1999, 12, 31), date(2024, 2, 1)]),
            "m": pa.array(
                [Decimal("1.25"), Decimal("7.00"), Decimal("-3.10")], pa.decimal128(5, 2)
            ),
        }
    )
    assert exact_rows(found) == exact_rows(expected)


class History(Facts):
    """Random commands, some of which die at a write."""

    def __init__(self, root: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.storage: Any = LocalStorage()
        monkeypatch.setattr(opened, "storage_of", lambda _: self.storage)
        super().__init__(root, seed)

    def step(self) -> None:
        ids = [s.id for s in self.log().latest().readable]
        held = [v.name for v in self.log().latest().definition.views]
        choices = ["add", "add", "view", "rebuild", "compact", "refresh", "clean"]
        name = self.rng.choice(choices + ["enable", "drop", "delete"] * bool(held and ids))
        if self.rng.random() < 0.4:
            self.storage = Dying(
                LocalStorage(), self.rng.randint(1, 9), done=self.rng.random() < 0.5
            )
        before, committed = self.version(), False
        try:
            self.run(name, ids, held)
            committed = True
            happened[name] += 1
        except Killed:
            happened["killed"] += 1
        finally:
            self.storage = LocalStorage()
        assert committed or name == "refresh" or self.version() <= before + 1
        self.check()

    def run(self, name: str, ids: list[str], held: list[str]) -> None:
        rng, given = self.rng, (self.config, self.table)
        match name:
            case "add":
                self.add(rng.randint(1, 3))
            case "view":
                columns = rng.sample([c for c, _ in COLUMNS], rng.randint(1, 4))
                sort = rng.sample(columns, rng.randint(0, len(columns)))
                scope = {"SORT_SCOPE": rng.choice(("LOCAL_SORT", "GLOBAL_SORT"))} if sort else {}
                called = f"v{rng.randint(0, 2)}"
                self.view(called, columns=columns, sort_by=sort, properties=scope,
                          deferred=rng.random() < 0.3, if_not_exists=True)  # fmt: skip
            case "rebuild":
                views.rebuild_view(*given, local=True)
            case "compact" if len(ids) > 1:
                compaction.compact(*given, kind="custom", ids=rng.sample(ids, 2))
            case "refresh" if ids:
                every = sorted((self.root / "facts").rglob("*.parquet"))
                self.write(rng.choice(every))
                storage, self.storage = self.storage, LocalStorage()
                refresh.refresh_segments(*given, local=True)
                self.storage = storage
            case "clean":
                manage.clean(*given, keep=1, older_than=0)
            case "enable":
                views.enable_view(*given, name=rng.choice(held), enabled=rng.random() < 0.5)
            case "drop":
                views.drop_view(*given, name=rng.choice(held))
            case "delete":
                manage.delete_segments(*given, ids=[rng.choice(ids)])

    def log(self) -> SegmentLog:
        return SegmentLog(LocalStorage(), f"file://{self.table}")

    def version(self) -> int:
        return self.log().versions()[-1]

    def check(self) -> None:
        rng = self.rng
        for _ in range(3):
            known = [c for c, _ in COLUMNS]
            held = [v.columns for v in self.log().latest().definition.views]
            if held and rng.random() < 0.8:
                known = list(rng.choice(held))
            columns = rng.sample(known, rng.randint(1, min(3, len(known))))
            where = rng.choice(
                (
                    None,
                    None,
                    None,
                    "a < 20",
                    "d > 0",
                    "s = 'x'",
                    "t IS NULL",
                    "m = 2.5",
                    "a = 7 OR is_nan(d)",
                )
            )
            self.same(where, columns)
            happened["used"] += bool(self.used(where, columns))


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_scans_are_the_same_with_views(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path, seed, monkeypatch)
    history.view("v0", columns=["a", "d", "s"])
    history.add()
    for _ in range(STEPS):
        history.step()


def test_all_of_it_happened() -> None:
    """The histories above are worth nothing if no view was used and nothing died."""
    assert not happened or min(happened[key] for key in ("used", "killed", "add", "view")) > 0
