"""A real Trino reads tables of segments: the rows of their files, and no file that cannot match.

The stock hive connector over the same files is the oracle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from trino.exceptions import TrinoExternalError, TrinoUserError

from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import TableNotFound
from bridge.kernel.types import INTEGER, STRING, decimal
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.segments.commands import add, compaction, indexes, manage, refresh, tables
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.stack import Stack

SCHEMA = "segments"
DAYS, FILES, ROWS = 4, 3, 50
COLUMNS = (Column("id", INTEGER), Column("name", STRING), Column("price", decimal(10, 2)))


def facts(day: int, part: int) -> pa.Table:
    first = (day * FILES + part) * ROWS
    ids = range(first, first + ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "name": [f"n{i % 7}" if i % 11 else None for i in ids],
            "price": pa.array([Decimal(i) for i in ids], pa.decimal128(10, 2)),
        }
    )


class World:
    """A segment table ``t`` over a directory a day, and the same days as the stock table ``s``."""

    def __init__(self, stack: Stack, root: Path) -> None:
        self.stack, self.root = stack, root
        self.config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})

    def write(self, directory: Path, format: str = "parquet") -> None:
        day = int(directory.name)
        directory.mkdir(parents=True, exist_ok=True)
        for part in range(FILES):
            path = directory / f"f{part}.{format}"
            (pq.write_table if format == "parquet" else po.write_table)(facts(day, part), path)
            os.utime(path, (1.7e9, 1.7e9))

    def query(self, sql: str, session: dict[str, str] | None = None) -> list[Any]:
        return sorted(self.stack.query(sql, session), key=repr)


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(stack, tmp_path_factory.mktemp("segments"))
    for day in range(DAYS):
        made.write(made.root / "facts" / str(day))
    stock = CatalogTable(TableName(SCHEMA, "s"), COLUMNS, (), f"file://{made.root}/facts")
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{made.root}/warehouse")
        for day in range(DAYS):
            name = TableName(SCHEMA, f"s{day}")
            register_table(
                client, name, CatalogTable(name, COLUMNS, (), f"{stock.location}/{day}"), []
            )
    yield made


@pytest.fixture
def table(world: World) -> Iterator[Callable[..., str]]:
    names: list[str] = []

    def make(name: str, days: int = DAYS, *, index: bool = True) -> str:
        full = f"{SCHEMA}.{name}"
        names.append(full)
        columns = [(c.name, str(c.type)) for c in COLUMNS]
        tables.create_table(world.config, full, format="parquet", columns=columns)
        if index:
            indexes.create_index(world.config, full, name="m", kind="minmax", local=True)
            indexes.create_index(
                world.config, full, name="b", kind="bloomfilter", columns=["name"], local=True
            )
        for day in range(days):
            paths = [str(world.root / "facts" / str(day))]
            add.add_segment(world.config, full, paths=paths, local=True)
        return full

    yield make
    for name in names:
        tables.drop_table(world.config, name, if_exists=True)


def stock(world: World, days: range | list[int], where: str = "true") -> list[Any]:
    union = " UNION ALL ".join(f"SELECT * FROM {SCHEMA}.s{day} WHERE {where}" for day in days)
    return sorted(world.stack.query(union, catalog="hive"), key=repr)


def test_rows_are_those_of_the_stock_connector(world: World, table: Callable[..., str]) -> None:
    name = table("t")
    assert world.query(f"SELECT * FROM {name}") == stock(world, range(DAYS))
    for where in ("id = 217", "name = 'n3' AND id > 400", "name IS NULL", "price < 20"):
        assert world.query(f"SELECT * FROM {name} WHERE {where}") == stock(
            world, range(DAYS), where
        )
    assert world.stack.kept_files(f"SELECT * FROM {name} WHERE id = 217") == 1
    assert world.stack.kept_files(f"SELECT * FROM {name} WHERE name = 'zz'") == 0
    assert world.query(f"SELECT count(*), max(id) FROM {name}") == [[DAYS * FILES * ROWS, 599]]


def test_segments_of_other_formats(world: World, table: Callable[..., str]) -> None:
    name = table("mixed", days=2)
    directory = world.root / "orc" / "3"
    world.write(directory, "orc")
    add.add_segment(world.config, name, paths=[str(directory)], format="orc", local=True)
    compaction.compact(world.config, name, kind="custom", ids=["1", "2"])
    assert world.query(f"SELECT * FROM {name}") == stock(world, [0, 1, 3])
    assert world.query(f"SELECT * FROM {name} WHERE id = 460") == stock(world, [3], "id = 460")
    assert world.stack.kept_files(f"SELECT * FROM {name} WHERE id = 460") == 1


def test_columns_of_orc_are_found_by_name(world: World, table: Callable[..., str]) -> None:
    """Files may have another order, though the catalog finds columns of ORC by their place."""
    name = table("reordered", days=1)
    directory = world.root / "reordered" / "1"
    directory.mkdir(parents=True)
    for part in range(FILES):
        turned = facts(1, part).select(["price", "name", "id"])
        po.write_table(turned, directory / f"f{part}.orc")
    add.add_segment(world.config, name, paths=[str(directory)], format="orc", local=True)
    assert world.query(f"SELECT * FROM {name}") == stock(world, [0, 1])
    assert world.query(f"SELECT * FROM {name} WHERE id = 217") == stock(world, [1], "id = 217")
    indexes.drop_index(world.config, name, name="b")
    tables.drop_columns(world.config, name, ["name"])
    expected = [[row[0], row[2]] for row in stock(world, [0, 1])]
    assert world.query(f"SELECT id, price FROM {name}") == sorted(expected, key=repr)
    chosen = {"segments": f"{name}:1,1"}
    assert world.query(f"SELECT count(*) FROM {name}", chosen) == [[FILES * ROWS]]


def test_chosen_segments_and_versions(world: World, table: Callable[..., str]) -> None:
    name = table("chosen", index=False)
    chosen = {"segments": f"{name}:1,3"}
    assert world.query(f"SELECT * FROM {name}", chosen) == stock(world, [1, 3])
    count = f"SELECT count(*) FROM {name}"
    assert world.query(count, chosen) == [[2 * FILES * ROWS]]
    assert world.query(f"{count} WHERE id = 5", chosen) == [[0]]
    assert world.query(count, {"segments": "other.t:1"}) == [[DAYS * FILES * ROWS]]
    with pytest.raises(TrinoUserError, match="SEGMENT_NOT_FOUND") as missing:
        world.query(count, {"segments": f"{name}:9"})
    assert "readable are 0, 1, 2, 3" in str(missing.value)
    with pytest.raises(TrinoUserError, match="does not name segments"):
        world.query(count, {"segments": "9"})
    with pytest.raises(TrinoUserError, match="READ_VERSION_UNSUPPORTED"):
        world.query(f"SELECT count(*) FROM {SCHEMA}.s1", {"segments": f"{SCHEMA}.s1:0"})
    manage.delete_segments(world.config, name, ids=["0"])
    assert world.query(count) == [[3 * FILES * ROWS]]
    version = tables.describe(world.config, name)["version"]
    assert world.query(f"{count} FOR VERSION AS OF {version - 1}") == [[DAYS * FILES * ROWS]]


def test_segments_are_a_table(world: World, table: Callable[..., str]) -> None:
    name = table("listed")
    compaction.compact(world.config, name, kind="custom", ids=["0", "1"])
    manage.switch_segments(world.config, name, ids=["3"], enabled=False)
    found = world.stack.query(
        "SELECT segment, status, format, files, indexed_files, merged_into FROM "
        f'{SCHEMA}."listed$segments"'
    )
    assert found == [
        ["0", "Compacted", "parquet", 3, 3, "0.1"],
        ["0.1", "Success", "parquet", 6, 6, None],
        ["1", "Compacted", "parquet", 3, 3, "0.1"],
        ["2", "Success", "parquet", 3, 3, None],
        ["3", "Disabled", "parquet", 3, 3, None],
    ]
    assert world.query(f"SELECT * FROM {name}") == stock(world, range(3))
    owners = world.query(f'SELECT DISTINCT "commit" FROM {SCHEMA}."listed$files"')
    assert owners == [["0.1"], ["2"]]
    with pytest.raises(TrinoUserError, match="READ_VERSION_UNSUPPORTED"):
        world.query(f'SELECT * FROM {SCHEMA}."s1$segments"')


def test_a_changed_file_is_an_error_until_it_is_refreshed(
    world: World, table: Callable[..., str]
) -> None:
    name = table("changed", days=0)
    directory = world.root / "own" / "7"
    world.write(directory)
    add.add_segment(world.config, name, paths=[str(directory)], local=True)
    other = facts(9, 0)
    pq.write_table(other, directory / "f0.parquet")
    with pytest.raises(TrinoExternalError, match=r"FILE_CHANGED.*segment refresh"):
        world.query(f"SELECT * FROM {name}")
    refresh.refresh_segments(world.config, name, local=True)
    ids = [row[0] for row in world.stack.query(f"SELECT id FROM {name} ORDER BY id")]
    assert ids == sorted(i for t in (other, facts(7, 1), facts(7, 2)) for i in t["id"].to_pylist())
    (directory / "f1.parquet").unlink()
    with pytest.raises(TrinoExternalError, match=r"FILE_CHANGED|FILE_UNREADABLE"):
        world.query(f"SELECT * FROM {name}")


def test_columns_are_dropped_and_widened(world: World, table: Callable[..., str]) -> None:
    name = table("altered")
    tables.change_type(world.config, name, "id", "bigint")
    tables.change_type(world.config, name, "price", "decimal(18,2)")
    types = {row[0]: row[1] for row in world.stack.query(f"SHOW COLUMNS FROM {name}")}
    assert types == {"id": "bigint", "name": "varchar", "price": "decimal(18,2)"}
    assert world.query(f"SELECT * FROM {name} WHERE id > 100") == stock(
        world, range(DAYS), "id > 100"
    )
    indexes.drop_index(world.config, name, name="b")
    tables.drop_columns(world.config, name, ["name"])
    assert [row[0] for row in world.stack.query(f"SHOW COLUMNS FROM {name}")] == ["id", "price"]
    assert world.query(f"SELECT id, price FROM {name} WHERE id = 217") == [
        [row[0], row[2]] for row in stock(world, range(DAYS), "id = 217")
    ]


def test_others_refuse_the_table(world: World, table: Callable[..., str]) -> None:
    name = table("guarded", days=1, index=False)
    with pytest.raises((TrinoUserError, TrinoExternalError)):
        world.stack.query(f"SELECT * FROM {name}", catalog="hive")
    for statement in (
        f"INSERT INTO {name} VALUES (1, 'a', 1)",
        f"DELETE FROM {name} WHERE id = 1",
        f"UPDATE {name} SET id = 1",
        f"ALTER TABLE {name} ADD COLUMN x int",
        f"TRUNCATE TABLE {name}",
    ):
        with pytest.raises(TrinoUserError):
            world.stack.query(statement)


def test_names_come_and_go_and_facts_stay(world: World, table: Callable[..., str]) -> None:
    def seen() -> dict[str, tuple[int, str]]:
        return {
            str(p): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest())
            for p in (world.root / "facts").rglob("*.parquet")
        }

    before = seen()
    name = table("old")
    tables.rename_table(world.config, name, "new")
    renamed = f"{SCHEMA}.new"
    assert world.query(f"SELECT count(*) FROM {renamed}") == [[DAYS * FILES * ROWS]]
    assert world.stack.kept_files(f"SELECT * FROM {renamed} WHERE id = 217") == 1
    compaction.compact(world.config, renamed)
    manage.clean(world.config, renamed, keep=1, older_than=0)
    tables.drop_table(world.config, renamed)
    with pytest.raises(TableNotFound):
        tables.describe(world.config, renamed)
    assert seen() == before
