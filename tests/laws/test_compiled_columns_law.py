"""A table whose columns change between every two steps of a query of Hive, against brute force.

The law: what the planner names holds no matching row as the query reads it, under the columns that
it was compiled with, whatever definition the planner holds, the newest is, or the index was built
under. Where all agree, files are skipped.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.kernel.types import INTEGER, parse_hive_type
from bridge.planner.splits.coalesce import SplitSettings
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.service.handler import PlannerHandler
from bridge.table.model import Column
from tests.support.lake import Lake
from tests.tiers import examples, seed

TABLES = examples(8, 20, 400)
ASKED = 25
Made = tuple[str, pa.DataType, tuple[Any, ...], str]
# What a query reads the files as, how they hold it, values, and the word for a literal.
READ: tuple[Made, ...] = (
    ("bigint", pa.int64(), (0, 5, 127, 128, 300, 70_000, 2**31, 2**32 + 5), "LONG"),
    ("int", pa.int32(), (0, 5, 127, 128, 300, 70_000), "LONG"),
    (
        "decimal(10,2)",
        pa.decimal128(10, 2),
        tuple(map(Decimal, ("0.00", "1.25", "1.30", "7.77", "99999.99"))),
        "DECIMAL",
    ),
    ("double", pa.float64(), (0.0, 0.1, 1.5, 3.3, 1e300), "FLOAT"),
    ("string", pa.string(), ("", "a", "ab", "abc", "zzz", "300"), "STRING"),
)
OTHERS = (
    *(type for type, *_ in READ),
    *("tinyint", "smallint", "float", "decimal(5,1)", "decimal(5,0)", "varchar(2)", "char(2)"),
    *("date", "boolean"),
)


def columns(type: str) -> tuple[Column, ...]:
    return (Column("k", INTEGER), Column("c", parse_hive_type(type)))


def asked(rng: random.Random, made: Made) -> tuple[ttypes.PlanRequest, str, Any]:
    type, _, pool, word = made
    operator = rng.choice(("EQUALS", "LESS_THAN", "LESS_THAN_EQUALS"))
    value = rng.choice(pool)
    literal = str(value) if word in ("DECIMAL", "FLOAT") else value
    leaf = {"operator": operator, "type": word, "column": "c", "literal": literal}
    # Of a disjunction the half that the type refutes must not vanish; no row has k = 9.
    never = {"operator": "EQUALS", "type": "LONG", "column": "k", "literal": 9}
    tree: dict[str, Any] = {"op": "LEAF", "leaf": 0}
    if rng.random() < 0.5:
        tree = {"op": "OR", "children": [tree, {"op": "LEAF", "leaf": 1}]}
    argument = {"leaves": [leaf, never], "tree": tree}
    told = {"columns": [["k", "int"], ["c", type]], "keys": []}
    request = ttypes.PlanRequest(
        schema_name="db",
        table_name="t",
        engine="hive",
        predicate=json.dumps({"version": 1, "search_argument": argument}),
        options={"table_columns": json.dumps(told)},
        protocol=PROTOCOL,
    )
    return request, operator, value


def matches(operator: str, held: Any, value: Any) -> bool:
    if operator == "EQUALS":
        return bool(held == value)
    return bool(held < value or (operator == "LESS_THAN_EQUALS" and held == value))


def named(found: ttypes.SkippableFiles) -> set[str]:
    """Names of files, each of one character; so the text of paths has one for each."""
    return set(found.files[len(found.files) - found.skipped :].decode())


def drawn_lake(directory: Path, number: int) -> tuple[random.Random, Made, Lake, dict[str, Any]]:
    """An indexed table of six files, of one row each: the value of `c` in each, by name."""
    rng = random.Random(seed(number))
    made = READ[number % len(READ)]
    type, stored, pool, _ = made
    lake = Lake(directory / str(number), columns(rng.choice((type, rng.choice(OTHERS)))))
    held = dict(zip("abcdef", rng.choices(pool, k=6), strict=True))
    for name, value in held.items():
        lake.write(name, pa.table({"k": pa.array([1], pa.int32()), "c": pa.array([value], stored)}))
    lake.build()
    return rng, made, lake, held


@pytest.mark.rule("41")
def test_a_file_with_a_matching_row_is_never_named(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number in range(TABLES):
        rng, made, lake, held = drawn_lake(tmp_path, number)
        type = made[0]
        planner = lake.planner()
        handler = PlannerHandler(planner, "127.0.0.1:1", SplitSettings())
        try:
            for _ in range(ASKED):
                lake.columns = columns(rng.choice((type, type, rng.choice(OTHERS))))
                request, operator, value = asked(rng, made)
                found = handler.list_skippable_files(request)
                left_out = named(found)
                wrong = {n for n in left_out if matches(operator, held[n], value)}
                assert not wrong, (number, lake.columns, operator, value, held, wrong)
                counts["left out"] += len(left_out)
                counts["told"] += bool(found.notes)
        finally:
            handler.close()
    assert counts["left out"] > TABLES * ASKED / 4, counts
    assert counts["told"], counts
