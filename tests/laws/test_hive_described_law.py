"""Hive's partitions that describe columns otherwise than their table, against brute force.

The law: what the planner lets Hive's hooks leave out holds no row that Hive would return. Hooks
skip nothing for a filter on a column that one of the partitions read describes otherwise, and all
else as if there were no such column. Files are as partitions describe them, or as the table does;
some partitions are of another format.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.engines.hive.translate import translate
from bridge.expression.nodes import Literal
from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.building.listed import owners_of
from bridge.kernel.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Field,
    Type,
    char,
    decimal,
    parse_hive_type,
    varchar,
)
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.index_view import IndexView
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.arrow import arrow_array, arrow_type
from tests.support.directories import list_directories
from tests.support.hive_described import Columns, Stored, otherwise, read_orc, read_parquet
from tests.support.hive_filters import Filter, Judge, Node, call, encoded
from tests.support.lake import NAME, Lake, age
from tests.support.strategies import Table
from tests.tiers import examples

TABLES = examples(12, 12, 600)
PARTITIONS, FILES, ASKED = 6, 3, 40
VECTORS = Path(__file__).parents[1] / "vectors" / "hive_described.json"
_DAY = 86_400_000_000
_TEXTS = (b"", b"a", b"ab", b"abc", b"abc ", b"abcd", b"300", b"44", b"z")
_WHOLE = (0, 1, -5, 44, 127)
POOLS: dict[Type, tuple[Any, ...]] = {
    TINYINT: _WHOLE,
    SMALLINT: (*_WHOLE, 128, 300),
    INTEGER: (*_WHOLE, 128, 300, 70_000),
    BIGINT: (*_WHOLE, 128, 300, 70_000, 2**32 + 44),
    decimal(10, 2): (0, 120, 125, 130, -125, 99_999, 1_234_567),
    decimal(5, 1): (0, 12, 13, -13, 9_999),
    decimal(12, 4): (0, 12_500, 12_510, 13_000, -12_500),
    FLOAT: (0.5, 1.5, -2.25, 0.10000000149011612),
    DOUBLE: (0.5, 1.5, -2.25, 0.1, 300.0),
    DATE: (0, 19_783, 19_784),
    TIMESTAMP: (0, 19_783 * _DAY, 19_783 * _DAY + 3_600_000_000, 19_784 * _DAY),
    STRING: _TEXTS,
    varchar(10): _TEXTS,
    varchar(2): (b"", b"a", b"ab", b"44"),
    char(4): (b"", b"a", b"ab", b"abc", b"abcd"),
}
OF_TABLES = (INTEGER, BIGINT, decimal(10, 2), DOUBLE, DATE, TIMESTAMP, STRING, varchar(10))
OTHERS: dict[Type, tuple[Type, ...]] = {
    INTEGER: (TINYINT, SMALLINT, BIGINT, STRING, decimal(10, 2)),
    BIGINT: (TINYINT, INTEGER, STRING, varchar(2)),
    decimal(10, 2): (decimal(5, 1), decimal(12, 4), DOUBLE, STRING, INTEGER),
    DOUBLE: (FLOAT, decimal(10, 2), STRING),
    DATE: (TIMESTAMP, STRING),
    TIMESTAMP: (DATE, STRING),
    STRING: (varchar(2), char(4), INTEGER, DATE),
    varchar(10): (varchar(2), STRING, char(4)),
}
_LITERALS = {INTEGER: "LONG", BIGINT: "LONG", DOUBLE: "FLOAT", DATE: "DATE", STRING: "STRING"}
_OPERATORS = {
    "EQUALS": "GenericUDFOPEqual",
    "NULL_SAFE_EQUALS": "GenericUDFOPEqualNS",
    "LESS_THAN": "GenericUDFOPLessThan",
    "LESS_THAN_EQUALS": "GenericUDFOPEqualOrLessThan",
}


@dataclass(frozen=True)
class Described:
    """A partition: its own columns, its format, and the rows of its files by URI."""

    own: list[tuple[str, Type]]
    format: str
    files: dict[str, list[Stored]]

    def read(self, table: Columns, row: Stored) -> list[Any]:
        return read_orc(table, row) if self.format == "orc" else read_parquet(table, self.own, row)

    def otherwise(self, table: Columns) -> set[str]:
        return set() if self.format == "orc" else otherwise(table, self.own)


def described_otherwise(rng: random.Random, table: Columns) -> list[tuple[str, Type]]:
    """The columns of a table, with some of what may happen to it after a partition was added."""
    own = list(table)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        at = rng.randrange(len(own))
        name, type = own[at]
        match rng.choice(("type", "type", "type", "name", "case", "swap", "end", "middle", "more")):
            case "type":
                own[at] = name, rng.choice(OTHERS.get(type, (type,)))
            case "name":
                own[at] = f"old_{name}", type
            case "case":
                own[at] = name.upper(), type
            case "swap":
                other = rng.randrange(len(own))
                own[at], own[other] = own[other], own[at]
            case "end" if len(own) > 1:
                own.pop()
            case "middle" if len(own) > 1:
                own.pop(at)
            case "more":
                own.insert(rng.choice((at, len(own))), (f"dropped{rng.randrange(10**6)}", INTEGER))
    return own


def rows_of(rng: random.Random, columns: Columns) -> list[Stored]:
    """Rows of one file: few values of each column, so that files differ."""
    few = {name: rng.sample(POOLS[type], rng.choice((1, 1, 2))) for name, type in columns}
    nulls = {name: rng.choice((0.0, 0.0, 0.4, 1.0)) for name, _ in columns}
    return [
        {n: (t, None if rng.random() < nulls[n] else rng.choice(few[n])) for n, t in columns}
        for _ in range(rng.choice((1, 2, 3)))
    ]


class Partitioned(Lake):
    """A table whose partitions differ in what they say of themselves."""

    def fill(self, rng: random.Random) -> list[Described]:
        table = [(c.name, c.type) for c in self.columns]
        made = []
        for p in range(PARTITIONS):
            own = described_otherwise(rng, table) if p else list(table)
            format = "orc" if p == PARTITIONS - 1 else "parquet"
            files = {}
            for i in range(FILES):
                written = table if format == "orc" or rng.random() < 0.3 else own
                rows = rows_of(rng, written)
                path = self.directory((f"{p}",)) / f"f{i}"
                path.parent.mkdir(parents=True, exist_ok=True)
                arrays = {
                    n: arrow_array([row[n][1] for row in rows], t).cast(arrow_type(t))
                    for n, t in written
                }
                (po if format == "orc" else pq).write_table(pa.table(arrays), path)
                age(path)
                files[self._uri(path)] = rows
            made.append(Described(own, format, files))
        self.partition_values = [(f"{p}",) for p in range(PARTITIONS)]
        listed = list_directories(self.all_partitions(), self.storage)
        of_orc = [f"p={p}" for p, each in enumerate(made) if each.format == "orc"]
        numbers = [int(owners_of(text)[0] in of_orc) for text in listed.owners.to_pylist()]
        listed = replace(listed, formats=("parquet", "orc"), format=np.array(numbers, np.int32))
        collector = ThreadCollector(self.storage)
        build_index(self.table(), lambda: listed, self.store(), collector=collector)
        return made


def search_argument(rng: random.Random, of: Filter, data: Table) -> tuple[str, Node]:
    """A document with a search argument, and the same as a tree."""
    leaves: list[dict[str, Any]] = []

    def node(depth: int) -> tuple[dict[str, Any], Node]:
        kind = rng.random() if depth else 1.0
        if kind < 0.25:
            tree, same = node(depth - 1)
            return {"op": "NOT", "children": [tree]}, call("GenericUDFOPNot", same)
        if kind < 0.6:
            op = rng.choice(("AND", "OR"))
            parts = [node(depth - 1) for _ in range(2)]
            name = f"GenericUDFOP{op.capitalize()}"
            return {"op": op, "children": [t for t, _ in parts]}, call(name, *(s for _, s in parts))
        leaves.append({})
        tree = {"op": "LEAF", "leaf": len(leaves) - 1}
        return tree, leaf(leaves[-1])

    def leaf(made: dict[str, Any]) -> Node:
        (name,) = path = rng.choice(list(data.paths))
        type = data.paths[path]
        column = of.column(path, type)
        named = _LITERALS.get(type, "DECIMAL" if type == decimal(10, 2) else "STRING")
        made |= {"type": named, "column": name, "column_type": str(type)}
        if rng.random() < 0.2 or type == TIMESTAMP:
            made |= {"operator": "IS_NULL", "literal": None}
            return call("GenericUDFOPNull", column)
        values = [rng.choice(data.pools[path]) for _ in range(2)]
        constants = [of.constant(Literal(value, type)) for value in values]
        if rng.random() < 0.2:
            made |= {"operator": "IN", "literal_list": [encoded(v, type) for v in values]}
            return call("GenericUDFIn", column, *constants)
        operator = rng.choice(list(_OPERATORS))
        made |= {"operator": operator, "literal": encoded(values[0], type)}
        return call(_OPERATORS[operator], column, constants[0])

    tree, same = node(2)
    argument = {"leaves": leaves, "tree": tree}
    return json.dumps({"version": 1, "search_argument": argument}), same


def asked(seed: int, root: Path) -> Counter[str]:
    """Asks one random table.

    Returns:
        How many files were left out, by what their partitions are; and under ``needed`` how many
        with matching rows would be without the rule of the hooks.
    """
    rng = random.Random(seed)
    types = [rng.choice(OF_TABLES) for _ in range(4)]
    table = [(f"c{i}", type) for i, type in enumerate(types)]
    lake = Partitioned(root, tuple(Column(*each) for each in table), (Column("p", INTEGER),))
    partitions = lake.fill(rng)
    view = IndexView(lake.snapshot())
    paths = {(name,): type for name, type in table}
    pools = {path: list(POOLS[type]) for path, type in paths.items()}
    data = Table(tuple(Field(*each) for each in table), paths, pools, [])
    rows = [
        [(uri, named(table, each.read(table, row))) for uri, f in each.files.items() for row in f]
        for each in partitions
    ]
    counts: Counter[str] = Counter()
    for _ in range(ASKED):
        of = Filter(rng, data)
        if rng.random() < 0.4:
            document, tree = search_argument(rng, of, data)
        else:
            tree = of.condition(2)
            document = json.dumps({"version": 1, "expression": tree})
        request = ScanRequest(NAME, translate(document).expression, semantics=HIVE)
        found = list_skippable_files(lake.table(), view, request)
        never = set(found.paths.to_pylist())
        judges = [Judge(of, data, vectorised=each) for each in (True, False)]
        scan = rng.sample(range(PARTITIONS), rng.choice((1, 1, 2, 3)))
        told = {column for p in scan for column in partitions[p].otherwise(table)}
        concerned = not told.isdisjoint(path[0] for path in of.columns.values())
        for p in scan:
            each = partitions[p]
            matching = {
                uri for uri, row in rows[p] for judge in judges if judge.truth(tree, row) is True
            }
            left_out = never & each.files.keys()
            if concerned and each.format == "parquet":
                counts["needed"] += len(left_out & matching)
                continue
            assert not left_out & matching, (document, each.own, left_out & matching)
            counts[each.format if not p or each.format == "orc" else "described"] += len(left_out)
    return counts


@pytest.mark.rule("41")
def test_no_row_of_hives_is_left_out(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(TABLES):
        counts += asked(seed, tmp_path / f"{seed}")
    # The law is not kept by reading everything, nor without the rule of the hooks.
    assert all(counts[kind] > 2 * TABLES for kind in ("parquet", "described", "orc", "needed")), (
        counts
    )


def named(table: Columns, values: list[Any]) -> dict[tuple[str, ...], Any]:
    return {(name,): value for (name, _), value in zip(table, values, strict=True)}


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text()), ids=lambda v: v["name"])
def test_the_rule_is_that_of_the_hooks(vector: dict[str, Any]) -> None:
    own = list(zip(vector["own"][::2], map(parse_hive_type, vector["own"][1::2]), strict=True))
    table = [("a", INTEGER), ("b", decimal(10, 2)), ("s", STRING)]
    assert otherwise(table, own) == set(vector["otherwise"])
