"""Index kinds through a real Trino: fewer files than min/max leaves, and the same rows."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, DOUBLE, INTEGER, STRING, decimal, varchar
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

FILES, ROWS = 24, 60
TABLE = "laws.kinds"
_CATEGORIES = [f"category {i}" for i in range(30)]
KINDS = (
    ("bloom", "id"),
    ("bloom", "tag"),
    ("values", "category"),
    ("values", "amount"),
    ("expression", "lower(name)"),
    ("expression", "n % 7"),
    ("bloom", "lower(tag)"),
    ("expression", "json_extract_scalar(doc, '$.user.city')"),
    ("bloom", "json_extract_scalar(doc, '$.user.id')"),
    ("geo", "lat,lon"),
    ("ndv", "*"),
)


@dataclass(frozen=True, slots=True)
class KindsTable:
    stack: Stack
    rows: list[dict[str, Any]]

    def ids(self, where: str, session: dict[str, str] | None = None) -> list[int]:
        found = self.stack.query(f"SELECT n FROM {TABLE} WHERE {where}", session)
        return sorted(row[0] for row in found)

    def kept(self, where: str) -> int:
        return self.stack.kept_files(f"SELECT sum(n) FROM {TABLE} WHERE {where}")


_WILD = (
    None, "", "no JSON", '{"user": [{"city": "city 07"}]}', '{"user": {"city": ["city 07"]}}',
    '{"user": {"city": "x", "city": "city 07"}}', '{"user": {"city": 7.50}}', '{"user": null}',
    '[{"user": {"city": "city 07"}}]', '{"user": {"city": "city 07"}} and more', "{}",
)  # fmt: skip


def _document(number: int, i: int) -> str | None:
    """In every sixth file texts that engines read differently: it says nothing of them."""
    if number % 6 == 5 and i % 4 == 0:
        return _WILD[i // 4 % len(_WILD)]
    user = {"city": f"city {number:02d}", "id": number * ROWS + i, "more": [1.5, {"city": 1}]}
    return json.dumps({"user": user, "city": "elsewhere"})


def _rows(number: int, rng: random.Random) -> list[dict[str, Any]]:
    few = rng.sample(_CATEGORIES, 3)
    return [
        {
            "n": number * ROWS + i,
            "id": rng.randrange(10**12),
            "tag": f"T{rng.randrange(10**6):06d}",
            "category": None if rng.random() < 0.1 else rng.choice(few),
            "amount": (number % 4) * 100 + i % 2,
            # Every case in each file, so that bounds of the name itself say little.
            "name": ("Zoe {:03d}", "zoe {:03d}", "ZOE {:03d}")[i % 3].format(number),
            "doc": _document(number, i),
            "lat": (number % 6) * 10 + rng.random(),
            "lon": (number * 7 % 24) * 10 - 120 + rng.random(),
        }
        for i in range(ROWS)
    ]


@pytest.fixture(scope="module")
def lake(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> KindsTable:
    """A table that nothing sorts, indexed by Spark with every kind."""
    directory = tmp_path_factory.mktemp("kinds") / "table"
    directory.mkdir()
    rng = random.Random(7)
    rows: list[dict[str, Any]] = []
    past = time.time() - 60
    for number in range(FILES):
        some = _rows(number, rng)
        rows += some
        columns = {name: pa.array([r[name] for r in some]) for name in some[0]}
        columns["amount"] = columns["amount"].cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2))
        path = directory / f"part-{number:03d}.parquet"
        filters = {"id": {"ndv": ROWS}} if number % 2 else None
        pq.write_table(pa.table(columns), path, bloom_filter_options=filters)
        os.utime(path, (past, past))
    _register(stack, directory)
    _index(stack, RequestedIndexes(KINDS))
    return KindsTable(stack, rows)


def _register(stack: Stack, directory: Path) -> None:
    location = f"file://{directory}"
    columns = (
        Column("n", INTEGER),
        Column("id", BIGINT),
        Column("tag", varchar(20)),
        Column("category", STRING),
        Column("amount", decimal(12, 2)),
        Column("name", STRING),
        Column("doc", STRING),
        Column("lat", DOUBLE),
        Column("lon", DOUBLE),
    )
    table = CatalogTable(TableName("laws", "kinds"), columns, (), location)
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, table.name, table, [Partition("", (), location)])


def _index(stack: Stack, asked: RequestedIndexes) -> None:
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    report = index_table(
        config, TABLE, asked=asked, progress=lambda done, total: None, say=lambda text: None
    )
    assert report["files"] == FILES and not report["failed"]


def _holds(lake: KindsTable, where: str, expected: list[int], most: int) -> None:
    assert lake.ids(where) == expected
    assert lake.ids(where, {"pruning_enabled": "false"}) == expected
    assert lake.kept(where) <= most, where


def test_a_point_among_random_numbers(lake: KindsTable) -> None:
    for row in lake.rows[:: ROWS * 5]:
        _holds(lake, f"id = {row['id']}", [row["n"]], 2)
        _holds(lake, f"tag = '{row['tag']}'", _where(lake, tag=row["tag"]), 3)
    ids = [row["id"] for row in lake.rows[:: ROWS * 8]]
    expected = sorted(row["n"] for row in lake.rows if row["id"] in ids)
    _holds(lake, f"id IN ({', '.join(map(str, ids))}, 5, 6)", expected, len(ids) + 4)
    _holds(lake, "id = 12345", [], 2)


def _where(lake: KindsTable, **wanted: Any) -> list[int]:
    return sorted(r["n"] for r in lake.rows if all(r[k] == v for k, v in wanted.items()))


def test_values(lake: KindsTable) -> None:
    files = {c: {r["n"] // ROWS for r in lake.rows if r["category"] == c} for c in _CATEGORIES}
    common = max(files, key=lambda c: len(files[c]))
    _holds(lake, f"category = '{common}'", _where(lake, category=common), len(files[common]))
    _holds(lake, "category = 'category 99'", [], 0)
    starting = [r["n"] for r in lake.rows if (r["category"] or "").startswith("category 1")]
    most = len({n // ROWS for n in starting})
    assert most < FILES
    _holds(lake, "category LIKE 'category 1%'", sorted(starting), most)
    within = [r["n"] for r in lake.rows if (r["category"] or "").endswith("y 7")]
    most = len({n // ROWS for n in within})
    assert 0 < most < FILES
    _holds(lake, "category LIKE 'c%_ 7'", within, most)
    _holds(lake, "category LIKE '%gory!_7' ESCAPE '!'", [], 0)
    _holds(lake, "upper(category) = 'CATEGORY 7'", within, most)
    amounts = [r["n"] for r in lake.rows if r["amount"] not in (0, 1)]
    _holds(lake, "amount NOT IN (0, 1)", sorted(amounts), FILES * 3 // 4)


def test_a_function_of_a_column(lake: KindsTable) -> None:
    name = lake.rows[ROWS * 9]["name"]
    expected = [r["n"] for r in lake.rows if r["name"].lower() == name.lower()]
    _holds(lake, f"lower(name) = '{name.lower()}'", expected, 1)
    starting = [r["n"] for r in lake.rows if r["name"].lower() >= "zoe 020"]
    _holds(lake, "lower(name) >= 'zoe 020'", starting, 4)
    sevens = [r["n"] for r in lake.rows if r["n"] % 7 == 3]
    _holds(lake, "n % 7 = 3", sevens, FILES)


def test_a_path_into_json(lake: KindsTable) -> None:
    city = "json_extract_scalar(doc, '$.user.city')"
    wild = FILES // 6
    for where, most in (
        (f"{city} = 'city 07'", 1 + wild),
        (f"{city} IN ('city 08', 'city 09', 'none')", 2 + wild),
        (f"{city} > 'city 20'", 3 + wild),
        (f"{city} LIKE 'city 1%'", 10 + wild),
        (f"NOT {city} < 'city 22'", 2 + wild),
        (f"{city} IS NULL", wild),
        ("json_extract_scalar(doc, '$.user.id') = '67'", 2 + wild),
    ):
        expected = lake.ids(where, {"pruning_enabled": "false"})
        assert expected, where
        _holds(lake, where, expected, most)
    # of other paths nothing is known, and they are not mistaken for the one that is
    assert len(lake.ids("json_extract_scalar(doc, '$.city') = 'elsewhere'")) > ROWS * FILES * 3 // 4
    assert lake.ids("json_extract_scalar(doc, '$.user.more[0]') = '1.5'")


def test_a_filter_of_a_function(lake: KindsTable) -> None:
    for row in lake.rows[:: ROWS * 9]:
        tag = row["tag"].lower()
        expected = [r["n"] for r in lake.rows if r["tag"].lower() == tag]
        _holds(lake, f"lower(tag) = '{tag}'", expected, 3)
    two = sorted(r["n"] for r in (lake.rows[0], lake.rows[ROWS * 20]))
    tags = ", ".join(f"'{lake.rows[i]['tag'].lower()}'" for i in (0, ROWS * 20))
    _holds(lake, f"lower(tag) IN ({tags}, 'none')", two, 5)


def test_boxes_and_distances(lake: KindsTable) -> None:
    row = lake.rows[ROWS * 11]
    south, west = int(row["lat"]), int(row["lon"])
    west -= west > row["lon"]
    box = f"lat BETWEEN {south} AND {south + 1} AND lon BETWEEN {west} AND {west + 1}"
    inside = [
        r["n"] for r in lake.rows if south <= r["lat"] <= south + 1 and west <= r["lon"] <= west + 1
    ]
    files = len({n // ROWS for n in inside})
    _holds(lake, box, sorted(inside), files)
    if not lake.stack.query("SHOW FUNCTIONS LIKE 'great_circle_distance'"):
        return  # a server without the geospatial plugin
    near = f"great_circle_distance(lat, lon, {row['lat']!r}E0, {row['lon']!r}E0) < 1"
    found = lake.ids(near)
    assert row["n"] in found and found == lake.ids(near, {"pruning_enabled": "false"})
    assert lake.kept(near) <= files + 1


def test_kinds_together_over_an_or(lake: KindsTable) -> None:
    row = lake.rows[5]
    where = f"(id = {row['id']} OR category = 'category 99')"
    _holds(lake, where, [row["n"]], 2)


def test_a_join_asks_the_filters(lake: KindsTable) -> None:
    ids = [row["id"] for row in lake.rows[:: ROWS * 6]]
    values = ", ".join(f"BIGINT '{i}'" for i in ids)
    sql = f"SELECT count(*) FROM {TABLE} t JOIN (VALUES {values}) AS v(k) ON t.id = v.k"
    assert lake.stack.query(sql) == [[len(ids)]]
    assert lake.stack.kept_files(sql) <= len(ids) + 3
