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

from tests.support.hudi_tables import HudiTable

Value = int | str | None
NAMES = ("a", "b", "c", "d")
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


class EvolvingTable:
    """Copy-on-write; each file holds rows of one version of the schema."""

    def __init__(self, root: Path, random: Random, version: int = 8) -> None:
        self.hudi = HudiTable(root, version, "COPY_ON_WRITE", hoodie__table__recordkey__fields="k")
        self.random = random
        self.columns = [Column(0, "k", "int"), Column(1, "a", "int"), Column(2, "b", "string")]
        self.rows: list[dict[int, Value]] = []
        self._clock, self._ids, self._written = 20260101000000000, 2, 0
        self._versions = [(0, tuple(self.columns))]
        self._dropped: list[str] = []
        self._evolved = False
        (root / ".hoodie" / ".schema").mkdir()

    def run(self, steps: int) -> None:
        self.write()
        for _ in range(steps):
            self.random.choice([self.write, self.rename, self.add, self.drop, self.retype])()
        self.write()

    def write(self) -> None:
        """A file of a few rows, perhaps also with values of a column that was dropped."""
        instant, rows = self._instant(), []
        near = self.random.randint(0, 9)
        for _ in range(self.random.randint(1, 4)):
            self._written += 1
            rows.append({c.id: self._value(c, near) for c in self.columns} | {0: self._written})
        arrays = {c.name: pa.array([r[c.id] for r in rows], _ARROW[c.type]) for c in self.columns}
        free = [name for name in self._dropped if name not in arrays]
        if free and self.random.random() < 0.5:
            arrays[free[0]] = pa.array(["stray"] * len(rows))
        group = f"{self._written:08d}-0000-0000-0000-000000000000-0"
        base = self.hudi.base("", group, instant)
        path = self.hudi.root / base.name
        pq.write_table(pa.table(arrays), path)
        self.rows += rows
        self._commit(instant, [replace(base, size=path.stat().st_size)], "INSERT")

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

    def _commit(self, instant: str, files: Sequence[Any], operation: str) -> None:
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
            action="commit",
            operation=operation,
            schema=schema,
            latest_schema=latest,
        )


def _version(number: int, columns: Sequence[Column]) -> dict[str, Any]:
    fields = [{"id": c.id, "name": c.name, "optional": True, "type": c.type} for c in columns]
    return {"version_id": number, "max_column_id": 99, "type": "record", "fields": fields}
