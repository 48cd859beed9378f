"""A real Trino reads tables of segments over CSV and JSON files.

The oracle is the stock hive connector over the same files: JSON as it is, and of CSV, whose columns
are texts there, ``TRY_CAST`` to the declared types.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trino.exceptions import TrinoExternalError, TrinoUserError

from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import add, compaction, indexes, tables
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

SCHEMA = "csv_segments"
COLUMNS = {
    "id": "bigint",
    "name": "string",
    "price": "decimal(10,2)",
    "ratio": "double",
    "day": "date",
    "flag": "boolean",
    "small": "int",
}
ODD = [
    ["x7", "", "1e3", "nan", "2024-02-30", "yes", "3000000000"],
    ["", "a,b", "", "", "", "", ""],
    [" 5", 'quo""ted', "12.345", "Infinity", "2024-1-2", "TRUE", "-1"],
    ["9223372036854775808", "é", "99999999999.00", "-0.0", "0001-01-01", "0", "+7"],
]


def line(fields: list[str]) -> str:
    return ",".join(f'"{f}"' for f in fields) + "\n"


def rows(first: int) -> list[list[str]]:
    return [
        [str(i), f"n{i}", f"{i}.25", f"{i / 8}", f"2024-05-{i % 28 + 1:02}", str(i % 2 == 0), "9"]
        for i in range(first, first + 20)
    ] + ODD


@pytest.fixture(scope="module")
def made(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    root = tmp_path_factory.mktemp("csv_segments")
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{root}/warehouse")
    names = list(COLUMNS)
    other = ["note", *reversed(names)]
    orders = {"a": names, "b": other}
    for which, order in orders.items():
        directory = root / which
        directory.mkdir()
        for part in range(3):
            body = line(order) + "".join(
                line([dict(zip(names, row, strict=True)).get(c, "n") for c in order])
                for row in rows((part + 3 * (which == "b")) * 100)
            )
            raw = body.encode()
            path = directory / (f"f{part}.csv" if part else "f0.csv.gz")
            if part == 1:
                raw = b"\xef\xbb\xbf" + raw  # the line of names has it, and no row
            path.write_bytes(raw if part else gzip.compress(raw))
            os.utime(path, (1.7e9, 1.7e9))
        columns = ", ".join(f"{c} varchar" for c in order)
        stack.query(
            f"CREATE TABLE {SCHEMA}.text_{which} ({columns}) WITH (format = 'CSV', "
            f"skip_header_line_count = 1, external_location = 'file://{directory}')",
            catalog="hive",
        )
    table = f"{SCHEMA}.t"
    tables.create_table(
        config,
        table,
        format="csv",
        columns=list(COLUMNS.items()),
        properties={"csv.header_lines": "1"},
    )
    indexes.create_index(config, table, name="m", kind="minmax", local=True)
    for which in orders:
        add.add_segment(config, table, paths=[str(root / which)], local=True)
    yield config


def expected(stack: Stack, types: dict[str, str], where: str = "true") -> list[Any]:
    casts = ", ".join(
        f"TRY_CAST({c} AS {types[c]}) AS {c}" if types[c] != "varchar" else c for c in COLUMNS
    )
    both = " UNION ALL ".join(f"SELECT {casts} FROM {SCHEMA}.text_{w}" for w in "ab")
    found = stack.query(f"SELECT * FROM ({both}) WHERE {where}", catalog="hive")
    return sorted(found, key=repr)


def test_typed_csv_is_try_cast_of_the_texts(stack: Stack, made: Config) -> None:
    types = {r[0]: r[1] for r in stack.query(f"SHOW COLUMNS FROM {SCHEMA}.t")}
    for where in ("true", "id = 317", "price > 500", "day IS NULL", "small = -1", "name = ''"):
        found = sorted(stack.query(f"SELECT * FROM {SCHEMA}.t WHERE {where}"), key=repr)
        assert repr(found) == repr(expected(stack, types, where)), where
    assert stack.query(f"SELECT count(*) FROM {SCHEMA}.t") == [[6 * 24]]
    one = stack.query(f"SELECT count(*) FROM {SCHEMA}.t", {"segments": f"{SCHEMA}.t:1"})
    assert one == [[3 * 24]]


def test_a_bad_value_is_an_error_if_so_declared(stack: Stack, made: Config, tmp_path: Path) -> None:
    table = f"{SCHEMA}.strict"
    properties = {"csv.bad_values": "error"}
    tables.create_table(
        made, table, format="csv", columns=[("id", "bigint")], properties=properties
    )
    (tmp_path / "good.csv").write_text("1\n2\n")
    (tmp_path / "bad.csv").write_text("3\nx\n")
    add.add_segment(made, table, paths=[str(tmp_path / "good.csv")], local=True)
    assert stack.query(f"SELECT sum(id) FROM {table}") == [[3]]
    add.add_segment(made, table, paths=[str(tmp_path / "bad.csv")], local=True)
    with pytest.raises((TrinoExternalError, TrinoUserError), match=r"bad\.csv"):
        stack.query(f"SELECT sum(id) FROM {table}")


def test_dates_and_times_in_other_formats(stack: Stack, made: Config, tmp_path: Path) -> None:
    table = f"{SCHEMA}.spelled"
    columns = [("id", "bigint"), ("day", "date"), ("at", "timestamp")]
    properties = {
        "csv.date_format": "dd.MM.yyyy",
        "csv.timestamp_formats": "d/M/yyyy HH:mm,yyyy-MM-dd'T'HH:mm:ss.SSS",
    }
    tables.create_table(made, table, format="csv", columns=columns, properties=properties)
    indexes.create_index(made, table, name="m", kind="minmax", local=True)
    (tmp_path / "a.csv").write_text(
        "1,31.12.2023,3/4/2024 05:06\n2, 01.02.2024 ,2024-04-03T05:06:07.089\n"
    )
    (tmp_path / "b.csv").write_text("3,2024-02-01,2024-04-03 05:06:07\n4,30.02.2024,\n")
    for path in tmp_path.iterdir():
        os.utime(path, (1.7e9, 1.7e9))
    add.add_segment(made, table, paths=[str(tmp_path)], local=True)
    read = f"SELECT id, CAST(day AS varchar), CAST(at AS varchar) FROM {table}"
    wanted = [
        [1, "2023-12-31", "2024-04-03 05:06:00.000000"],
        [2, "2024-02-01", "2024-04-03 05:06:07.089000"],
        [3, None, None],
        [4, None, None],
    ]
    assert sorted(stack.query(read)) == wanted
    assert stack.query(f"{read} WHERE day = DATE '2024-02-01'") == wanted[1:2]
    assert stack.query(f"{read} WHERE at < TIMESTAMP '2024-04-03 05:06:01'") == wanted[:1]
    assert stack.query(f"{read} WHERE id = 2") == wanted[1:2]
    assert stack.kept_files(f"SELECT * FROM {table} WHERE id = 2") == 1


def test_json_is_as_the_stock_connector_reads_it(
    stack: Stack, made: Config, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for part in range(3):
        body = "".join(
            f'{{"name": "n{i}", "id": {i}, "x": [1]}}\n' for i in range(part * 9, 9 + part * 9)
        )
        (data / f"f{part}.json").write_text(body + '{"id": null}\n')
    stack.query(
        f"CREATE TABLE {SCHEMA}.stock_json (id bigint, name varchar) "
        f"WITH (format = 'JSON', external_location = 'file://{data}')",
        catalog="hive",
    )
    table = f"{SCHEMA}.json"
    tables.create_table(made, table, format="json", columns=[("id", "bigint"), ("name", "string")])
    add.add_segment(made, table, paths=[f"{data}/f0.json"], local=True)
    add.add_segment(made, table, paths=[f"{data}/f1.json,{data}/f2.json"], local=True)
    compaction.compact(made, table, kind="custom", ids=["0", "1"])
    for where in ("true", "id = 11", "name IS NULL"):
        found = stack.query(f"SELECT * FROM {table} WHERE {where}")
        wanted = stack.query(f"SELECT * FROM {SCHEMA}.stock_json WHERE {where}", catalog="hive")
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
