"""The law asked of what files that were read have shown of writers that are not on the list.

A writer makes one mistake, or none, in each file where it applies: in counts or bounds, of one
column or of all, in files of many rows or of several row groups. Whatever an index then says of any
file is true of its rows.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.nodes import AlwaysTrue
from bridge.expression.parsing.text import parse_where
from bridge.index.building.evidence import MOST
from bridge.index.generations.entries import live_entries
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.store import IndexStore
from bridge.kernel.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Type
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support import footers
from tests.support.lake import NAME, Lake, age
from tests.tiers import examples, seed

FILES, TABLES = 40, examples(1, 10, 400)
ASKED = examples(0, 1, 4)
WRITER = "some writer version 99.0.0"
COLUMNS: dict[str, tuple[Type, pa.DataType]] = {
    "i": (BIGINT, pa.int64()),
    "n": (INTEGER, pa.int32()),
    "s": (STRING, pa.string()),
    "b": (BOOLEAN, pa.bool_()),
    "f": (DOUBLE, pa.float64()),
}
Rows = dict[str, list[Any]]
Stated = tuple[Any, Any, int]
Mistake = Callable[[str, list[Any], int, int], Stated]
"""Of a column, the values of a row group, the NULLs of those before, and the rows of the file."""


def truth(column: str, values: list[Any], before: int, rows: int) -> Stated:
    known = [v for v in values if v is not None]
    nulls = len(values) - len(known)
    return (min(known), max(known), nulls) if known else (None, None, nulls)


def no_nulls(column: str, values: list[Any], before: int, rows: int) -> Stated:
    return (*truth(column, values, 0, rows)[:2], 0)


def nulls_of_the_first_page(column: str, values: list[Any], before: int, rows: int) -> Stated:
    return (*truth(column, values, 0, rows)[:2], values[:3].count(None))


def nulls_of_each_page(column: str, values: list[Any], before: int, rows: int) -> Stated:
    pages = -(-len(values) // 3)
    return (*truth(column, values, 0, rows)[:2], min(values.count(None) * pages, len(values)))


def nulls_of_all_groups(column: str, values: list[Any], before: int, rows: int) -> Stated:
    return (*truth(column, values, 0, rows)[:2], min(values.count(None) + before, len(values)))


def no_nulls_of_nothing(column: str, values: list[Any], before: int, rows: int) -> Stated:
    low, high, nulls = truth(column, values, 0, rows)
    return low, high, 0 if low is None else nulls


def nothing_of_few(column: str, values: list[Any], before: int, rows: int) -> Stated:
    """A row group of one value and of NULL counts as one of NULL alone."""
    low, high, nulls = truth(column, values, 0, rows)
    return (None, None, len(values)) if nulls == len(values) - 1 > 0 else (low, high, nulls)


def wide(column: str, values: list[Any], before: int, rows: int) -> Stated:
    low, high, nulls = truth(column, values, 0, rows)
    if low is None:
        return low, high, nulls
    if column == "b":
        return low and not nulls, high or nulls > 0, nulls
    return (low, high, nulls) if column == "s" else (low - 1, high + 1, nulls)


def least_is_false(column: str, values: list[Any], before: int, rows: int) -> Stated:
    low, high, nulls = truth(column, values, 0, rows)
    return (low and not nulls if column == "b" and low is not None else low), high, nulls


MISTAKES: tuple[Mistake, ...] = (
    truth, no_nulls, nulls_of_the_first_page, nulls_of_each_page, nulls_of_all_groups,
    no_nulls_of_nothing, nothing_of_few, wide, least_is_false,
)  # fmt: skip


def content(rng: random.Random) -> Rows:
    count, nulls = rng.choice((1, 2, 3, 5, 8, 12)), rng.choice((0.0, 0.3, 0.6, 1.0))
    flags = rng.choice(((True,), (False,), (True, False)))
    pools = {"i": range(-5, 60), "n": range(9), "s": ["", "a", "bc", "d" * 40], "b": flags}

    def one(column: str) -> Any:
        if rng.random() < nulls:
            return None
        return rng.choice(pools[column]) if column in pools else rng.randrange(-8, 8) / 2

    return {name: [one(name) for _ in range(count)] for name in COLUMNS}


def spelled(column: str, value: Any) -> bytes:
    if column == "s":
        return bytes(value, "utf-8")
    return struct.pack({"i": "<q", "n": "<i", "b": "<?", "f": "<d"}[column], value)


def written(
    lake: Lake, name: str, rows: Rows, size: int, mistake: Mistake, wrong: Sequence[str]
) -> None:
    data = {column: pa.array(rows[column], kind) for column, (_, kind) in COLUMNS.items()}
    path = lake.write(name, data, row_group_size=size)
    raw, footer = footers.take_apart(path.read_bytes())
    footers.set_to(footer, 6, footers.BINARY, WRITER.encode())
    count = len(rows["i"])
    for number, group in enumerate(footers.groups(footer)):
        for column, chunk in zip(COLUMNS, footers.get(group, 1)[1], strict=True):
            values = rows[column][number * size : (number + 1) * size]
            before = rows[column][: number * size].count(None)
            states = mistake if column in wrong else truth
            low, high, nulls = states(column, values, before, count)
            fields: footers.Struct = [[3, footers.I64, nulls]]
            if low is not None:
                fields += [[5, footers.BINARY, spelled(column, high)]]
                fields += [[6, footers.BINARY, spelled(column, low)]]
            footers.set_to(footers.get(chunk, 3), 12, footers.STRUCT, fields)
    path.write_bytes(footers.put_together(raw, footer))
    age(path)


def table(root: Path, rng: random.Random, mistake: Mistake) -> tuple[Lake, dict[str, Rows]]:
    lake = Lake(root, tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))
    held = {f"f{number:02}": content(rng) for number in range(FILES)}
    wrong = list(COLUMNS) if rng.random() < 0.5 else rng.sample(list(COLUMNS), 1)
    least, many = rng.choice((0, 0, 4)), rng.choice((0, 0, 1))
    for name, rows in held.items():
        size = rng.choice((2, 3, 100))
        applies = len(rows["i"]) > least and (not many or len(rows["i"]) > size)
        written(lake, name, rows, size, mistake if applies else truth, wrong)
    return lake, held


def check(lake: Lake, held: dict[str, Rows]) -> dict[str, int]:
    """That all is true that the index says; and how much it says of files that were not read."""
    snapshot, told = lake.snapshot(), dict.fromkeys(("nulls", "exact", "rows", "booleans"), 0)
    names = [path.rpartition("/")[2] for path in snapshot.paths.to_pylist()]
    for at, name in enumerate(names):
        if (rows := int(snapshot.counted_rows[at])) >= 0:
            assert rows == len(held[name]["i"])
            told["rows"] += 1
    for column, (kind, _) in COLUMNS.items():
        found = lake.column(column, kind)
        for at, name in enumerate(names):
            values = held[name][column]
            known = [v for v in values if v is not None]
            if (nulls := int(found.null_count[at])) >= 0:
                assert nulls == values.count(None), (name, column, values)
                told["nulls"] += 1
            assert found.all_null is None or not found.all_null[at] or not known
            if not known or (found.lower_known is not None and not found.lower_known[at]):
                continue
            if column == "s":
                continue  # bounds of text are never exact
            low, high = found.lower[at], found.upper[at]
            assert low <= min(known) and max(known) <= high, (name, column, values)
            if found.exact is None or found.exact[at]:
                assert (low, high) == (min(known), max(known)), (name, column, values)
                told["booleans" if column == "b" else "exact"] += 1
    return told


def ask(lake: Lake, held: dict[str, Rows]) -> Counter[str]:
    """That plans read each file with a matching row, and answer aggregates rightly or not at all.

    A condition that leaves every file out but one is asked for, too: then `ALWAYS` counts.
    """
    planner, told = lake.planner(), Counter[str]()
    try:
        for column in COLUMNS:
            values = [v for rows in held.values() for v in rows[column]]
            known = [v for v in values if v is not None]
            some = {"i": "i > 20", "n": "n <> 3", "s": "s >= 'b'", "b": "b", "f": "f < 1"}[column]
            for text in (f"{column} IS NULL", f"{column} IS NOT NULL", some, f"NOT ({some})"):
                where, _ = parse_where(text)
                plan = planner.plan(ScanRequest(NAME, where))
                found = {
                    u.rpartition("/")[2] for b in plan.batches() for u in b.files.paths.to_pylist()
                }
                for name, rows in held.items():
                    if any(holds(text, some, v) for v in rows[column]):
                        assert name in found, (text, name, rows[column])
                told["skipped"] += len(held) - len(found)
                counted = aggregate(
                    planner.plan(ScanRequest(NAME, where)),
                    AggregateRequest((Aggregate("count", None),), ()),
                )
                if counted.rows is not None:
                    assert counted.rows == ((sum(holds(text, some, v) for v in values),),), text
                    told["counted"] += 1
            plan = planner.plan(ScanRequest(NAME, AlwaysTrue()))
            place = plan.context.resolve(column)
            for function, wanted in (
                ("count", len(known)),
                ("min", min(known)),
                ("max", max(known)),
            ):
                plan = planner.plan(ScanRequest(NAME, AlwaysTrue()))
                answer = aggregate(plan, AggregateRequest((Aggregate(function, place),), ()))
                if answer.rows is not None:
                    stated = wanted.encode() if isinstance(wanted, str) else wanted
                    assert answer.rows == ((stated,),), (function, column)
                    told[function] += 1
    finally:
        planner.lister.close()
    return told


def holds(text: str, some: str, value: Any) -> bool:
    if text.endswith("NULL"):
        return (value is None) != ("NOT" in text)
    if value is None:
        return False
    true = {
        "i > 20": lambda v: v > 20, "n <> 3": lambda v: v != 3, "s >= 'b'": lambda v: v >= "b",
        "b": lambda v: v, "f < 1": lambda v: v < 1,
    }[some](value)  # fmt: skip
    return bool(true) != text.startswith("NOT")


@pytest.mark.rule("37")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_nothing_untrue_is_believed_of_a_writer(mistake: Mistake, tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    for number in range(TABLES):
        rng = random.Random(f"{mistake.__name__}{seed(number)}")
        lake, held = table(tmp_path / str(number), rng, mistake)
        lake.build()
        told.update(check(lake, held))
        if number < ASKED:
            ask(lake, held)
    if mistake is truth:  # of the files that were read, all is known in any case
        assert told["nulls"] > TABLES * 6 * MOST and told["exact"] > TABLES * 4 * MOST


def alike(lake: Lake, mistake: Mistake = truth, files: int = 12) -> dict[str, Rows]:
    """Files of two row groups, as one program writes them day by day."""
    rng, held = random.Random(5), {}
    for number in range(files):
        rows: Rows = {name: [] for name in COLUMNS}
        for _ in range(200):
            for name, pool in (("i", range(99)), ("n", range(9)), ("s", "abcdef"), ("f", (0.5, 2))):
                rows[name].append(None if rng.random() < 0.3 else rng.choice(pool))
            rows["b"].append(None if rng.random() < 0.3 else number % 2 == 1)
        for name in COLUMNS:
            rows[name][0] = rows[name][99] = rows[name][100] = rows[name][199] = None
        held[f"f{number:02}"] = rows
        written(lake, f"f{number:02}", rows, 100, mistake, list(COLUMNS))
    return held


@pytest.mark.rule("37")
def test_a_writer_is_believed_once_files_have_shown_it(tmp_path: Path) -> None:
    """And a refresh reads no more files to learn of it, nor loses what was shown."""
    lake = Lake(tmp_path, tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))
    held = alike(lake)
    lake.build()
    told = check(lake, held)
    answers = ask(lake, held)
    assert answers["count"] == 5 and answers["min"] >= 3 and answers["max"] >= 3
    assert answers["skipped"] >= len(held)  # by the booleans alone
    assert told["rows"] == len(held) and told["exact"] == 3 * len(held)
    assert told["nulls"] > 4 * len(held) and told["booleans"] == len(held)
    (found,) = lake.snapshot().local.trust.not_believed()
    assert found.what == (
        "NULL counts but of BOOLEAN, BYTE_ARRAY, DOUBLE, INT32, INT64",
        "that bounds are values but of double, int",
    )
    held["later"] = held["f00"]
    written(lake, "later", held["f00"], 100, truth, [])
    assert lake.build().read == 1
    assert check(lake, held)["rows"] == len(held)
    shown = live_entries(*_newest(lake)).files["shown"]
    assert len(shown) - shown.null_count == MOST


def _newest(lake: Lake) -> tuple[Manifest, IndexStore]:
    found = lake.store().latest()
    assert found is not None
    return found, lake.store()


@pytest.mark.rule("37")
def test_bounds_that_a_file_has_shown_to_be_wrong_skip_no_file(tmp_path: Path) -> None:
    """Bounds are believed of every writer, but of one whose files were seen to miss values."""

    def of_the_last_page(column: str, values: list[Any], before: int, rows: int) -> Stated:
        return truth(column, values[-9:] if column == "i" else values, before, rows)

    lake = Lake(tmp_path, tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))
    held = alike(lake, of_the_last_page)
    lake.build()
    check(lake, held)
    found = lake.column("i", BIGINT)
    assert found.lower_known is not None and found.lower_known.sum() == MOST
    assert lake.column("n", INTEGER).lower_known is None
    (told,) = lake.snapshot().local.trust.not_believed()
    assert told.what[-1] == "bounds of int"


@pytest.mark.rule("37")
@pytest.mark.parametrize("writer", ["some writer", "Polars", ""])
def test_files_of_no_version_show_nothing(writer: str, tmp_path: Path) -> None:
    """Such a name is that of many programs."""
    lake = Lake(tmp_path, tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))
    held = alike(lake, files=5)
    for name in held:
        footers.renamed(lake.path(name), writer.encode())
        age(lake.path(name))
    lake.build()
    assert set(check(lake, held).values()) <= {0} or writer == "Polars"
    assert not live_entries(*_newest(lake)).files["shown"].drop_null()


@pytest.mark.rule("37")
def test_numbers_of_rows_that_a_file_has_shown_to_be_wrong(tmp_path: Path) -> None:
    lake = Lake(tmp_path, tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()))
    held = alike(lake)
    for number, name in enumerate(held):
        raw, footer = footers.take_apart(lake.path(name).read_bytes())
        for group in footers.groups(footer)[number % 2 :]:
            footers.set_to(group, 3, footers.I64, footers.get(group, 3) + 1)
            for chunk in footers.get(group, 1)[1]:
                footers.set_to(footers.get(chunk, 3), 5, footers.I64, footers.get(group, 3))
        footers.set_to(footer, 3, footers.I64, 202 - number % 2)
        lake.path(name).write_bytes(footers.put_together(raw, footer))
        age(lake.path(name))
    report = lake.build()
    assert not report.failed  # the files were read for this alone
    assert (lake.snapshot().counted_rows == -1).all()
