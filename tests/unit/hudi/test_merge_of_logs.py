"""Rows of logs that need more than their own bytes: times of deletions, keys of HFiles, ranges."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.formats.hudi.log_format import BlockType, Header, parse_blocks
from bridge.formats.hudi.log_records import _delete_schema, rows_of
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block, hfile, log_block

KEY, TIME = "_hoodie_record_key", "_hoodie_commit_time"
MODEL = "org.apache.hudi.common.model."
NOW = 1_720_000_000_000
"""Milliseconds."""


def schema(**fields: Any) -> dict[str, Any]:
    told = [{"name": n, "type": ["null", t], "default": None} for n, t in fields.items()]
    return {"type": "record", "name": "t", "fields": told}


def written(table: HudiTable, name: str, content: bytes, **more: Any) -> Written:
    path = table.root / name
    with path.open("ab") as file:
        file.write(content)
    return Written("", name, path.stat().st_size, **more)


@pytest.mark.parametrize("wrapper", ["Long", "TimestampMicros"])
@pytest.mark.parametrize("kind", ["timestamp-millis", "local-timestamp-millis"])
def test_deletions_tell_their_times_in_the_unit_of_the_table(
    tmp_path: Path, kind: str, wrapper: str
) -> None:
    """A number is milliseconds where the ordering column is."""
    table = HudiTable(
        tmp_path / "t",
        8,
        hoodie__table__recordkey__fields="k",
        hoodie__record__merge__mode="EVENT_TIME_ORDERING",
        hoodie__table__ordering__fields="ts",
    )
    (table.root / ".hoodie_partition_metadata").touch()
    avro = json.dumps(schema(k="string", ts={"type": "long", "logicalType": kind}))
    zone = None if kind.startswith("local") else "UTC"
    rows = pa.table(
        {
            KEY: ["a", "b"],
            "k": ["a", "b"],
            "ts": pa.array([NOW, NOW]).cast(pa.timestamp("ms", zone)),
        }
    )
    base = table.base("", "g", "1")
    pq.write_table(rows, table.root / base.name)
    size = (table.root / base.name).stat().st_size
    table.commit("1", [Written("", base.name, size)], schema=avro)
    scale = 1000 if wrapper == "TimestampMicros" else 1
    found = [
        {
            "recordKey": key,
            "partitionPath": "",
            "orderingVal": (f"{wrapper}Wrapper", {"value": time * scale}),
        }
        for key, time in (("a", NOW + 1), ("b", NOW - 1))
    ]
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, _delete_schema(), {"deleteRecordList": found})
    content = struct.pack(">ii", 3, len(sink.getvalue())) + sink.getvalue()
    block = log_block(BlockType.DELETE, {Header.INSTANT_TIME: "2"}, content)
    log = table.log("", "g", "2", previous="1")
    table.commit("2", [written(table, log.name, block, previous="1")], schema=avro)
    with bridge.connect() as session:
        left = session.table(str(table.root)).scan(columns=["k"]).to_arrow()
    assert left.to_pylist() == [{"k": "b"}]


def test_an_hfile_keeps_a_column_of_its_own_name_as_its_key() -> None:
    """Hudi leaves the column empty in the value."""
    avro = schema(key="string", v="string")
    entries = []
    for key, held in (("a", ""), ("b", "own"), ("c", None)):
        sink = io.BytesIO()
        parsed = fastavro.parse_schema(avro)
        fastavro.schemaless_writer(sink, parsed, {"key": held, "v": key.upper()})
        entries.append((key.encode(), sink.getvalue()))
    header = {Header.INSTANT_TIME: "1", Header.SCHEMA: json.dumps(avro)}
    (block,) = parse_blocks(log_block(BlockType.HFILE_DATA, header, hfile(entries)), "file:/f")
    found = rows_of(block, pa.schema([("key", pa.string()), ("v", pa.string())]))
    assert found.column("key").to_pylist() == ["a", "own", None]
    assert found.column("v").to_pylist() == ["A", "B", "C"]


@pytest.mark.parametrize("archived", [False, True])
def test_changes_end_before_later_blocks_of_the_same_log(tmp_path: Path, archived: bool) -> None:
    """Before version 8 later writers append to a log; their rows hide those of the range."""
    table = HudiTable(
        tmp_path / "t",
        6,
        hoodie__table__recordkey__fields="k",
        hoodie__compaction__payload__class=f"{MODEL}OverwriteWithLatestAvroPayload",
    )
    (table.root / ".hoodie_partition_metadata").touch()
    avro = schema(k="string", v="int")
    whole = {**avro, "fields": [*schema(**{TIME: "string", KEY: "string"})["fields"]]}
    whole["fields"] += avro["fields"]
    text = json.dumps(avro)
    instants = [f"2024010100000{i}000" for i in range(5)]

    def row(at: str, value: int) -> dict[str, Any]:
        return {TIME: at, KEY: "a", "k": "a", "v": value}

    if archived:
        table.commit(instants[0], [], schema=text)
        table.archive(instants[0])
    base = table.base("", "g", instants[1])
    arrow = pa.schema([(TIME, pa.string()), (KEY, pa.string()), ("k", pa.string())])
    arrow = arrow.append(pa.field("v", pa.int32()))
    pq.write_table(pa.Table.from_pylist([row(instants[1], 1)], arrow), table.root / base.name)
    size = (table.root / base.name).stat().st_size
    table.commit(instants[1], [Written("", base.name, size)], schema=text)
    name = table.log("", "g", instants[1]).name
    end = 0
    for value, at in enumerate(instants[2:], 2):
        block = avro_block(at, whole, [row(at, value)])
        log = written(table, name, block, previous=instants[1], offset=end)
        end = log.size
        table.commit(at, [log], schema=text)
    with bridge.connect() as session:
        opened = session.table(str(table.root))

        def values(after: str, until: str) -> list[int]:
            scan = opened.scan(columns=["v"], changes=(after, until))
            return scan.to_arrow().column("v").to_pylist()

        assert opened.scan(columns=["v"]).to_arrow().column("v").to_pylist() == [4]
        for after in range(1, 5):
            for until in range(after + 1, 5):
                assert values(instants[after], instants[until]) == [until]
            assert values(instants[after], "") == ([4] if after < 4 else [])
