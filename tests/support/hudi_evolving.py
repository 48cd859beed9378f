"""A Hudi table whose columns are renamed, retyped, dropped and added again, and what it holds.

A model of its own: rows are kept by the ids of columns, so it knows what each query has to show.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block

Value = int | str | None
NAMES = ("a", "b", "c", "d")
RECORD_KEY = "_hoodie_record_key"
_ARROW = {"int": pa.int32(), "long": pa.int64(), "string": pa.string()}
_WIDER = {"int": ("long", "string"), "long": ("string",), "string": ()}


@dataclass(frozen=True, slots=True)
class Column:
    id: int
    name: str
    type: str

    def value(self, written: Value) -> Value:
        """A value that was written under this id, in the type of now."""
        return str(written) if self.type == "string" and written is not None else written


@dataclass(slots=True)
class Group:
    """A file group of a merge-on-read table: its rows by key, and what it wrote them to."""

    id: str
    rows: dict[Value, dict[int, Value]]
    base: str
    logs: int = 0


class EvolvingTable:
    """Each file holds rows of one version of the schema.

    Args:
        logs: merge-on-read, by commit time: updates and deletes go to logs, and are compacted.
    """

    def __init__(self, root: Path, random: Random, version: int = 8, logs: bool = False) -> None:
        self.hudi = HudiTable(
            root,
            version,
            "MERGE_ON_READ" if logs else "COPY_ON_WRITE",
            hoodie__table__recordkey__fields="k",
            hoodie__record__merge__mode="COMMIT_TIME_ORDERING",
        )
        self.merges = logs
        self.groups: list[Group] = []
        self.random = random
        self.columns = [Column(0, "k", "int"), Column(1, "a", "int"), Column(2, "b", "string")]
        self._clock, self._ids, self._written = 20260101000000000, 2, 0
        self._versions = [(0, tuple(self.columns))]
        self._dropped: list[str] = []
        self._evolved = False
        (root / ".hoodie" / ".schema").mkdir()

    def run(self, steps: int) -> None:
        steps_of = [self.write, self.rename, self.add, self.drop, self.retype]
        if self.merges:
            steps_of += [self.update, self.update, self.update, self.compact]
        self.write()
        for _ in range(steps):
            self.random.choice(steps_of)()
        self.write()

    def write(self) -> None:
        """A file of a few rows, perhaps also with values of a column that was dropped."""
        instant, rows = self._instant(), []
        near = self.random.randint(0, 9)
        for _ in range(self.random.randint(1, 4)):
            self._written += 1
            rows.append({c.id: self._value(c, near) for c in self.columns} | {0: self._written})
        group = f"{self._written:08d}-0000-0000-0000-000000000000-0"
        self.groups.append(Group(group, {row[0]: row for row in rows}, instant))
        self._commit(instant, [self._base(group, instant, rows)], "INSERT")

    def update(self) -> None:
        """A log with new versions of some rows, or their deletion."""
        instant, group = self._instant(), self.random.choice(self.groups)
        near, rows = self.random.randint(0, 9), []
        for key in self.random.sample(list(group.rows), min(2, len(group.rows))):
            row = {c.id: self._value(c, near) for c in self.columns} | {0: key}
            group.rows[key] = row
            rows.append({c.name: row[c.id] for c in self.columns})
        if not rows:
            return
        log = self.hudi.log("", group.id, instant if self.hudi.version >= 8 else group.base)
        path = self.hudi.root / log.name
        if path.exists():  # before version 8 a log is named after its base file
            log = self.hudi.log("", group.id, group.base, number=group.logs + 1)
            path = self.hudi.root / log.name
        fields = [{"name": c.name, "type": ["null", c.type]} for c in self.columns]
        text = {"name": RECORD_KEY, "type": ["null", "string"]}
        schema = {"type": "record", "name": "t", "fields": [text, *fields]}
        keyed = [{RECORD_KEY: str(row["k"]), **row} for row in rows]
        path.write_bytes(avro_block(instant, schema, keyed))
        group.logs += 1
        written = replace(log, size=path.stat().st_size, previous=group.base)
        self._commit(instant, [written], "UPSERT", "deltacommit")

    def compact(self) -> None:
        """A base file with the merged rows, under the schema of now."""
        group = self.random.choice(self.groups)
        if group.logs:
            instant = self._instant()
            group.base, group.logs = instant, 0
            group.rows = {
                key: {c.id: c.value(row.get(c.id)) for c in self.columns}
                for key, row in group.rows.items()
            }
            rows = list(group.rows.values())
            self._commit(instant, [self._base(group.id, instant, rows)], "COMPACT")

    def _base(self, group: str, instant: str, rows: Sequence[dict[int, Value]]) -> Written:
        arrays = {c.name: pa.array([r[c.id] for r in rows], _ARROW[c.type]) for c in self.columns}
        free = [name for name in self._dropped if name not in arrays]
        if free and self.random.random() < 0.5:
            arrays[free[0]] = pa.array(["stray"] * len(rows))
        if self.merges:
            arrays[RECORD_KEY] = pa.array([str(row[0]) for row in rows])
        base = self.hudi.base("", group, instant)
        path = self.hudi.root / base.name
        pq.write_table(pa.table(arrays), path)
        return replace(base, size=path.stat().st_size)

    @property
    def rows(self) -> list[dict[int, Value]]:
        return [row for group in self.groups for row in group.rows.values()]

    def rename(self) -> None:
        column = self.random.choice(self.columns[1:] or [None])
        if column is not None:
            self._change(column, replace(column, name=self._free_name()))

    def retype(self) -> None:
        column = self.random.choice(self.columns[1:] or [None])
        if column is not None and _WIDER[column.type]:
            self._change(column, replace(column, type=self.random.choice(_WIDER[column.type])))

    def drop(self) -> None:
        if len(self.columns) > 2:
            gone = self.columns.pop(self.random.randint(1, len(self.columns) - 1))
            self._dropped.append(gone.name)
            self._alter()

    def add(self) -> None:
        self._ids += 1
        kind = self.random.choice(("int", "string"))
        self.columns.append(Column(self._ids, self._free_name(), kind))
        self._alter()

    def expected(self) -> list[dict[str, Value]]:
        """All rows as they have to be shown."""
        return [{c.name: c.value(row.get(c.id)) for c in self.columns} for row in self.rows]

    def _change(self, old: Column, new: Column) -> None:
        self.columns[self.columns.index(old)] = new
        if new.name != old.name:
            self._dropped.append(old.name)
        self._alter()

    def _free_name(self) -> str:
        taken = {c.name for c in self.columns}
        again = [n for n in self._dropped if n not in taken]
        if again and self.random.random() < 0.6:
            return self.random.choice(again)
        return next(n for n in (*NAMES, *(f"x{i}" for i in range(99))) if n not in taken)

    def _value(self, column: Column, near: int) -> Value:
        if self.random.random() < 0.1:
            return None
        number = near * 10 + self.random.randint(0, 3)
        return number if column.type != "string" else f"s{number:03d}"

    def _instant(self) -> str:
        self._clock += 1000
        return str(self._clock)

    def _alter(self) -> None:
        instant = self._instant()
        self._evolved = True
        self._versions.append((int(instant), tuple(self.columns)))
        self._commit(instant, [], "ALTER_SCHEMA")

    def _commit(
        self, instant: str, files: Sequence[Any], operation: str, action: str = "commit"
    ) -> None:
        fields = [{"name": c.name, "type": ["null", c.type]} for c in self.columns]
        schema = json.dumps({"type": "record", "name": "t", "fields": fields})
        told = [_version(number, columns) for number, columns in reversed(self._versions)]
        latest = None
        if self._evolved:
            history = self.hudi.root / ".hoodie" / ".schema" / f"{instant}.schemacommit"
            history.write_text(json.dumps({"schemas": told}))
            # A service may leave it out; then the instant tells the version.
            latest = json.dumps(told[0]) if self.random.random() < 0.8 else None
        self.hudi.commit(
            instant,
            files,
            action=action,
            operation=operation,
            schema=schema,
            latest_schema=latest,
        )


def _version(number: int, columns: Sequence[Column]) -> dict[str, Any]:
    fields = [{"id": c.id, "name": c.name, "optional": True, "type": c.type} for c in columns]
    return {"version_id": number, "max_column_id": 99, "type": "record", "fields": fields}


def condition(column: Column, random: Random) -> tuple[str, Any]:
    """A condition in SQL on a column, and what it says of a value."""
    number = random.randint(-1, 95)
    name = column.name
    if random.random() < 0.1:
        return f"{name} IS NULL", lambda v: v is None
    if column.type == "string":
        text = random.choice([f"s{number:03d}", str(number)])
        if random.random() < 0.5:
            return f"{name} = '{text}'", lambda v: v == text
        return f"{name} < '{text}'", lambda v: v is not None and v < text
    if random.random() < 0.5:
        return f"{name} = {number}", lambda v: v == number
    return f"{name} >= {number}", lambda v: v is not None and v >= number
