"""Files that nobody should write, as segments: the rows of Trino's stock connector and of Hive, or
an error where they have one; and no row that an index loses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import InvalidRequest
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import indexes
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import hooked_hive
from tests.engines.segment_world import SegmentWorld, segment_world
from tests.engines.stack import Stack
from tests.engines.text_cases import CASES, NESTED, SCALARS, TextCase
from tests.engines.text_tables import CSV, HIVE_JSON, JSON, TEXT, TEXT_FILES, Columns, TextTables
from tests.tiers import nightly

pytestmark = pytest.mark.full

SCHEMA = "segment_bad_input"
# What each of them shows is not shown by another one; the rest is for the night.
OFTEN = {
    "csv_lines", "csv_crlf", "csv_bom", "csv_utf8", "csv_newlines", "csv_empty", "json_values",
    "json_range", "json_nested_in_scalar", "json_nested_in_int", "json_two_keys", "json_bom",
    "json_pretty", "json_cut", "text_values", "text_ragged", "text_bom", "text_crlf", "text_utf8",
    "packed_gzip_cut", "packed_gzip_bad", "packed_gzip_twice", "packed_bzip2_cut",
}  # fmt: skip
FORMATS = {CSV: "csv", JSON: "json", TEXT: "text"}
PROPERTIES = {"field.delim": "text.delimiter", "serialization.null.format": "text.null"}
Group = tuple[str, str, Columns, tuple[tuple[str, str], ...]]


def groups() -> dict[Group, list[TextCase]]:
    """Cases that can be segments of one table, by its serde, format, columns and properties."""
    found: dict[Group, list[TextCase]] = defaultdict(list)
    for case in CASES:
        format, told = FORMATS.get(case.serde, ""), case.parameters
        if not format or case.table_parameters or (told and format != "text"):
            continue
        if not set(told) <= set(PROPERTIES) or len(told.get("field.delim", "|")) != 1:
            continue
        if nightly() or case.name in OFTEN:
            found[case.serde, format, tuple(case.columns), tuple(told.items())].append(case)
    return found


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SegmentWorld]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as (hive, _):
        yield segment_world(hive, stack, tmp_path_factory.mktemp(SCHEMA), SCHEMA)


@pytest.mark.parametrize("number", range(len(groups())))
def test_rows_or_errors_are_those_of_the_engines(world: SegmentWorld, number: int) -> None:
    (serde, format, columns, told), cases = list(groups().items())[number]
    files = {f"{case}.{name}": raw for case in cases for name, raw in case.files.items()}
    texts = TextTables(world.stack, world.root, SCHEMA)
    directory = texts.files(f"files_{number}", files)
    stock = texts.table(f"stock_{number}", columns, serde, directory, dict(told))
    properties = {PROPERTIES[name].partition(".")[2]: value for name, value in told}
    table = world.table(f"t{number}", format, list(columns), **properties)
    indexes.create_index(world.config, table, name="m", kind="minmax", local=True)
    segments: dict[str, str] = {}
    for name, raw in files.items():
        if raw:
            world.add(table, directory / name)
            segments[name] = str(len(segments))
        else:
            with pytest.raises(InvalidRequest, match="no data files"):
                world.add(table, directory / name)
    problems = []
    for name, id in segments.items():
        problems += in_trino(texts, stock, table, directory / name, id, columns)
        problems += in_hive(world, serde, table, directory / name, id, columns, dict(told))
    assert not problems, "\n".join(problems)


def in_trino(
    texts: TextTables, stock: str, table: str, file: Path, id: str, columns: Columns
) -> list[str]:
    """What differs between the segment and the stock connector's rows of the same file."""
    names = [f'"{name}"' for name, _ in columns]
    chosen = {"segments": f"{table}:{id}"}
    problems = []
    found: list[list[Any]] = []
    for columns_read in (", ".join(names), "count(*)", names[0]):
        theirs = asked(texts.stack, f"SELECT {columns_read} FROM lines.{stock}", file)
        mine = asked(texts.stack, f"SELECT {columns_read} FROM {table}", None, chosen)
        problems += different(f"Trino {file.name} {columns_read}"[:90], mine, theirs, file)
        if columns_read.startswith('"') and isinstance(theirs, list):
            found = found or theirs
    for place, (name, type) in enumerate(columns):
        if type not in ("string", "int"):
            continue
        held = [row[place] for row in found if len(row) == len(columns) and row[place] is not None]
        # Bytes that are no UTF-8 come as other characters than a condition would have.
        askable = {value for value in held if "\ufffd" not in str(value)}
        for value in sorted(askable, key=repr)[:2]:
            where = f"{name} = " + (quoted(value) if isinstance(value, str) else str(value))
            wanted = [[v] for v in held if v == value]
            mine = asked(texts.stack, f"SELECT {name} FROM {table} WHERE {where}", None, chosen)
            problems += different(f"Trino {file.name} {where}"[:90], mine, wanted, file)
    return problems


def asked(
    stack: Stack, sql: str, file: Path | None, session: dict[str, str] | None = None
) -> list[Any] | str:
    """Rows, or the error."""
    if file is not None:
        sql += f" WHERE \"$path\" IN ('{file.as_uri()}', 'file:{file}')"
    try:
        return stack.query(sql, session, "bridge" if file is None else "hive")
    except Exception as error:
        return str(error)


def in_hive(
    world: SegmentWorld,
    serde: str,
    table: str,
    file: Path,
    id: str,
    columns: Columns,
    told: dict[str, str],
) -> list[str]:
    """What differs between the segment and Hive's own table of the same file."""
    own = f"own_{table.partition('.')[2]}_{id}"
    place = file.parent.parent / own
    place.mkdir()
    (place / file.name).hardlink_to(file)
    descriptor = records.StorageDescriptor(
        cols=[records.FieldSchema(n, t, "") for n, t in columns],
        location=place.as_uri(),
        inputFormat=TEXT_FILES[0],
        outputFormat=TEXT_FILES[1],
        numBuckets=-1,
        serdeInfo=records.SerDeInfo(
            serializationLib=HIVE_JSON if serde == JSON else serde, parameters=told
        ),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
    record = records.Table(
        tableName=own,
        dbName=SCHEMA,
        owner="test",
        sd=descriptor,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    with MetastoreClient(world.hive.metastore_uri) as client:
        client.create_table(record)
    names = ", ".join(f"`{name}`" for name, _ in columns)
    theirs = told_by_hive(world, f"SELECT {names} FROM {SCHEMA}.{own}")
    mine = told_by_hive(world, f"SELECT {names} FROM {table}", f"{table}:{id}")
    return different(f"Hive {file.name}", mine, theirs, file)


def told_by_hive(world: SegmentWorld, sql: str, segments: str = "") -> list[Any] | str:
    settings = {"hive.fetch.task.conversion": "more"}
    if segments:
        settings["skipbridge.segments"] = segments
    try:
        return [list(row) for row in world.hive.ask(sql, settings).rows]
    except Exception as error:
        return str(error)


def different(what: str, mine: list[Any] | str, theirs: list[Any] | str, file: Path) -> list[str]:
    if mine == theirs:  # perhaps the driver's own error
        return []
    if isinstance(mine, str):
        if not isinstance(theirs, str):
            return [f"{what}: an error of ours alone: {mine[:300]}"]
        return [] if file.name in mine else [f"{what}: the file is not named: {mine[:300]}"]
    if isinstance(theirs, str):
        return [f"{what}: an error of theirs alone: {theirs[:300]}, ours: {mine!r:.300}"]
    if sorted(map(repr, mine)) != sorted(map(repr, theirs)):
        return [f"{what}: ours {mine!r:.300}, theirs {theirs!r:.300}"]
    return []


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def test_the_cases_are_of_every_format() -> None:
    assert {key[1] for key in groups()} == {"csv", "json", "text"}
    assert any({*SCALARS, *NESTED} == set(key[2]) for key in groups())
