"""A lake for Iceberg's clients: typed columns, odd keys, NULL and NaN."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    decimal,
    struct,
)
from bridge.table.model import Column
from tests.support.lake import Lake

DAY = datetime.date(2024, 3, 1)
NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
NAMES = ("plain", "a b", "ä/ö", "50%", "it's", "k=v", None)
COLUMNS = (
    Column("id", BIGINT),
    Column("n", INTEGER),
    Column("d", DOUBLE),
    Column("f", FLOAT),
    Column("s", STRING),
    Column("b", BOOLEAN),
    Column("dec", decimal(10, 2)),
    Column("dt", DATE),
    Column("ts", TIMESTAMP),
    Column("st", struct(Field("x", BIGINT), Field("y", STRING))),
)
KEYS = (Column("month", INTEGER), Column("name", STRING))
DAY_KEY = Column("day", DATE)
_ZONED = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("ID", pa.int64()),
        ("n", pa.int32()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("dec", pa.decimal128(10, 2)),
        ("dt", pa.date32()),
        ("ts", _ZONED),
        ("st", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
)


@dataclass
class IcebergLake:
    """A table of some files; ``rows`` has all of its rows, with keys, as Arrow."""

    lake: Lake
    rows: pa.Table
    files: int

    @classmethod
    def make(cls, root: Path, seed: int, files: int = 40, *, days: bool = False) -> IcebergLake:
        rng = random.Random(seed)
        keys = (*KEYS, DAY_KEY) if days else KEYS
        lake = Lake(root, COLUMNS, keys)
        parts: list[pa.Table] = []
        values: dict[tuple[str | None, ...], None] = {}
        for number in range(files):
            month, name = rng.choice((1, 2, 3, None)), rng.choice(NAMES)
            day = rng.choice((DAY, DAY + datetime.timedelta(1), None))
            typed: list[Any] = [month, name, day] if days else [month, name]
            texts = tuple(None if v is None else str(v) for v in typed)
            values.setdefault(texts)
            data = _rows(rng, number)
            lake.write(f"f{number}.parquet", data, texts, row_group_size=5)
            found = data.rename_columns([c.lower() for c in data.column_names])
            kinds = [pa.int32(), pa.string(), pa.date32()]
            for key, value, kind in zip(keys, typed, kinds, strict=False):
                found = found.append_column(key.name, pa.array([value] * len(data), kind))
            parts.append(found)
        lake.partition_values = list(values)
        lake.build(nan=rng.choice(("footer", "scan")))
        return cls(lake, pa.concat_tables(parts), files)

    def ids(self, condition: str) -> list[int]:
        """The ids of rows that satisfy a condition in SQL, by DuckDB."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", self.rows)
        found = connection.execute(f"SELECT id FROM t WHERE {condition} ORDER BY id").fetchall()
        return [row[0] for row in found]


def _rows(rng: random.Random, number: int) -> pa.Table:
    count = 12
    base = number * 10

    def drawn(make: Any) -> list[Any]:
        none = rng.choice((0.0, 0.2, 1.0)) if rng.random() < 0.4 else 0.0
        return [None if rng.random() < none else make() for _ in range(count)]

    near = lambda: base + rng.randint(0, 9)  # noqa: E731
    floats = lambda: rng.choice((float(near()), float(near()), math.nan, -0.0))  # noqa: E731
    return pa.table(
        {
            "ID": [number * 1000 + i for i in range(count)],
            "n": drawn(near),
            "d": drawn(floats),
            "f": drawn(floats),
            "s": drawn(lambda: f"{rng.choice('abc')}{near():03d}"),
            "b": drawn(lambda: rng.random() < 0.5),
            "dec": drawn(lambda: Decimal(near()) + Decimal("0.25")),
            "dt": drawn(lambda: DAY + datetime.timedelta(near())),
            "ts": drawn(lambda: NOON + datetime.timedelta(hours=near())),
            "st": drawn(lambda: {"x": near(), "y": f"y{near()}"}),
        },
        SCHEMA,
    )


def sql_filter(rng: random.Random, depth: int, files: int) -> str:
    """A condition that DuckDB and Spark read alike: both order NaN last."""
    if depth and rng.random() < 0.75:
        one, other = sql_filter(rng, depth - 1, files), sql_filter(rng, depth - 1, files)
        if rng.random() < 0.25:
            return f"NOT ({one})"
        return f"({one} {'AND' if rng.random() < 0.6 else 'OR'} {other})"
    near = rng.randint(0, files * 10)
    literals = {
        "id": str(near * 100),
        "n": str(near),
        "d": f"{near}.0",
        "f": f"{near}.0",
        "s": f"'b{near:03d}'",
        "dec": f"{near}.25",
        "dt": f"DATE '{DAY + datetime.timedelta(near)}'",
        "ts": f"TIMESTAMP '{(NOON + datetime.timedelta(hours=near)).replace(tzinfo=None)}'",
        "st.x": str(near),
        "st.y": f"'y{near}'",
        "month": str(rng.randint(1, 4)),
        "name": rng.choice(("'plain'", "'50%'", "'k=v'", "'a b'", "'zz'")),
        "day": f"DATE '{DAY + datetime.timedelta(rng.randint(0, 2))}'",
    }
    name = rng.choice(list(literals))
    literal = literals[name]
    kind = rng.random()
    if kind < 0.12:
        return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
    if kind < 0.25:
        others = [literal, *(literals[name] for _ in range(2))]
        if name in ("id", "n", "month", "st.x"):
            others = [literal, str(int(literal) + 1), str(int(literal) + 30)]
        null = ", NULL" if rng.random() < 0.1 else ""
        return f"{name} {rng.choice(('', 'NOT '))}IN ({', '.join(others)}{null})"
    if kind < 0.35 and name in ("s", "name", "st.y"):
        return f"{name} {rng.choice(('', 'NOT '))}LIKE {literal[:3]}%'"
    return f"{name} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {literal}"
