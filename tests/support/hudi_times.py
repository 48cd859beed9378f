"""A Hudi table of times, some of whose files tell another unit than its schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block, hfile_block

KEY = "_hoodie_record_key"


def logical(name: str) -> dict[str, Any]:
    """A number of 64 bits that is a time."""
    return {"type": "long", "logicalType": name}


def record(**fields: Any) -> dict[str, Any]:
    """A schema of fields that may be null."""
    told = [{"name": n, "type": ["null", t], "default": None} for n, t in fields.items()]
    return {"type": "record", "name": "t", "fields": told}


DAY = datetime(2024, 7, 10, tzinfo=UTC)
COMMIT = record(k="string", t=logical("timestamp-millis"), n="int")


class TimesTable:
    """Files of ten rows each, an hour apart; ``unit``: what a file says its times are.

    Args:
        millis: of the table's schema. Then the numbers in files are milliseconds whatever they say;
            else the schema has microseconds, and files what they say.
    """

    def __init__(self, root: Path, kind: str, *, millis: bool = True) -> None:
        self._millis = millis
        self._schema = json.dumps(COMMIT).replace("millis", "millis" if millis else "micros")
        self.hudi = HudiTable(
            root,
            8,
            kind,
            hoodie__table__recordkey__fields="k",
            hoodie__record__merge__mode="COMMIT_TIME_ORDERING",
        )
        self.clock = 20260101000000000
        self.rows: dict[str, datetime] = {}
        (root / ".hoodie_partition_metadata").touch()

    def base(self, unit: str, day: int) -> None:
        self.clock += 1000
        at, group = str(self.clock), f"{day:08d}-0000-0000-0000-000000000000-0"
        made = {f"{day}-{i}": DAY + timedelta(day, i * 3600) for i in range(10)}
        self.rows |= made
        numbers = pa.array([self._number(t, unit) for t in made.values()])
        table = pa.table(
            {
                KEY: list(made),
                "k": list(made),
                "t": numbers.cast(pa.timestamp(unit, "UTC")),
                "n": pa.array(range(10), pa.int32()),
            }
        )
        base = self.hudi.base("", group, at)
        path = self.hudi.root / base.name
        pq.write_table(table, path)
        self._commit(at, Written("", base.name, path.stat().st_size))

    def log(self, unit: str, day: int, row: int, moved: timedelta, *, hfile: bool = False) -> None:
        self.clock += 1000
        at, group = str(self.clock), f"{day:08d}-0000-0000-0000-000000000000-0"
        key = f"{day}-{row}"
        self.rows[key] += moved
        schema = json.loads(json.dumps(COMMIT).replace("millis", unit))
        schema["fields"].insert(0, {"name": KEY, "type": ["null", "string"]})
        rows = [{KEY: key, "k": key, "t": self._number(self.rows[key], unit), "n": row}]
        block = hfile_block(at, schema, rows, "k") if hfile else avro_block(at, schema, rows)
        log = self.hudi.log("", group, at, size=len(block))
        (self.hudi.root / log.name).write_bytes(block)
        self._commit(at, log)

    def _number(self, time: datetime, unit: str) -> int:
        millis = int(time.timestamp() * 1000)
        return millis if self._millis or unit in ("ms", "millis") else millis * 1000

    def _commit(self, at: str, file: Written) -> None:
        self.hudi.commit(at, [file], schema=self._schema)

    def check(self, table: bridge.Table, condition: str, holds: Any) -> int:
        """Compares the rows; returns the number of slices that are read."""
        found = table.scan(condition, columns=["k", "t"]).to_arrow().to_pylist()
        told = {row["k"]: row["t"].replace(tzinfo=UTC) for row in found}
        expected = {k: t for k, t in self.rows.items() if holds(t, int(k.split("-")[1]))}
        assert told == expected, condition
        return table.scan(condition).files().num_rows
