"""Hive reads views of tables of segments in place of their facts: the same rows, and by the log.

The session setting ``skipbridge.pruning_enabled=false`` reads the facts, all of them, and is the
oracle: in one HiveServer2, fetched, in Tez and in MapReduce.
"""

from __future__ import annotations

import math
import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import add, compaction, manage, tables, views
from bridge.segments.commands.opened import open_segments
from bridge.table.segments.views import up_to_date_files
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, PRUNING, TEZ, HookedHive, hooked_hive
from tests.support.views_of import states_of_views
from tests.tiers import examples, seed

pytestmark = pytest.mark.full

SCHEMA = "hive_views"
MAPREDUCE = {
    **TEZ,
    "hive.execution.engine": "mr",
    "hive.exec.submit.local.task.via.child": "false",
}
ENGINES = {"fetch": FETCH, "tez": TEZ, "mr": MAPREDUCE}
MODES = pytest.mark.parametrize("settings", ENGINES.values(), ids=ENGINES)
FORMATS = ("parquet", "orc", "csv")
SEGMENTS, ROWS = 3, 30
QUERIES = examples(2, 2, 100)
"""Random queries of each format in each mode; fetched four times as many."""
_READ = re.compile(
    r"skipbridge: (\S+) reads (\d+) files of its segments(?:, of the views ([^(]+))? \(generation"
)
PLAIN = {
    "id": "int",
    "big": "bigint",
    "small": "smallint",
    "tiny": "tinyint",
    "flag": "boolean",
    "r": "double",
    "f": "float",
    "s": "string",
}
OTHERS = {
    "v": "varchar(5)",
    "c": "char(4)",
    "price": "decimal(9,2)",
    "d": "date",
    "at": "timestamp",
    "cold": "string",
}
COLUMNS = PLAIN | OTHERS
HOT = {"parquet": [*PLAIN, "v"], "orc": [*PLAIN], "csv": [*PLAIN, "v", "price"]}
"""The columns that Hive reads alike from a view, by the format of the facts."""
VALUES: dict[str, list[Any]] = {
    "big": [0, 1, -5, 2**31 - 1],
    "small": [0, -32768, 32767],
    "tiny": [0, -128, 127],
    "flag": [True, False],
    "r": [0.0, -0.0, 1.5, math.nan, math.inf, 1e300, 0.1],
    "f": [0.0, -0.0, 2.5, math.nan, 16777216.0, 0.10000000149011612],
    "s": ["", "a", "b c", "é日", "NULL?"],
    "v": ["", "ab", "abcde", "ééééé"],
    "c": ["ab", "a", "abcd"],
    "price": [Decimal("1.50"), Decimal("-3.25"), Decimal("0.00"), Decimal("1234567.89")],
    "d": [date(2024, 1, 1), date(1999, 12, 31)],
    "at": [datetime(2024, 5, 5, 1, 2, 3), datetime(1970, 1, 1)],
    "cold": ["x", "y"],
}
ARROW = {
    "id": pa.int32(), "big": pa.int64(), "small": pa.int16(), "tiny": pa.int8(),
    "flag": pa.bool_(), "r": pa.float64(), "f": pa.float32(), "s": pa.string(), "v": pa.string(),
    "c": pa.string(), "price": pa.decimal128(9, 2), "d": pa.date32(), "at": pa.timestamp("us"),
    "cold": pa.string(),
}  # fmt: skip


def facts(number: int) -> pa.Table:
    ids = [number * ROWS + i for i in range(ROWS)]
    columns = {"id": pa.array(ids, pa.int32())}
    for at, (name, values) in enumerate(VALUES.items()):
        drawn = [None if (i + at) % 7 == 0 else values[(i * 5 + at) % len(values)] for i in ids]
        columns[name] = pa.array(drawn, ARROW[name])
    return pa.table(columns)


def write(path: Path, table: pa.Table, number: int = 0) -> None:
    """The rows in one of the ways in which writers store them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            if number % 3 == 1:  # as Spark stores decimals; binary text; a narrower integer
                place = table.schema.get_field_index("s")
                table = table.set_column(place, "s", table["s"].cast(pa.binary()))
                place = table.schema.get_field_index("big")
                table = table.set_column(place, "big", table["big"].cast(pa.int32()))
                pq.write_table(table, path, store_decimal_as_integer=True)
            elif number % 3 == 2:  # text longer than the column
                place = table.schema.get_field_index("v")
                long = pa.array(["abcdefgh"] * len(table))
                pq.write_table(table.set_column(place, "v", long), path)
            else:
                pq.write_table(table, path)
        case ".orc":
            po.write_table(table, path)
        case ".csv":
            lines = (",".join(map(_text, row.values())) for row in table.to_pylist())
            path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    os.utime(path, (1.7e9, 1.7e9))


def _text(value: Any) -> str:
    if value is None:
        return "~"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value:  # a view has only those that no parser rounds
        return repr(round(value * 4) / 4) if abs(value) < 1e6 else "7.25"
    return str(value)


@dataclass(frozen=True, slots=True)
class Read:
    """What a query read, by the hooks' log.

    Attributes:
        views: of all scans, sorted.
        facts: scans that read no view.
    """

    rows: list[tuple[Any, ...]]
    files: int
    views: list[str]
    facts: int


class World:
    def __init__(self, hive: HookedHive, root: Path) -> None:
        self.hive, self.root = hive, root
        self._oracle: dict[tuple[str, ...], list[str]] = {}
        self.config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})

    def table(self, name: str, format: str, **more: Any) -> str:
        columns = more.pop("columns", COLUMNS)
        full = f"{SCHEMA}.{name}"
        given = {"csv.null": "~"} if format == "csv" else {}
        tables.create_table(
            self.config,
            full,
            format=format,
            columns=list(columns.items()),
            properties=given,
            **more,
        )
        return full

    def add(self, table: str, segment: int, format: str, files: int = 2) -> None:
        root = self.root / table / str(segment)
        for i in range(files):
            number = segment * files + i
            write(root / f"{i}.{format}", facts(number), number)
        add.add_segment(self.config, table, paths=[str(root)], local=True, format=format)

    def view(self, table: str, name: str, columns: Sequence[str], **more: Any) -> None:
        given = {"sort_by": ["id"]} | more
        views.create_view(self.config, table, name=name, columns=list(columns), local=True, **given)

    def files_of(self, table: str, name: str) -> int:
        with open_segments(self.config, table) as opened:
            definition = opened.manifest.definition
            view = definition.view(name)
            assert view is not None
            held = [up_to_date_files(definition, view, one) for one in opened.manifest.readable]
            return sum(one.files.count for one in held if one is not None)

    def read(self, sql: str, settings: dict[str, str]) -> Read:
        log = self.hive.server.server.log
        before = log.stat().st_size
        rows = self.hive.ask(sql, settings).rows
        with log.open("rb") as lines:
            lines.seek(before)
            found = _READ.findall(lines.read().decode("utf-8", "replace"))
        named = sorted({one for _, _, views in found for one in views.split(", ") if one})
        return Read(rows, sum(int(n) for _, n, _ in found), named, sum(not v for *_, v in found))

    def same(self, sql: str, settings: dict[str, str], kept: bool = True) -> Read:
        """What a query reads, after comparing its rows with those of the facts alone.

        Args:
            kept: the table does not change: a query is asked once for the rows of the facts.
        """
        key = (sql, *sorted(settings.values()))  # MapReduce and Tez compare NaN otherwise
        if not kept or key not in self._oracle:
            off = self.read(sql, {**settings, PRUNING: "false"})
            assert not off.views
            self._oracle[key] = sorted(map(repr, off.rows))
        found = self.read(sql, settings)
        assert sorted(map(repr, found.rows)) == self._oracle[key], sql
        return found

    def viewed(self, sql: str, settings: dict[str, str] = FETCH) -> list[str]:
        return self.same(sql, settings, kept=False).views


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as (hive, _):
        made = World(hive, tmp_path_factory.mktemp("hive_views"))
        with MetastoreClient(hive.metastore_uri) as client:
            client.create_database(SCHEMA, f"file://{made.root}/warehouse")
        for format in FORMATS:
            name = made.table(format, format)
            for segment in range(SEGMENTS):
                made.add(name, segment, format)
            made.view(name, "hot", HOT[format])
            made.view(name, "rest", ["id", *(["c"] if format == "parquet" else []), "price", "d"])
            made.view(name, "times", ["id", "at"])
            states = {
                view: set(of_segments.values())
                for view, of_segments in states_of_views(made.config, name).items()
            }
            assert states["hot"] == states["rest"] == {"built"}, states
        yield made


@MODES
@pytest.mark.parametrize("format", FORMATS)
def test_hot_columns_are_read_from_the_view(
    world: World, format: str, settings: dict[str, str]
) -> None:
    name = f"{SCHEMA}.{format}"
    files = world.files_of(name, "hot")
    assert files < 2 * SEGMENTS
    for sql in (
        f"SELECT {', '.join(HOT[format])} FROM {name}",
        f"SELECT s, big FROM {name} WHERE r IS NOT NULL AND flag",
        f"SELECT count(*) FROM {name} WHERE f > 2 OR s = ''",
        f"SELECT small, count(tiny), max(s), sum(id) FROM {name} GROUP BY small",
        f"SELECT id, s FROM {name} WHERE id >= 0 ORDER BY id DESC LIMIT 7",
    ):
        found = world.same(sql, settings)
        assert found.views == ["hot"] and found.facts == 0, sql
        assert found.files == files, sql
    few = world.same(f"SELECT id, s FROM {name} WHERE id < 5", settings)
    assert few.views == ["hot"] and len(few.rows) == 5 and few.files == 1
    count = world.same(f"SELECT count(*) FROM {name}", settings)
    assert count.rows == [(2 * SEGMENTS * ROWS,)] and len(count.views) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_what_hive_may_read_otherwise_is_read_from_facts(world: World, format: str) -> None:
    name = f"{SCHEMA}.{format}"
    for column in ("price", "d", "at", *(["c"] if format == "parquet" else [])):
        alike = column in HOT[format]
        for sql in (
            f"SELECT id, {column} FROM {name}",
            f"SELECT id FROM {name} WHERE {column} IS NOT NULL",
        ):
            assert bool(world.same(sql, FETCH).views) == alike, sql
    for sql in (f"SELECT id, cold FROM {name}", f"SELECT * FROM {name}"):
        assert world.same(sql, FETCH).views == [], sql
    for settings in ENGINES.values():
        assert world.same(f"SELECT id FROM {name} WHERE cold = 'x'", settings).views == []


@pytest.mark.parametrize("settings", [TEZ, MAPREDUCE], ids=["tez", "mr"])
@pytest.mark.parametrize("format", FORMATS)
def test_several_scans_of_one_table(world: World, format: str, settings: dict[str, str]) -> None:
    name = f"{SCHEMA}.{format}"
    for sql in (
        f"SELECT a.id, b.cold FROM {name} a JOIN {name} b ON a.id = b.id WHERE a.r > 1",
        f"SELECT a.id, b.s FROM {name} a JOIN {name} b ON a.id = b.id WHERE b.flag",
        f"SELECT a.s, b.cold, c.d FROM {name} a LEFT JOIN {name} b ON a.id = b.id + 1 "
        f"JOIN {name} c ON a.id = c.id WHERE a.id < 20",
    ):
        world.same(sql, settings)
    world.same(sql, {**settings, "hive.auto.convert.join": "false"})
    for sql in (
        f"SELECT id FROM {name} WHERE id IN (SELECT id + 10 FROM {name} WHERE cold = 'x')",
        f"SELECT s, count(*) FROM (SELECT s FROM {name} UNION ALL SELECT cold FROM {name}) u "
        "GROUP BY s",
    ):
        world.same(sql, settings)


QUESTIONS = ("project", "project", "group", "join", "union", "in", "count", "distinct")
happened: Counter[str] = Counter()


def question(rng: random.Random, name: str, format: str) -> str:
    """A query, mostly of columns that Hive reads from the view."""
    others = [c for c in COLUMNS if c not in HOT[format]]
    share = rng.choice((0.0, 0.0, 0.15))

    def column(among: Sequence[str] = ()) -> str:
        pool = others if rng.random() < share else among or HOT[format]
        return rng.choice(list(pool))

    def where(prefix: str = "") -> str:
        parts = []
        for _ in range(rng.choice((0, 1, 1, 2))):
            name = column()
            values = [*map(_literal, VALUES.get(name, [5, 40, 111]))]
            test = rng.choice(("=", "<", ">=", "<>", "IS NULL", "IS NOT NULL", "IN"))
            operand = f" ({', '.join(rng.sample(values, 2))})" if test == "IN" else ""
            if test in ("=", "<", ">=", "<>"):
                operand = f" {rng.choice(values)}"
            parts.append(f"{prefix}{name} {test}{operand}")
        return " WHERE " + rng.choice((" AND ", " OR ")).join(parts) if parts else ""

    exact = [c for c in HOT[format] if c not in ("r", "f")]  # whose order and sums are exact
    kind = rng.choice(QUESTIONS)
    match kind:
        case "group":
            key, most = column(exact), column(exact)
            return f"SELECT {key}, count(*), max({most}) FROM {name}{where()} GROUP BY {key}"
        case "join":
            on = rng.choice(("a.id = b.id", "a.id = b.id + 7"))
            kept = where("a.")
            return f"SELECT a.{column()}, b.{column()} FROM {name} a JOIN {name} b ON {on}{kept}"
        case "union":
            one, two = (f"SELECT cast({column()} AS string) z FROM {name}" for _ in "ab")
            return f"{one}{where()} UNION ALL {two}{where()}"
        case "in":
            inner = f"SELECT id + {rng.randint(0, 30)} FROM {name}{where()}"
            return f"SELECT {column()} FROM {name} WHERE id IN ({inner})"
        case "count":
            return f"SELECT count(*), count({column()}) FROM {name}{where()}"
        case "distinct":
            return f"SELECT DISTINCT {column(exact)} FROM {name}{where()}"
    shown = ", ".join({column() for _ in range(rng.randint(1, 4))})
    return f"SELECT {shown} FROM {name}{where()}"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"cast('{value}' AS double)"
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
        case str():
            return f"'{value}'"
    return str(value)


@MODES
@pytest.mark.parametrize("format", FORMATS)
def test_random_queries(world: World, format: str, settings: dict[str, str]) -> None:
    rng = random.Random(seed(40 + FORMATS.index(format)))  # the same for each mode
    for _ in range(4 * QUERIES if settings is FETCH else QUERIES):
        found = world.same(question(rng, f"{SCHEMA}.{format}", format), settings)
        happened.update(views=len(found.views), facts=found.facts, rows=len(found.rows))


def test_all_of_it_happened() -> None:
    if happened:
        assert happened["views"] > QUERIES and happened["facts"] > 0 and happened["rows"] > 300


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_each_segment_is_read_as_it_is_built(world: World, settings: dict[str, str]) -> None:
    """A view behind its segments, a segment taken away, others merged, a column of another type."""
    short = next(name for name, one in ENGINES.items() if one is settings)
    name = world.table(f"changes_{short}", "parquet")
    world.add(name, 0, "parquet")
    world.view(name, "hot", HOT["parquet"], deferred=True)
    sql = f"SELECT id, s, big FROM {name} WHERE id >= 0"

    def check(files: int, seen: bool) -> None:
        found = world.same(sql, settings, kept=False)
        assert bool(found.views) == seen and found.files == files

    check(2, False)
    views.rebuild_view(world.config, name, name="hot", local=True)
    built = world.files_of(name, "hot")
    check(built, True)
    world.add(name, 1, "parquet")
    assert world.files_of(name, "hot") == built
    check(built + 2, True)
    manage.delete_segments(world.config, name, ids=["0"])
    check(2, False)
    views.rebuild_view(world.config, name, name="hot", local=True)
    world.add(name, 2, "parquet")
    compaction.compact(world.config, name, kind="custom", ids=["1", "2"])
    views.rebuild_view(world.config, name, name="hot", local=True)
    merged = world.files_of(name, "hot")
    check(merged, True)
    tables.change_type(world.config, name, "id", "bigint")
    check(4, False)
    tables.rename_table(world.config, name, f"{name}_anew")
    sql = f"SELECT s, big FROM {name}_anew"
    views.rebuild_view(world.config, f"{name}_anew", name="hot", local=True)
    assert world.viewed(sql, settings) == ["hot"]
    views.enable_view(world.config, f"{name}_anew", name="hot", enabled=False)
    assert world.viewed(sql, settings) == []


def test_partition_columns_and_segments_of_other_formats(world: World) -> None:
    columns = {"id": "int", "s": "string", "price": "decimal(9,2)"}
    name = world.table("days", "csv", columns=columns, partition_columns=[("day", "date")])
    root = world.root / "days"
    for day in range(1, 4):
        path = root / f"day=2024-05-0{day}" / "f.csv"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{10 * day + i},t{i},{i}.25\n" for i in range(5)))
    null = root / "day=__HIVE_DEFAULT_PARTITION__" / "f.csv"
    null.parent.mkdir()
    null.write_text("90,~,~\n")
    for path in root.rglob("*.csv"):
        os.utime(path, (1.7e9, 1.7e9))
    add.add_segment(world.config, name, paths=[str(root)], local=True)
    world.view(name, "v", ["id", "price"])
    for settings in ENGINES.values():
        sql = f"SELECT id, price, day FROM {name} WHERE day > DATE '2024-05-01' OR day IS NULL"
        found = world.same(sql, settings)
        assert found.views == ["v"] and found.files == 3 and len(found.rows) == 11
        sums = f"SELECT day, sum(price), count(id) FROM {name} GROUP BY day"
        assert world.viewed(sums, settings) == ["v"]
        assert world.viewed(f"SELECT day, count(*) FROM {name} GROUP BY day", settings) == ["v"]
    path = world.root / "more" / "day=2024-06-01" / "f.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": 700, "s": "x", "price": 1.5}\n')
    os.utime(path, (1.7e9, 1.7e9))
    add.add_segment(world.config, name, paths=[str(path)], local=True, format="json")
    assert world.viewed(f"SELECT id, price FROM {name}") == []


def test_explain_says_what_a_scan_reads(world: World) -> None:
    name = f"{SCHEMA}.parquet"

    def explained(columns: str, where: str = "", **more: str) -> str:
        rows = world.hive.ask(f"EXPLAIN SELECT {columns} FROM {name}{where}", FETCH | more).rows
        text = "\n".join(str(row[0]) for row in rows)
        said = re.search(r'skipbridge(?:":"| )([^"\n]*)', text)
        assert said, text
        return said[1]

    files = world.files_of(name, "hot")
    assert explained("id, s") == f"{files} files of its segments, of the views hot"
    few = explained("id, s", " WHERE id < 5")
    assert few == "1 files of its segments, of the views hot"
    assert explained("id, cold") == "6 files of its segments"
    assert "of the views" not in explained("id, s", **{PRUNING: "false"})
    nobody = explained("id", **{"skipbridge.planner": "127.0.0.1:1"})
    assert nobody.startswith("unknown: PLANNER_UNAVAILABLE")
