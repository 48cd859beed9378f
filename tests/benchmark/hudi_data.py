"""Writes the benchmark's Hudi tables, of version 6, in two minutes: Spark needs far longer.

``cow``: copy-on-write, 8,000 base files of 500 rows and 16 columns in one directory, four commits.
``mor``: merge-on-read, 500 slices of one partition each; three logs of a slice update all of its
2,000 rows. Names, commits and blocks are as Hudi 0.15 writes them; engines that read the tables as
peers have to give our rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block

FILES, COMMITS, ROWS = 8_000, 4, 500
SLICES, LOGS, RECORDS = 500, 3, 2_000
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_FIRST = 20260101000000000
_DAYS = 18_262
"""From the epoch to 2020-01-01."""
_KEYS = "org.apache.hudi.keygen."
_COUNTS = ("LogRecords", "LogFilesCompacted", "LogSizeCompacted", "UpdatedRecordsCompacted")
_BLOCKS = ("LogBlocks", "CorruptLogBlock", "RollbackBlocks")


def write_cow(directory: Path) -> None:
    """Files hold consecutive ids, so that a range of ids is a few files."""
    schema = _avro("cow", _columns())
    table = _table(directory, "COPY_ON_WRITE", "NonpartitionedKeyGenerator")
    _mark(directory, 0)
    each = FILES // COMMITS
    for commit in range(COMMITS):
        instant = str(_FIRST + commit)
        files = []
        for number in range(commit * each, (commit + 1) * each):
            base = table.base("", f"{number:08d}-0000-0000-0000-000000000000-0", instant)
            rows = _rows(range(number * ROWS, (number + 1) * ROWS), commit, instant, "", base.name)
            pq.write_table(rows, directory / base.name, compression="gzip")
            files.append(sized(table, base))
        _commit(table, instant, "commit", "BULK_INSERT", schema, files, ROWS)


def write_mor(directory: Path, slices: int = SLICES) -> None:
    """A slice holds consecutive ids, and each log new versions of all of its rows."""
    columns = {**_columns(), "part": "string"}
    schema = _avro("mor", columns)
    in_logs = _avro("mor", {**dict.fromkeys(META, "string"), **columns})
    table = _table(directory, "MERGE_ON_READ", "SimpleKeyGenerator", "part")
    first = str(_FIRST)
    for ts in range(LOGS + 1):
        instant = str(_FIRST + ts)
        files: list[Written] = []
        for number in range(slices):
            part, group = f"{number:03d}", f"{number:08d}-0000-0000-0000-000000000000-0"
            base = table.base(part, group, first)
            ids = range(number * RECORDS, (number + 1) * RECORDS)
            rows = _rows(ids, ts, instant, part, base.name if ts == 0 else "")
            rows = rows.append_column("part", pa.array([part] * RECORDS))
            if ts == 0:
                (directory / part).mkdir()
                _mark(directory / part, 1)
                pq.write_table(rows, directory / base.path, compression="gzip")
                files.append(sized(table, base))
                continue
            log = table.log(part, group, first, number=ts, previous=first)
            (directory / log.path).write_bytes(avro_block(instant, in_logs, _records(rows)))
            files.append(sized(table, log))
        operation = "BULK_INSERT" if ts == 0 else "UPSERT"
        _commit(table, instant, "deltacommit", operation, schema, files, RECORDS)


def _table(directory: Path, kind: str, keys: str, partition: str = "") -> HudiTable:
    more = {"hoodie__table__partition__fields": partition} if partition else {}
    return HudiTable(
        directory,
        6,
        kind,
        hoodie__table__recordkey__fields="id",
        hoodie__table__precombine__field="ts",
        hoodie__table__keygenerator__class=f"{_KEYS}{keys}",
        hoodie__compaction__payload__class=(
            "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        ),
        hoodie__table__base__file__format="PARQUET",
        hoodie__archivelog__folder="archived",
        hoodie__table__timeline__timezone="UTC",
        **more,
    )


def _columns() -> dict[str, Any]:
    """The Avro type of each column."""
    types: dict[str, Any] = {"id": "long", "ts": "long", "s": "string", "price": "double"}
    types["d"] = {"type": "int", "logicalType": "date"}
    types |= {f"d{i}": "double" for i in range(6)}
    return types | {f"n{i}": "int" for i in range(5)}


def _avro(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": n, "type": ["null", t], "default": None} for n, t in columns.items()]
    return {
        "type": "record",
        "name": f"{name}_record",
        "namespace": f"hoodie.{name}",
        "fields": fields,
    }


def _rows(ids: range, ts: int, instant: str, part: str, file: str) -> pa.Table:
    """Rows as a writer leaves them, with Hudi's own columns in front."""
    count, numbers = len(ids), np.arange(ids.start, ids.stop)
    random = np.random.default_rng((ids.start, ts))
    own = [
        pa.array([instant] * count),
        pa.array([f"{instant}_{id}" for id in ids]),
        pa.array(list(map(str, ids))),
        pa.array([part] * count),
        pa.array([file] * count),
    ]
    values = {
        "id": pa.array(numbers),
        "ts": pa.array(np.full(count, ts)),
        "s": pa.array([str(id % 97) for id in ids]),
        "price": pa.array(numbers / 100),
        "d": pa.array((_DAYS + numbers % 900).astype(np.int32)).cast(pa.date32()),
        **{f"d{i}": pa.array(random.random(count)) for i in range(6)},
        **{f"n{i}": pa.array(random.integers(0, 1000, count, np.int32)) for i in range(5)},
    }
    return pa.table({**dict(zip(META, own, strict=True)), **values})


def _records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows for Avro, where a date is a number."""
    at = rows.column_names.index("d")
    rows = rows.set_column(at, "d", rows.column("d").cast(pa.int32()))
    return rows.to_pylist()


def sized(table: HudiTable, file: Written) -> Written:
    return replace(file, size=(table.root / file.path).stat().st_size)


def _mark(directory: Path, depth: int) -> None:
    text = f"commitTime={_FIRST}\npartitionDepth={depth}\n"
    (directory / ".hoodie_partition_metadata").write_text(text)


def _commit(
    table: HudiTable,
    instant: str,
    action: str,
    operation: str,
    schema: dict[str, Any],
    files: Sequence[Written],
    rows: int,
) -> None:
    """A body with all that Hudi 0.15 tells of a file, and as it spells it."""
    stats: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        stats.setdefault(file.partition, []).append(_stat(file, rows))
    body = {
        "partitionToWriteStats": stats,
        "compacted": False,
        "extraMetadata": {"schema": json.dumps(schema)},
        "operationType": operation,
    }
    table.begin(instant, action)
    text = json.dumps(body, indent=2, separators=(",", " : "))
    table.state(f"{instant}.{action}", text.encode())


def _stat(file: Written, rows: int) -> dict[str, Any]:
    is_log = file.name.startswith(".")
    stat = {
        "fileId": file.name.lstrip(".").split("_")[0],
        "path": file.path,
        "cdcStats": None,
        "prevCommit": file.previous,
        "numWrites": rows,
        "numDeletes": 0,
        "numUpdateWrites": rows if is_log else 0,
        "numInserts": 0 if is_log else rows,
        "totalWriteBytes": file.size,
        "totalWriteErrors": 0,
        "tempPath": None,
        "partitionPath": file.partition,
        **{f"total{name}": 0 for name in (*_COUNTS, *_BLOCKS)},
        "fileSizeInBytes": file.size,
        "minEventTime": None,
        "maxEventTime": None,
        "runtimeStats": {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 119},
    }
    if is_log:
        stat |= {"logFiles": [file.name], "logOffset": 0, "logVersion": 1, "baseFile": ""}
    return stat
