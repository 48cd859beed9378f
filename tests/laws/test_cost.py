"""The law of cost: twice the input is at most 2.5 times the work, and few calls for each unit.

Work is counted in calls of functions, Python's and C's, so that no test depends on a clock.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.app.api.session import Session
from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.rows import places_of
from bridge.index.kinds.kind import FileFacts
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import BIGINT, TRINO, Field, struct
from tests.tiers import nightly

MOST = 1_000
MOST_SECONDS = 0.5
# Trees that the library copies at each level as it writes them; it stops after some 80 levels.
COPIED = {"structs", "timestamps", "subqueries"}
NESTED = {
    "arrays": lambda n: "x = " + "array[" * n + "]" * n,
    "open arrays": lambda n: "x = " + "array[" * n,
    "rows": lambda n: "x = " + "row(" * n + "1" + ")" * n,
    "structs": lambda n: "x = " + "struct(" * n + "1" + ")" * n,
    "decimals": lambda n: "x = " + "decimal(" * n + "1" + ")" * n,
    "varchars": lambda n: "x = " + "varchar(" * n + "1" + ")" * n,
    "timestamps": lambda n: "x = " + "timestamp(" * n + "1" + ")" * n,
    "maps": lambda n: "x = " + "map[" * n + "]" * n,
    "casts": lambda n: "x = " + "cast(" * n + "y" + " as date)" * n,
    "array types": lambda n: "x = cast(y as " + "array<" * n + "int" + ">" * n + ")",
    "row types": lambda n: "x = cast(y as " + "row(a " * n + "int" + ")" * n + ")",
    "struct types": lambda n: "x = cast(y as " + "struct<a:" * n + "int" + ">" * n + ")",
    "parentheses": lambda n: "(" * n + "x = 1" + ")" * n,
    "open parentheses": lambda n: "x in " + "(" * n,
    "calls": lambda n: "x = " + "f(" * n + "y" + ")" * n,
    "lowered": lambda n: "lower(" * n + "x" + ")" * n + " = 'a'",
    "elements": lambda n: "x" + "[1]" * n + " = 1",
    "elements of elements": lambda n: "x" + "[y" * n + "]" * n + " = 1",
    "negations": lambda n: "not (" * n + "x = 1" + ")" * n,
    "is true": lambda n: "(" * n + "x = 1" + ") is true" * n,
    "cases": lambda n: "x = " + "case when y = 1 then " * n + "1" + " end" * n,
    "subqueries": lambda n: "x in " + "(select y from t where y in " * n + "(1)" + ")" * n,
    "lambdas": lambda n: "f(x, " + "y -> f(y, " * n + "1" + ")" * n + ")",
}
LONG = {
    "conjuncts": lambda n: "x = 1" + "".join(f" and y <> {i}" for i in range(n)),
    "disjuncts": lambda n: "x = 1" + "".join(f" or y = {i}" for i in range(n)),
    "unknown conjuncts": lambda n: "x = 1" + "".join(f" and f(y) = {i}" for i in range(n)),
    "unknown disjuncts": lambda n: "x = 1" + "".join(f" or f(y) = {i}" for i in range(n)),
    "ranges": lambda n: "x = 1" + "".join(f" or y between {i} and {i}" for i in range(n)),
    "list": lambda n: "x in (" + ", ".join(map(str, range(n))) + ")",
    "patterns": lambda n: "x = 1" + "".join(f" and f(y) like '{i}%'" for i in range(n)),
    "quotes": lambda n: "f(x) = '" + "''" * n + "'",
    "comments": lambda n: "/* a */" * n + "x = 1",
    "case": lambda n: "x = case" + "".join(f" when y = {i} then 1" for i in range(n)) + " end",
}
LISTS = {
    "double": lambda i: f"d {{}} {i}.25e0",
    "decimals of doubles": lambda i: f"d {{}} {i}.3",
    "decimals of floats": lambda i: f"f {{}} {i}.3",
    "decimals": lambda i: f"m {{}} {i}.3",
    "doubles of decimals": lambda i: f"m {{}} {i}.3e0",
    "numbers": lambda i: f"b {{}} {i}",
    "texts": lambda i: f"s {{}} 'a{i}'",
    "times": lambda i: f"t {{}} timestamp '2024-01-01 00:00:00.{i}'",
}


class TooMany(Exception):
    """More calls than any of these inputs may take."""


def calls(work: Callable[[], Any]) -> int:
    count = 0

    def count_one(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1
            if count > 3_000_000:
                raise TooMany

    threading.setprofile(count_one)
    sys.setprofile(count_one)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if nightly():
        _tell_cpu(work)
    return count


def _tell_cpu(work: Callable[[], Any]) -> None:
    """The CPU of the same work, as a figure in the summary of a nightly run. It fails nothing."""
    started = time.process_time()
    work()
    seconds = time.process_time() - started
    if seconds > MOST_SECONDS:
        case = os.environ.get("PYTEST_CURRENT_TEST", "")
        warnings.warn(f"{seconds:.2f} s of CPU: {case}", stacklevel=3)


def asked(text: str, dialect: str) -> None:
    try:
        expression, _ = parse_where(text, dialect)
        bind(expression, [Field("x", BIGINT), Field("y", BIGINT)], [], TRINO)
    except InvalidPredicate:
        pass  # an error is an answer, too, if it comes early


@pytest.mark.parametrize("dialect", ["trino", "hive", "spark"])
def test_a_condition_costs_in_proportion_to_its_length(dialect: str) -> None:
    for units, shapes in ((8, NESTED), (100, LONG)):
        for name, shape in shapes.items():
            asked(shape(2), dialect)  # what is imported and made once
            texts = [shape(n) for n in (units, 2 * units)]
            once, twice = (calls(partial(asked, text, dialect)) for text in texts)
            assert once <= MOST * len(texts[0]), (name, once)
            assert twice <= (3 if name in COPIED else 2.5) * once, (name, once, twice)
    for name, shape in NESTED.items():
        deep = shape(60)
        assert calls(partial(asked, deep, dialect)) <= MOST * len(deep), name


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    found = {}
    for files in (4, 8):
        root = tmp_path_factory.mktemp("table")
        for i in range(files):
            rows = {
                "d": pa.array([i + 0.25] * 5, pa.float64()),
                "f": pa.array([i + 0.25] * 5, pa.float32()),
                "m": pa.array([i] * 5).cast(pa.decimal128(25, 2)),
                "b": pa.array([i] * 5, pa.int64()),
                "s": pa.array([f"a{i}"] * 5),
                "t": pa.array([i] * 5, pa.timestamp("us")),
            }
            pq.write_table(pa.table(rows), root / f"{i}.parquet")
        found[files] = f"{root}/"
    return found


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("negated", [False, True])
def test_a_list_of_values_is_not_compared_anew_for_each_file(
    tables: dict[int, str], name: str, negated: bool
) -> None:
    def condition(values: int) -> str:
        column, *_ = LISTS[name](0).split()
        listed = ", ".join(LISTS[name](i).split(" ", 2)[2] for i in range(values))
        return f"{column} {'not ' * negated}in ({listed})"

    with Session(Config()) as session:

        def scanned(files: int, values: int) -> int:
            table = session.table(tables[files])
            return calls(lambda: table.scan(condition(values)).to_arrow())

        scanned(4, 10)
        once, twice = scanned(4, 200), scanned(8, 400)
    assert once <= MOST * 4 * 200
    assert twice <= 2.5 * once, (once, twice)


class Name(str):
    """A name whose comparisons are calls."""

    def lower(self) -> Name:
        return self

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_conditions_on_a_wide_struct_cost_in_proportion() -> None:
    def bound(fields: int) -> None:
        text = " and ".join(f"s.f{i} = 1" for i in range(fields))
        wide = Field("s", struct(*(Field(f"f{i}", BIGINT) for i in range(fields))))
        bind(parse_where(text)[0], [wide], [], TRINO)

    bound(2)
    once, twice = calls(partial(bound, 100)), calls(partial(bound, 200))
    assert once <= MOST * 100
    assert twice <= 2.5 * once, (once, twice)


def _wide(columns: int) -> pa.Table:
    return pa.table({f"c{i}": [i] for i in range(columns)})


WIDE: dict[str, tuple[Callable[[pa.Table, str], None], Callable[[int], pa.Table]]] = {
    "columns": (pq.write_table, _wide),
    "fields": (pq.write_table, lambda n: pa.table({"s": _wide(n).to_struct_array().chunk(0)})),
    "letters": (pq.write_table, lambda n: pa.table({f"ß{i}": [i] for i in range(n)})),
    "columns with a place": (lambda table, path: po.write_table(table, path), _wide),
}


@pytest.mark.parametrize("name", WIDE)
def test_what_is_known_of_wide_tables_costs_in_proportion(name: str, tmp_path: Path) -> None:
    write, make = WIDE[name]

    def counted(columns: int) -> int:
        root = tmp_path / str(columns)
        root.mkdir()
        write(make(columns), f"{root}/f")
        os.utime(root / "f", (10**9, 10**9))
        with bridge.connect(planner_cache_dir=f"{tmp_path}/cache") as session:
            index = session.table(f"{root}/").index
            index.build()
            return calls(lambda: index.statistics("wide"))

    counted(2)
    once, twice = counted(150), counted(300)
    assert once <= MOST * 150
    assert twice <= 2.5 * once, (once, twice)


def test_indexes_on_all_columns_of_a_wide_file_cost_in_proportion() -> None:
    def found(columns: int) -> None:
        stored = PhysicalType("INT64", "int", 64)
        paths = [(f"{'cß'[i % 2]}{i}",) for i in range(columns)]
        leaves = tuple(PhysicalColumn(path, stored) for path in paths)
        facts = FileFacts("f", 1, None, leaves, False, lambda ranges: [])
        assert [facts.leaf(path) for path in paths] == list(range(columns))

    once, twice = calls(partial(found, 100)), calls(partial(found, 200))
    assert once <= MOST * 100
    assert twice <= 2.5 * once, (once, twice)


def test_wide_files_cost_in_proportion_to_their_columns() -> None:
    def found(columns: int) -> int:
        names = [Name(f"c{i}") for i in range(columns)]
        wanted = [Name(f"c{i}") for i in range(columns)]
        return calls(lambda: places_of(names, wanted, Path("f").name))

    once, twice = found(100), found(200)
    assert once <= MOST * 100
    assert twice <= 2.5 * once, (once, twice)
