"""A Hudi table whose columns are renamed, retyped, moved, dropped and added again, and its rows.

A model of its own: rows are kept by the ids of columns, so it knows what each query has to show.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.hudi.log_format import BlockType, Header
from bridge.formats.hudi.log_records import _delete_schema
from tests.support.hudi_columns import NAMES, SIMPLE, Column, Value, condition, walk
from tests.support.hudi_columns import field as told_field
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block, hfile, log_block, rollback_block

__all__ = ["Column", "EvolvingTable", "condition"]

COMMIT_TIME, EVENT_TIME = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
_MODEL = "org.apache.hudi.common.model."
PAYLOADS = {
    COMMIT_TIME: f"{_MODEL}OverwriteWithLatestAvroPayload",
    EVENT_TIME: f"{_MODEL}DefaultHoodieRecordPayload",
}
RECORD_KEY = "_hoodie_record_key"
KEY, TIME = 0, 1
"""The ids of the key's column and of the ordering column."""
_FIXED = (KEY, TIME)
_TEXT = {"name": RECORD_KEY, "type": ["null", "string"]}
Row = dict[int, Value]
Columns = tuple[Column, ...]


@dataclass(slots=True)
class Group:
    """A file group: its rows by key, and what it wrote them to.

    Attributes:
        base: the instant of its base file; of logs alone that of the first log.
        times: event times of keys, also of deleted ones, until a compaction.
        log: the log that a writer of version 6 appends to, with its blocks so far.
    """

    id: str
    rows: dict[int, Row]
    base: str
    has_base: bool = True
    logs: int = 0
    times: dict[int, int] = field(default_factory=dict)
    log: Written | None = None


class EvolvingTable:
    """Each block and base file holds rows of one version of the schema.

    Args:
        logs: merge-on-read: updates and deletes go to logs, and are compacted.
        mode: of the merge.
        hfiles: log blocks may be HFiles.
    """

    def __init__(
        self,
        root: Path,
        random: Random,
        version: int = 8,
        logs: bool = False,
        mode: str = COMMIT_TIME,
        hfiles: bool = True,
    ) -> None:
        self.hudi = HudiTable(
            root,
            version,
            "MERGE_ON_READ" if logs else "COPY_ON_WRITE",
            hoodie__table__recordkey__fields="k",
            hoodie__record__merge__mode=mode,
            hoodie__table__ordering__fields="ts" if mode == EVENT_TIME else "",
            hoodie__compaction__payload__class=PAYLOADS[mode] if version < 8 else "",
        )
        self.merges, self._mode, self._hfiles = logs, mode, hfiles
        self.groups: list[Group] = []
        self.random = random
        self._newest = [Column(KEY, "k", "int"), Column(TIME, "ts", "long")]
        self._newest += [Column(2, "a", "int"), Column(3, "b", "string")]
        self.columns: Columns = tuple(self._newest)
        """Those that the table shows now."""
        self._clock, self._ids, self._written = 20260101000000000, 3, 0
        self._versions: list[tuple[int, Columns]] = [(0, self.columns)]
        self._dropped: list[str] = []
        self._evolved = False
        self._is_late = False
        self.telling: set[str] = set()
        """Instants of commits that tell their version of the schema."""
        self.states: list[tuple[str, Columns, list[Row]]] = []
        """Columns and rows as of each instant."""
        self.pending: list[str] = []
        """Instants of writers that died and were not rolled back."""
        (root / ".hoodie" / ".schema").mkdir()
        (root / ".hoodie_partition_metadata").touch()

    # Histories

    def run(self, steps: int) -> None:
        """Random steps between two inserts."""
        changes = [self.rename, self.add, self.drop, self.retype, self.move, self.fail_to_change]
        writes: list[Callable[[], None]] = [self.write, self.compact, self.write_late]
        if self.merges:
            writes += [self.update, self.update, self.update, self.update, self.fail]
        self.write()
        for _ in range(steps):
            self.random.choice([*changes, *writes])()
        self.write()

    def archive(self) -> None:
        """Moves the oldest instants to the archived timeline. A late writer stays known."""
        timeline = sorted(path.name for path in self.hudi.timeline.iterdir() if path.is_file())
        instants = sorted({name[:17] for name in timeline if name[:17].isdigit()})
        done = {at for at, _, _ in self.states}
        oldest = next((n for n, at in enumerate(instants) if at not in done), len(instants))
        count = self.random.randint(0, max(min(oldest, len(instants) - 2), 0))
        # If no commit is left that tells its version, a change that failed may be taken for one.
        is_told = not self._evolved or self.telling.intersection(instants[count:])
        if count and not self._is_late and is_told:
            self.hudi.archive(*instants[:count])
            gone = set(instants[:count])
            self.states = [state for state in self.states if state[0] not in gone]

    def write(self, columns: Columns | None = None) -> None:
        """A file group of a few rows, perhaps with values of a column that was dropped as well."""
        own = columns or tuple(self._newest)
        instant, rows = self._instant(), {}
        near = self.random.randint(0, 9)
        for _ in range(self.random.randint(1, 4)):
            self._written += 1
            rows[self._written] = self._row(own, self._written, near)
        id = f"{self._written:08d}-0000-0000-0000-000000000000-0"
        group = Group(id, rows, instant, times={key: _time(row) for key, row in rows.items()})
        self.groups.append(group)
        if self.merges and self.random.random() < 0.15:
            group.has_base = False
            files = self._append(group, instant, [self._block(instant, own, list(rows.values()))])
            self._commit(instant, files, "INSERT", "deltacommit", own)
        else:
            self._commit(instant, [self._base(id, instant, own, rows)], "INSERT", columns=own)

    def write_late(self) -> None:
        """A writer that began before a change of the schema writes by the older version."""
        if len(self._versions) > 1:
            self._is_late = True
            self.write(self._versions[-2][1])

    def update(self) -> None:
        """New versions of some rows, and deletions of others, as blocks of one log."""
        instant, group = self._instant(), self.random.choice(self.groups)
        own, near = tuple(self._newest), self.random.randint(0, 9)
        blocks = []
        for _ in range(self.random.choice((1, 1, 2))):
            # Keys that were deleted may come again.
            known = sorted(group.times)
            keys = self.random.sample(known, min(self.random.randint(1, 3), len(known)))
            if self.random.random() < 0.25:
                times = {key: self.random.randint(1, 9) for key in keys}
                blocks.append(self._deletes(instant, times))
                for key, time in times.items():
                    self._merge(group, key, time, None)
                continue
            rows = [self._row(own, key, near) for key in keys]
            blocks.append(self._block(instant, own, rows))
            for key, row in zip(keys, rows, strict=True):
                self._merge(group, key, _time(row), row)
        files = self._append(group, instant, blocks)
        self._commit(instant, files, "UPSERT", "deltacommit", own)

    def fail(self) -> None:
        """A writer dies. Its log stays; in version 6 perhaps in the log of others, rolled back."""
        instant, group = self._instant(), self.random.choice(self.groups)
        own = tuple(self._newest)
        rows = [self._row(own, key, 5) for key in sorted(group.times)[:2]]
        self.hudi.begin(instant, "deltacommit")
        self._append(group, instant, [self._block(instant, own, rows)])
        if self.random.random() < 0.5:
            undo = self._instant()
            if self.hudi.version < 8:
                self._append(group, undo, [rollback_block(undo, instant)])
            self.hudi.begin(undo, "rollback")
            self.hudi.complete(undo, "rollback", {"commitsRollback": [instant]})
            self.hudi.forget(instant)
        else:
            self.pending.append(instant)

    def compact(self) -> None:
        """A base file with the merged rows, under the schema of now."""
        group = self.random.choice(self.groups)
        if not group.rows or (self.merges and not group.logs):
            return
        instant, own = self._instant(), tuple(self._newest)
        group.base, group.logs, group.log, group.has_base = instant, 0, None, True
        group.rows = {
            key: {c.id: c.rewritten(row.get(c.id)) for c in own} for key, row in group.rows.items()
        }
        group.times = {key: _time(row) for key, row in group.rows.items()}
        base = self._base(group.id, instant, own, group.rows)
        self._commit(instant, [base], "COMPACT" if self.merges else "UPSERT", columns=own)

    # Changes of the schema

    def rename(self) -> None:
        place = self._some(lambda c: c.name not in ("element", "value"))
        if place is not None:
            inside = self._siblings(place)
            self._change(place, replace(place, name=self._free_name(inside)))

    def retype(self) -> None:
        place = self._some(lambda c: bool(c.wider))
        if place is not None:
            wider = self.random.choice(place.wider)
            self._change(place, replace(place, type=wider, before=(*place.before, place.type)))

    def move(self) -> None:
        """Columns, or the fields of a struct, in another order."""
        place = self._some(lambda c: c.type == "record" and len(c.parts) > 1)
        if place is not None and self.random.random() < 0.5:
            parts = self.random.sample(place.parts, len(place.parts))
            self._change(place, replace(place, parts=tuple(parts)))
        else:
            self.random.shuffle(self._newest)
            self._alter()

    def drop(self) -> None:
        """A column, or a field of a struct that keeps its first one."""
        records = [c for top in self._newest for c in walk(top) if c.type == "record"]
        kept = {min(part.id for part in record.parts) for record in records}
        place = self._some(lambda c: c.name not in ("element", "value") and c.id not in kept)
        if place is not None and (len(self._newest) > 3 or place not in self._newest):
            self._dropped.append(place.name)
            self._change(place, None)

    def add(self) -> None:
        """A column anywhere, simple or nested, or a field of a struct."""
        place = self._some(lambda c: c.type == "record")
        if place is not None and self.random.random() < 0.5:
            parts = list(place.parts)
            new = self._new(self._free_name(place.parts), 2)
            parts.insert(self.random.randint(0, len(parts)), new)
            self._change(place, replace(place, parts=tuple(parts)))
        else:
            new = self._new(self._free_name(self._newest), 0)
            self._newest.insert(self.random.randint(0, len(self._newest)), new)
            self._alter()

    def fail_to_change(self) -> None:
        """A change that renames a column dies, and writers go on as before."""
        others = [c for c in self._newest if c.id not in _FIXED]
        if self._evolved and others:
            instant, chosen = self._instant(), self.random.choice(others)
            failed = _replaced(self._newest, chosen.id, replace(chosen, name="gone"))
            self._tell(instant, [(int(instant), failed), *reversed(self._versions)])

    # What has to be shown

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows.values()]

    def expected(self, at: int = -1) -> list[dict[str, Any]]:
        """All rows as they have to be shown, as of one of `states`."""
        _, columns, rows = self.states[at]
        return [{c.name: c.shown(row.get(c.id)) for c in columns} for row in rows]

    # Parts of all that

    def _merge(self, group: Group, key: int, time: int, row: Row | None) -> None:
        if self._mode == COMMIT_TIME or time >= group.times.get(key, 0):
            group.times[key] = time
            group.rows.pop(key, None)
            if row is not None:
                group.rows[key] = row

    def _some(self, fits: Callable[[Column], bool]) -> Column | None:
        found = [c for top in self._newest for c in walk(top) if c.id not in _FIXED and fits(c)]
        return self.random.choice(found) if found else None

    def _siblings(self, place: Column) -> Sequence[Column]:
        owners = (c for top in self._newest for c in walk(top) if place in c.parts)
        owner = next(owners, None)
        return self._newest if owner is None else owner.parts

    def _change(self, old: Column, new: Column | None) -> None:
        if new is not None and new.name != old.name:
            self._dropped.append(old.name)
        self._newest = list(_replaced(self._newest, old.id, new))
        self._alter()

    def _free_name(self, inside: Sequence[Column]) -> str:
        taken = {c.name for c in inside}
        again = [n for n in self._dropped if n not in taken]
        if again and self.random.random() < 0.6:
            return self.random.choice(again)
        return next(n for n in (*NAMES, *(f"x{i}" for i in range(99))) if n not in taken)

    def _new(self, name: str, depth: int) -> Column:
        self._ids += 1
        id, kind = self._ids, self.random.random()
        if depth > 1 or kind < 0.6:
            return Column(id, name, self.random.choice(SIMPLE))
        if kind < 0.8:
            parts = [self._new(part, depth + 1) for part in ("x", "y")]
            return Column(id, name, "record", tuple(parts))
        if kind < 0.9:
            return Column(id, name, "array", (self._new("element", depth + 1),))
        return Column(id, name, "map", (self._new("value", depth + 1),))

    def _row(self, columns: Columns, key: int, near: int) -> Row:
        row = {c.id: c.random(self.random, near) for c in columns}
        return row | {KEY: ("int", key), TIME: ("long", self.random.randint(1, 9))}

    def _arrays(self, columns: Columns, rows: Sequence[Row]) -> dict[str, pa.Array]:
        arrays = {c.spelled: pa.array([c.shown(r[c.id]) for r in rows], c.arrow) for c in columns}
        return arrays | {RECORD_KEY: pa.array([_key(row) for row in rows])}

    def _base(self, group: str, instant: str, columns: Columns, rows: dict[int, Row]) -> Written:
        arrays = self._arrays(columns, list(rows.values()))
        held = {c.name for c in columns}
        free = [name for name in self._dropped if name not in held]
        if free and self.random.random() < 0.5:
            arrays[free[0]] = pa.array(["stray"] * len(rows))
        base = self.hudi.base("", group, instant)
        path = self.hudi.root / base.name
        pq.write_table(pa.table(arrays), path)
        return replace(base, size=path.stat().st_size)

    def _block(self, instant: str, columns: Columns, rows: Sequence[Row]) -> bytes:
        """Rows as Avro, as Parquet or as an HFile, in the table's schema of the writer."""
        schema = _avro(columns, [_TEXT])
        kind = self.random.random()
        if kind < 0.2:
            sink = io.BytesIO()
            pq.write_table(pa.table(self._arrays(columns, rows)), sink)
            header = {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(schema)}
            return log_block(BlockType.PARQUET_DATA, header, sink.getvalue())
        records = [
            {RECORD_KEY: _key(row)} | {c.spelled: c.avro_value(c.shown(row[c.id])) for c in columns}
            for row in rows
        ]
        if kind < 0.35 and self._hfiles:
            parsed, entries = fastavro.parse_schema(schema), []
            for record in records:
                sink = io.BytesIO()
                fastavro.schemaless_writer(sink, parsed, record)
                entries.append((record[RECORD_KEY].encode(), sink.getvalue()))
            header = {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(schema)}
            return log_block(BlockType.HFILE_DATA, header, hfile(sorted(entries)))
        return avro_block(instant, schema, records)

    def _deletes(self, instant: str, times: dict[int, int]) -> bytes:
        event = self._mode == EVENT_TIME
        found = [
            {
                "recordKey": str(key),
                "partitionPath": "",
                "orderingVal": ("LongWrapper", {"value": time}) if event else None,
            }
            for key, time in times.items()
        ]
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, _delete_schema(), {"deleteRecordList": found})
        content = struct.pack(">ii", 3, len(sink.getvalue())) + sink.getvalue()
        return log_block(BlockType.DELETE, {Header.INSTANT_TIME: instant}, content)

    def _append(self, group: Group, instant: str, blocks: Sequence[bytes]) -> list[Written]:
        """Writes a log, or to the end of one; before version 8 one log has several writers."""
        previous = group.base if group.has_base or group.log is not None else "null"
        if self.hudi.version >= 8:
            log, offset = self.hudi.log("", group.id, instant, previous=previous), 0
        elif group.log is not None and self.random.random() < 0.5:
            log = group.log
            offset = (self.hudi.root / log.name).stat().st_size
        else:
            number = group.logs + 1
            log = self.hudi.log("", group.id, group.base, number=number, previous=previous)
            offset = 0
        group.logs += 1
        path = self.hudi.root / log.name
        with path.open("ab") as file:
            file.write(b"".join(blocks))
        group.log = replace(log, size=path.stat().st_size, offset=offset)
        return [group.log]

    def _instant(self) -> str:
        self._clock += 1000
        return str(self._clock)

    def _alter(self) -> None:
        instant = self._instant()
        if self.random.random() < 0.1:
            # A change that fails leaves its version behind; the next attempt has another one.
            failed = (*self._newest, Column(8000 + self._clock % 900, "gone", "int"))
            self._tell(instant, [(int(instant), failed), *reversed(self._versions)])
            instant = self._instant()
        self._evolved = True
        self._versions.append((int(instant), tuple(self._newest)))
        self._commit(instant, [], "ALTER_SCHEMA")

    def _tell(self, instant: str, versions: Sequence[tuple[int, Columns]]) -> None:
        history = self.hudi.root / ".hoodie" / ".schema" / f"{instant}.schemacommit"
        told = [_version(number, columns) for number, columns in versions]
        history.write_text(json.dumps({"schemas": told}))

    def _commit(
        self,
        instant: str,
        files: Sequence[Any],
        operation: str,
        action: str = "commit",
        columns: Columns | None = None,
    ) -> None:
        own = columns or tuple(self._newest)
        latest = None
        if self._evolved:
            self._tell(instant, list(reversed(self._versions)))
            number = max(number for number, held in self._versions if held == own)
            # A service may leave it out; then the instant tells the version.
            if own != self._versions[-1][1] or self.random.random() < 0.8:
                latest = json.dumps(_version(number, own))
                self.telling.add(instant)
        self.hudi.commit(
            instant,
            files,
            action=action,
            operation=operation,
            schema=json.dumps(_avro(own)),
            latest_schema=latest,
        )
        if operation != "COMPACT":
            self.columns = own
        self.states.append((instant, self.columns, deepcopy(self.rows)))


def _time(row: Row) -> int:
    time: int = row[TIME][1]
    return time


def _key(row: Row) -> str:
    return str(row[KEY][1])


def _replaced(columns: Sequence[Column], id: int, new: Column | None) -> Columns:
    found: list[Column] = []
    for column in columns:
        if column.id != id:
            found.append(replace(column, parts=_replaced(column.parts, id, new)))
        elif new is not None:
            found.append(new)
    return tuple(found)


def _avro(columns: Sequence[Column], first: Sequence[Any] = ()) -> dict[str, Any]:
    fields = [{"name": c.spelled, "type": c.avro(), "default": None} for c in columns]
    return {"type": "record", "name": "t", "fields": [*first, *fields]}


def _version(number: int, columns: Columns) -> dict[str, Any]:
    fields = [told_field(column) | {"name": column.spelled} for column in columns]
    return {"version_id": number, "max_column_id": 9999, "type": "record", "fields": fields}
