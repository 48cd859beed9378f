"""The law of text, CSV, JSON and Avro files, asked of Trino's own connector and of Hive itself.

Where a reader of columns knows all columns of a file, both engines must return these very values.
Most spellings here are those in which parsers differ; the reader must have left them out.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from bridge.formats.lines.recipe import Recipe
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    Kind,
    Type,
    decimal,
)
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from tests.engines.conftest import RunningHiveServer2
from tests.engines.stack import ask
from tests.support.lake import age
from tests.support.text_files import TYPES, json_value, read, value
from tests.tiers import examples

pytestmark = pytest.mark.full

SCHEMA = "text_values"
FILES = examples(150, 150, 1500)
FETCH = {"hive.fetch.task.conversion": "more"}
_QL, _SERDE = "org.apache.hadoop.hive.ql.io.", "org.apache.hadoop.hive.serde2."
LINES = ("org.apache.hadoop.mapred.TextInputFormat", f"{_QL}HiveIgnoreKeyTextOutputFormat")
AVRO = (f"{_QL}avro.AvroContainerInputFormat", f"{_QL}avro.AvroContainerOutputFormat")
HCATALOG = "org.apache.hive.hcatalog.data.JsonSerDe"
Columns = tuple[tuple[str, Type], ...]
Write = Callable[[random.Random, Columns, float], bytes]


def columns_of(types: Sequence[Type]) -> Columns:
    return (("k", STRING), *((f"c{i}", type) for i, type in enumerate(types)))


def csv_file(rng: random.Random, columns: Columns, odd: float) -> bytes:
    """Lines with quotes, doubled ones and escapes, and with too few or too many fields."""
    lines = []
    for row in range(rng.randrange(1, 6)):
        fields = [f"{row}"]
        for _, type in columns[1:]:
            text = value(rng, type, odd)
            if rng.random() < 0.1:
                text += rng.choice(('""', '"', ' "x', "\\", '\\"', "\\\\", ' "a" '))
            quoted = rng.random() < 0.5
            fields.append(f'"{text}"' if quoted else text.replace(",", " "))
        if rng.random() < 0.1:
            fields = [*fields, "more"] if rng.random() < 0.5 else fields[: rng.randrange(1, 5)]
        lines.append(",".join(fields))
    end = rng.choice(("\n", "\n", "\r\n"))
    return ("head,er" + end + "".join(line + end for line in lines)).encode()


def text_file(rng: random.Random, columns: Columns, odd: float) -> bytes:
    lines = []
    for row in range(rng.randrange(1, 6)):
        fields = [
            "\\N" if rng.random() < 0.1 else value(rng, type, odd).replace("|", "/")
            for _, type in columns[1:]
        ]
        lines.append("|".join((str(row), *fields)))
    return "".join(line + "\n" for line in lines).encode()


def json_file(rng: random.Random, columns: Columns, odd: float) -> bytes:
    lines = []
    upper = rng.random() < 0.2
    for row in range(rng.randrange(1, 6)):
        members = [f'"k":"{row}"']
        for name, type in columns[1:]:
            if rng.random() < 0.9:
                key = name.upper() if upper else name
                members.append(f'"{key}": {json_value(rng, type, odd)}')
        rng.shuffle(members)
        lines.append("{" + ", ".join(members) + "}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("format", "serdes", "write", "types", "parameters"),
    [
        ("csv", (f"{_SERDE}OpenCSVSerde",) * 2, csv_file, (STRING,) * 4, {}),
        ("text", (f"{_SERDE}lazy.LazySimpleSerDe",) * 2, text_file, TYPES, {"field.delim": "|"}),
        ("json", (HCATALOG, f"{_SERDE}JsonSerDe"), json_file, TYPES, {}),
    ],
)
def test_known_values_are_those_of_trino_and_of_hive(
    hiveserver2: RunningHiveServer2,
    stock_trino: int,
    tmp_path: Path,
    format: str,
    serdes: tuple[str, str],
    write: Write,
    types: Sequence[Type],
    parameters: dict[str, str],
) -> None:
    rng = random.Random(format)
    columns = columns_of(types)
    table_parameters = {"skip.header.line.count": "1"} if format == "csv" else {}
    properties = {**parameters, **table_parameters, "serialization.lib": serdes[0]}
    recipe = Recipe(format, tuple(sorted(properties.items())), columns)
    known: dict[str, dict[str, list[Any]]] = {}
    loose: dict[str, Mapping[int, float]] = {}
    for number in range(FILES):
        raw = write(rng, columns, rng.choice((0, 0.02, 0.05)))
        found = read(recipe, raw)
        if found is None or any(values is None for values in found[1]):
            continue
        name = f"f{number}"
        (tmp_path / name).write_bytes(raw)
        age(tmp_path / name)
        known[name] = {row[0]: list(row[1:]) for row in zip(*found[1], strict=True)}
        loose[name] = found[2]
    assert len(known) > FILES // 4, "most files were left out"
    uri = hiveserver2.metastore.uri
    for table, serde in ((f"{format}_trino", serdes[0]), (f"{format}_hive", serdes[1])):
        register(uri, table, columns, tmp_path, serde, LINES, parameters, table_parameters)
    compare(known, loose, of_trino(stock_trino, f"{format}_trino"), columns)
    compare(known, loose, of_hive(hiveserver2, f"{format}_hive"), columns)


def test_known_values_of_avro_are_those_of_trino_and_of_hive(
    hiveserver2: RunningHiveServer2, stock_trino: int, tmp_path: Path
) -> None:
    rng = random.Random("avro")
    types = (BOOLEAN, INTEGER, BIGINT, FLOAT, DOUBLE, STRING, DATE, decimal(12, 3))
    columns = columns_of(types)
    day = {"type": "int", "logicalType": "date"}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}
    spelled = ("boolean", "int", "long", "float", "double", "string", day, price)
    recipe = Recipe("avro", (), columns)
    known: dict[str, dict[str, list[Any]]] = {}
    for number in range(20):
        codec = rng.choice(("null", "deflate"))
        order = [("k", "string"), *((f"c{i}", t) for i, t in enumerate(spelled))]
        rng.shuffle(order)
        fields = [{"name": n, "type": t if n == "k" else ["null", t]} for n, t in order]
        schema = {"type": "record", "name": "r", "fields": fields}
        path = tmp_path / f"f{number}"
        with path.open("wb") as sink:
            fastavro.writer(sink, fastavro.parse_schema(schema), _avro_rows(rng, types), codec)
        age(path)
        found = read(recipe, path.read_bytes())
        assert found is not None and all(values is not None for values in found[1])
        known[path.name] = {row[0]: list(row[1:]) for row in zip(*found[1], strict=True)}
    register(
        hiveserver2.metastore.uri,
        "avro",
        columns,
        tmp_path,
        f"{_SERDE}avro.AvroSerDe",
        AVRO,
        {},
        {},
    )
    compare(known, {}, of_trino(stock_trino, "avro"), columns)
    compare(known, {}, of_hive(hiveserver2, "avro"), columns)


def _avro_rows(rng: random.Random, types: Sequence[Type]) -> list[dict[str, Any]]:
    make: dict[Kind, Callable[[], Any]] = {
        Kind.BOOLEAN: lambda: rng.random() < 0.5,
        Kind.INTEGER: lambda: rng.choice((0, -1, 2**31 - 1, -(2**31))),
        Kind.BIGINT: lambda: rng.choice((0, -1, 2**63 - 1, -(2**63))),
        Kind.FLOAT: lambda: rng.choice((0.0, 1.5, -0.10000000149011612)),
        Kind.DOUBLE: lambda: rng.choice((0.0, 0.1, -1e300, 5e-324)),
        Kind.STRING: lambda: rng.choice(("", "a", "Köln", "\U0001f600")),
        Kind.DATE: lambda: datetime.date(rng.randrange(1900, 2100), 2, 28),
        Kind.DECIMAL: lambda: Decimal(rng.randrange(-(10**11), 10**11)).scaleb(-3),
    }
    return [
        {"k": str(row)}
        | {f"c{i}": None if rng.random() < 0.2 else make[t.kind]() for i, t in enumerate(types)}
        for row in range(rng.randrange(0, 5))
    ]


def register(
    uri: str,
    table: str,
    columns: Columns,
    directory: Path,
    serde: str,
    classes: tuple[str, str],
    parameters: Mapping[str, str],
    table_parameters: Mapping[str, str],
) -> None:
    descriptor = records.StorageDescriptor(
        cols=[records.FieldSchema(name, str(type), "") for name, type in columns],
        location=f"file://{directory}",
        inputFormat=classes[0],
        outputFormat=classes[1],
        numBuckets=-1,
        serdeInfo=records.SerDeInfo(serializationLib=serde, parameters=dict(parameters)),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
    record = records.Table(
        tableName=table,
        dbName=SCHEMA,
        owner="test",
        sd=descriptor,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", **table_parameters},
        tableType="EXTERNAL_TABLE",
    )
    with MetastoreClient(uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA)
        client.create_table(record)


def of_trino(port: int, table: str) -> list[list[Any]]:
    return ask(port, f'SELECT "$path", * FROM hive.{SCHEMA}.{table}', "hive")


def of_hive(server: RunningHiveServer2, table: str) -> list[list[Any]]:
    sql = f"SELECT INPUT__FILE__NAME, t.* FROM {SCHEMA}.{table} t"
    return [list(row) for row in server.query(sql, FETCH)]


def compare(
    known: Mapping[str, Mapping[str, list[Any]]],
    loose: Mapping[str, Mapping[int, float]],
    rows: Sequence[Sequence[Any]],
    columns: Columns,
) -> None:
    """Each row of an engine is the known row of its file, and no row is missing."""
    assert len(rows) == sum(map(len, known.values()))
    for path, key, *values in rows:
        name = path.rpartition("/")[2]
        for i, (theirs, mine) in enumerate(zip(values, known[name][key], strict=True), 1):
            type = columns[i][1]
            found = plain(theirs, type)
            error = loose.get(name, {}).get(i, 0.0)
            if error and mine is not None:
                assert abs(found - mine) <= error * abs(mine), (name, key, type, theirs, mine)
            else:
                assert found == plain(mine, type), (name, key, str(type), theirs, mine)


def plain(given: Any, type: Type) -> Any:
    """A value as the drivers of both engines and Arrow can agree on it."""
    if given is None:
        return None
    if type.kind is Kind.DECIMAL:
        return Decimal(given)
    if type.kind is Kind.FLOAT:  # some drivers give the shortest text of a float
        return float(np.float32(given))
    if type.is_floating:
        return float(given)
    if type.kind is Kind.DATE:
        return str(given)
    if type.kind is Kind.TIMESTAMP:
        return str(given).removesuffix(".0").rstrip("0").ljust(19, "0")
    return given


def test_empty_lines_of_csv_are_rows_of_nulls(
    hiveserver2: RunningHiveServer2, stock_trino: int, tmp_path: Path
) -> None:
    columns = columns_of((STRING,))
    raw = b'1,a\n\n2,"b ""c"""\n\n\n3\n,\n'
    (tmp_path / "f").write_bytes(raw)
    age(tmp_path / "f")
    serde = f"{_SERDE}OpenCSVSerde"
    found = read(Recipe("csv", (("serialization.lib", serde),), columns), raw)
    assert found is not None
    mine = [list(row) for row in zip(*found[1], strict=True)]
    uri = hiveserver2.metastore.uri
    register(uri, "empty_lines", columns, tmp_path, serde, LINES, {}, {})
    for rows in (of_trino(stock_trino, "empty_lines"), of_hive(hiveserver2, "empty_lines")):
        assert [row[1:] for row in rows] == mine
