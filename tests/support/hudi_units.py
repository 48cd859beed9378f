"""A Hudi table of times whose files may say other units than its schema does, and its rows.

A model of its own: a time is microseconds since the epoch. Its number in a file is in a unit that
the file's type need not name: where the table has milliseconds, some releases wrote them as
``timestamp-micros``, and local times as numbers of no unit.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from bridge.formats.hudi.log_format import BlockType, Header
from bridge.formats.hudi.log_records import _delete_schema
from tests.support.hudi_evolving import COMMIT_TIME, EVENT_TIME, PAYLOADS
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block, log_block

_KEY = "_hoodie_record_key"
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000
FAR = 25_000 * _DAY
"""Later than any row."""
_LOCAL = "local-timestamp-"
_UNIT = {"ms": (1, 1000), "us": (1, 1), "ns": (1000, 1)}


def _time(unit: str, zone: str | None = None) -> pa.DataType:
    return pa.timestamp(unit, zone)


BASE: Mapping[str, Sequence[tuple[pa.DataType, str]]] = {
    "timestamp-millis": [
        (_time("ms", "UTC"), "ms"),
        (_time("us", "UTC"), "ms"),
        (_time("ns", "UTC"), "ns"),
    ],
    "timestamp-micros": [
        (_time("us", "UTC"), "us"),
        (_time("ms", "UTC"), "ms"),
        (_time("ns", "UTC"), "ns"),
        (_time("us"), "us"),
    ],
    "local-timestamp-millis": [
        (pa.int64(), "ms"),
        (_time("ms"), "ms"),
        (_time("us"), "ms"),
        (_time("us", "UTC"), "ms"),
        (_time("ns"), "ns"),
    ],
    "local-timestamp-micros": [
        (pa.int64(), "us"),
        (_time("us"), "us"),
        (_time("us", "UTC"), "us"),
        (_time("ms"), "ms"),
        (_time("ns"), "ns"),
    ],
}
"""What the table's schema says: types in Parquet, and the unit that their numbers are in."""
LOG: Mapping[str, Sequence[tuple[str, str]]] = {
    "timestamp-millis": [("timestamp-millis", "ms"), ("timestamp-micros", "ms")],
    "timestamp-micros": [("timestamp-micros", "us"), ("timestamp-millis", "ms")],
    "local-timestamp-millis": [
        ("local-timestamp-millis", "ms"),
        ("", "ms"),
        ("local-timestamp-micros", "ms"),
    ],
    "local-timestamp-micros": [
        ("local-timestamp-micros", "us"),
        ("", "us"),
        ("local-timestamp-millis", "ms"),
    ],
}
"""The same in Avro; empty: a plain number."""
Row = dict[str, Any]
"""``k``, ``n``, times ``t`` and ``x``, a list ``l`` of times; ``s``: the struct is not NULL."""


@dataclass(slots=True)
class Group:
    """A file group, its rows by key, and the event times of all keys, also of deleted ones."""

    id: str
    base: str
    near: int
    rows: dict[str, Row]
    times: dict[str, int] = field(default_factory=dict)
    logs: int = 0


class UnitsTable:
    """Makes up its own history.

    Args:
        mixed: files may have any type that means the same; else each has the first one.

    Attributes:
        kinds: what the table's schema says of the columns ``t``, ``x`` and ``l``.
    """

    def __init__(
        self, root: Path, random: Random, version: int, mode: str | None, *, mixed: bool = True
    ) -> None:
        properties = {
            "hoodie.table.recordkey.fields": "k",
            "hoodie.record.merge.mode": mode or COMMIT_TIME,
            "hoodie.table.ordering.fields": "t" if mode == EVENT_TIME else "",
            "hoodie.compaction.payload.class": PAYLOADS[mode or COMMIT_TIME] if version < 8 else "",
        }
        given = {name.replace(".", "__"): text for name, text in properties.items()}
        self.hudi = HudiTable(root, version, "MERGE_ON_READ" if mode else "COPY_ON_WRITE", **given)
        self.random, self._mode, self._mixed = random, mode, mixed
        self.kinds = {name: random.choice(list(BASE)) for name in ("t", "x", "l")}
        self.groups: list[Group] = []
        self._clock, self._keys = 20260101000000000, 0
        (root / ".hoodie_partition_metadata").touch()

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows.values()]

    def run(self, steps: int) -> None:
        """An insert, and then random writes."""
        self.insert()
        for _ in range(steps):
            if self._mode is None or self.random.random() < 0.35:
                self.insert()
            else:
                self.update()

    def insert(self) -> None:
        """A file group of a few rows that are close to each other."""
        at = self._instant()
        near = self.random.choice((19_900, 19_900, 0, -30_000)) + self.random.randint(0, 300)
        group = Group(f"{len(self.groups):08d}-0000-0000-0000-000000000000-0", at, near, {})
        for _ in range(self.random.randint(1, 4)):
            self._keys += 1
            row = self._row(f"k{self._keys}", near)
            group.rows[row["k"]], group.times[row["k"]] = row, row["t"]
        self.groups.append(group)
        base = self.hudi.base("", group.id, at)
        path = self.hudi.root / base.name
        path.write_bytes(self._parquet(list(group.rows.values())))
        self._commit(at, replace(base, size=path.stat().st_size))

    def update(self) -> None:
        """New rows and deletions in a log."""
        at, group = self._instant(), self.random.choice(self.groups)
        blocks = []
        for _ in range(self.random.choice((1, 1, 2))):
            known = sorted(group.times)
            keys = self.random.sample(known, self.random.randint(1, min(2, len(known))))
            near = group.near + self.random.choice((0, 0, 0, 40, -5000))
            if self.random.random() < 0.25:
                times = {key: self._moment(near) for key in keys}
                blocks.append(self._deletes(at, times))
                for key, time in times.items():
                    self._merge(group, key, time, None)
                continue
            rows = [self._row(key, near) for key in keys]
            blocks.append(self._block(at, rows))
            for row in rows:
                self._merge(group, row["k"], row["t"], row)
        group.logs += 1
        named = at if self.hudi.version >= 8 else group.base
        number = 1 if self.hudi.version >= 8 else group.logs
        content = b"".join(blocks)
        log = self.hudi.log(
            "", group.id, named, number=number, previous=group.base, size=len(content)
        )
        (self.hudi.root / log.name).write_bytes(content)
        self._commit(at, log)

    def expected(self) -> list[Row]:
        """All rows as the table shows them."""
        return [shown(row) for row in self.rows]

    def found(self, table: bridge.Table, where: str | None = None) -> list[Row]:
        """The rows of a scan."""
        scan = table.scan(where, columns=["k", "n", "t", "s", "l"])
        rows: list[Row] = scan.to_arrow().to_pylist()
        return rows

    # Parts of all that

    def _merge(self, group: Group, key: str, time: int, row: Row | None) -> None:
        if self._mode == COMMIT_TIME or time >= group.times[key]:
            group.times[key] = time
            group.rows.pop(key, None)
            if row is not None:
                group.rows[key] = row

    def _moment(self, near: int) -> int:
        """Whole milliseconds, so that each unit holds it."""
        return near * _DAY + self.random.randint(-7_200_000, 7_200_000) * 1000

    def _row(self, key: str, near: int) -> Row:
        def moment() -> int | None:
            return None if self.random.random() < 0.1 else self._moment(near)

        some = self.random.random()
        return {
            "k": key,
            "n": self.random.randint(0, 9),
            "t": self._moment(near) if self._mode == EVENT_TIME else moment(),
            "s": self.random.random() > 0.1,
            "x": moment(),
            "l": None if some < 0.2 else [moment() for _ in range(self.random.randint(0, 2))],
        }

    def _instant(self) -> str:
        self._clock += 1000
        return str(self._clock)

    def _pick(self, ways: Sequence[tuple[Any, str]]) -> tuple[Any, str]:
        return self.random.choice(ways) if self._mixed else ways[0]

    def _parquet(self, rows: Sequence[Row]) -> bytes:
        ways = {name: self._pick(BASE[kind]) for name, kind in self.kinds.items()}

        def column(name: str, values: list[Any], nested: Callable[[Any], pa.DataType]) -> pa.Array:
            type = ways[name][0]
            return pa.array(values, nested(pa.int64())).cast(nested(type))

        def of(name: str, time: int | None) -> int | None:
            return number(time, ways[name][1])

        texts = pa.array([row["k"] for row in rows])
        table = pa.table(
            {
                _KEY: texts,
                "k": texts,
                "n": pa.array([row["n"] for row in rows], pa.int32()),
                "t": column("t", [of("t", row["t"]) for row in rows], lambda type: type),
                "s": column(
                    "x",
                    [{"x": of("x", row["x"]), "y": "y"} if row["s"] else None for row in rows],
                    lambda type: pa.struct([("x", type), ("y", pa.string())]),
                ),
                "l": column(
                    "l",
                    [row["l"] and [of("l", time) for time in row["l"]] for row in rows],
                    pa.list_,
                ),
            }
        )
        sink = io.BytesIO()
        pq.write_table(table, sink, store_schema=False)
        return sink.getvalue()

    def _block(self, at: str, rows: Sequence[Row]) -> bytes:
        """Rows as Avro or as Parquet."""
        if self.random.random() < 0.25:
            header = {Header.INSTANT_TIME: at, Header.SCHEMA: json.dumps(self._schema(self.kinds))}
            return log_block(BlockType.PARQUET_DATA, header, self._parquet(rows))
        ways = {name: self._pick(LOG[kind]) for name, kind in self.kinds.items()}

        def of(name: str, time: int | None) -> int | None:
            return number(time, ways[name][1])

        records = [
            {
                _KEY: row["k"],
                "k": row["k"],
                "n": row["n"],
                "t": of("t", row["t"]),
                "s": {"x": of("x", row["x"]), "y": "y"} if row["s"] else None,
                "l": None if row["l"] is None else [of("l", time) for time in row["l"]],
            }
            for row in rows
        ]
        return avro_block(at, self._schema({n: told for n, (told, _) in ways.items()}), records)

    def _deletes(self, at: str, times: Mapping[str, int]) -> bytes:
        """Keys; their event times are plain numbers in the unit of the table's schema."""
        event = self._mode == EVENT_TIME
        unit = "ms" if self.kinds["t"].endswith("millis") else "us"
        found = [
            {
                "recordKey": key,
                "partitionPath": "",
                "orderingVal": ("LongWrapper", {"value": number(time, unit)}) if event else None,
            }
            for key, time in times.items()
        ]
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, _delete_schema(), {"deleteRecordList": found})
        content = struct.pack(">ii", 3, len(sink.getvalue())) + sink.getvalue()
        return log_block(BlockType.DELETE, {Header.INSTANT_TIME: at}, content)

    def _schema(self, kinds: Mapping[str, str]) -> dict[str, Any]:
        def time(name: str) -> list[Any]:
            kind = kinds[name]
            return ["null", {"type": "long", "logicalType": kind} if kind else "long"]

        inner = [("x", time("x")), ("y", ["null", "string"])]
        struct_type = {"type": "record", "name": "st", "fields": _fields(inner)}
        outer = [
            (_KEY, ["null", "string"]),
            ("k", ["null", "string"]),
            ("n", ["null", "int"]),
            ("t", time("t")),
            ("s", ["null", struct_type]),
            ("l", ["null", {"type": "array", "items": time("l")}]),
        ]
        return {"type": "record", "name": "t", "fields": _fields(outer)}

    def _commit(self, at: str, file: Written) -> None:
        told = self._schema(self.kinds)
        told["fields"] = [f for f in told["fields"] if f["name"] != _KEY]
        action = "deltacommit" if self._mode else "commit"
        self.hudi.commit(at, [file], action=action, schema=json.dumps(told))


def _fields(pairs: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "type": type, "default": None} for name, type in pairs]


def number(time: int | None, unit: str) -> int | None:
    """A time's number in a unit."""
    if time is None:
        return None
    up, down = _UNIT[unit]
    return time * up // down


def moment(time: int | None) -> datetime | None:
    return None if time is None else _EPOCH + timedelta(microseconds=time)


def shown(row: Row) -> Row:
    """A row as the table shows it."""
    return {
        "k": row["k"],
        "n": row["n"],
        "t": moment(row["t"]),
        "s": {"x": moment(row["x"]), "y": "y"} if row["s"] else None,
        "l": None if row["l"] is None else [moment(time) for time in row["l"]],
    }


def condition(made: UnitsTable) -> tuple[str, Callable[[Row], bool]]:
    """A condition in SQL, and whether a row of the model satisfies it."""
    random = made.random
    first = _single(made)
    roll = random.random()
    if roll < 0.7:
        return first
    second = _single(made)
    both = all if roll < 0.9 else any
    word = " AND " if both is all else " OR "
    return f"({first[0]}){word}({second[0]})", lambda r: both((first[1](r), second[1](r)))


def _single(made: UnitsTable) -> tuple[str, Callable[[Row], bool]]:
    random = made.random
    if random.random() < 0.15:
        least = random.randint(0, 10)
        return f"n >= {least}", lambda row: row["n"] >= least
    name, place = random.choice((("t", "t"), ("t", "t"), ("s.x", "x")))

    def value(row: Row) -> int | None:
        time: int | None = row[place] if place == "t" or row["s"] else None
        return time

    roll = random.random()
    if roll < 0.1:
        if random.random() < 0.5:
            return f"{name} IS NULL", lambda row: value(row) is None
        return f"{name} IS NOT NULL", lambda row: value(row) is not None
    low, high = sorted((_literal(made, place), _literal(made, place)))
    some, other = spelled(low), spelled(high)

    def told(holds: Callable[[int], bool]) -> Callable[[Row], bool]:
        def of(row: Row) -> bool:
            time = value(row)
            return time is not None and holds(time)

        return of

    if roll < 0.2:
        day = low // _DAY * _DAY
        text = f"date_trunc('day', {name}) = {spelled(day)}"
        return text, told(lambda v: v // _DAY * _DAY == day)
    match random.choice(("=", "=", "=", ">=", "<", "<>", "IN", "BETWEEN")):
        case "=":
            return f"{name} = {some}", told(lambda v: v == low)
        case ">=":
            return f"{name} >= {some}", told(lambda v: v >= low)
        case "<":
            return f"{name} < {some}", told(lambda v: v < low)
        case "<>":
            return f"{name} <> {some}", told(lambda v: v != low)
        case "IN":
            return f"{name} IN ({some}, {other})", told(lambda v: v in (low, high))
    return f"{name} BETWEEN {some} AND {other}", told(lambda v: low <= v <= high)


def _literal(made: UnitsTable, place: str) -> int:
    """Near a row's time, or near what its number would be in another unit."""
    random = made.random
    known = [row[place] for row in made.rows if row[place] is not None] or [0]
    time: int = random.choice(known) + random.choice((0, 0, 0, 1000, -1000, 1))
    return random.choice((time, time, time, time // 1000, FAR, _DAY * 20))


def spelled(time: int) -> str:
    """A time in SQL."""
    return f"TIMESTAMP '{_EPOCH + timedelta(microseconds=time):%Y-%m-%d %H:%M:%S.%f}'"
