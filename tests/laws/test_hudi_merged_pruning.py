"""Skipping and merging gives the rows of merging and filtering, for random histories of slices.

A model writer inserts, updates, deletes, compacts and leaves failed writes behind, in groups whose
rows move into and out of a predicate from one log to the next. It spells columns in any case. What
the table holds is known from the writes alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridge
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block
from tests.tiers import examples

COMMIT_TIME, EVENT_TIME = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
_META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
_FIELDS: list[tuple[str, Any]] = [
    *((f"_hoodie_{name}", ["null", "string"]) for name in _META),
    ("k", ["null", "string"]),
    ("v", ["null", "int"]),
    ("ts", ["null", "long"]),
    ("_hoodie_is_deleted", ["null", "boolean"]),
]


def schema_of(spelled: Mapping[str, str]) -> dict[str, Any]:
    """The table's columns, some of them under other names."""
    fields = [{"name": spelled.get(n, n), "type": kind, "default": None} for n, kind in _FIELDS]
    return {"type": "record", "name": "t", "fields": fields}


_ARROW = pa.schema(
    [
        *((f"_hoodie_{name}", pa.string()) for name in _META),
        ("k", pa.string()),
        ("v", pa.int32()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
Row = dict[str, Any]
SPELLED = ("k", "v", "ts")
"""Columns that files may have in another case."""


@dataclass(slots=True)
class Group:
    """A file group: its newest base file and logs, and the rows that a merge of them gives."""

    id: str
    base: Written | None = None
    logs: int = 0
    merged: dict[str, Row] = field(default_factory=dict)
    """By key; until a compaction also the deletions, which older rows do not undo."""

    @property
    def rows(self) -> list[Row]:
        return [row for row in self.merged.values() if not row["_hoodie_is_deleted"]]


class Table:
    """A merge-on-read table with rows, whose merge the model does by itself."""

    def __init__(self, root: Path, version: int, mode: str, random: Random) -> None:
        self.hudi = HudiTable(
            root,
            version,
            hoodie__table__recordkey__fields="k",
            hoodie__table__ordering__fields="ts" if mode == EVENT_TIME else "",
            hoodie__record__merge__mode=mode,
        )
        self._root, self._mode, self._random = root, mode, random
        self._capitals = random.random() < 0.5
        self._names: dict[str, str] = {}
        self._clock, self._keys = 1000, 0
        self.groups: list[Group] = []

    def run(self, steps: int) -> None:
        self._insert()
        choices = [self._insert, *[self._update] * 5, self._compact, self._fail]
        for _ in range(steps):
            self._random.choice(choices)()

    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    def _instant(self) -> str:
        self._clock += 1
        return str(self._clock)

    def _row(self, key: str, instant: str) -> Row:
        number = int(key[1:])
        # Close to the other rows of the group, or somewhere else.
        near = self._random.random() < 0.7
        value = 10 * (number // 4) + self._random.randint(0, 3) if near else self._value()
        meta = {f"_hoodie_{name}": "" for name in _META}
        return {
            **meta,
            "_hoodie_commit_time": instant,
            "_hoodie_record_key": key,
            "k": key,
            "v": None if self._random.random() < 0.05 else value,
            "ts": self._random.randint(1, 9),
            "_hoodie_is_deleted": self._random.random() < 0.15,
        }

    def _value(self) -> int:
        return self._random.randint(-5, 60)

    def _spelling(self) -> dict[str, str]:
        """The names of the next file's columns; the table's are those of its newest commit."""
        capitals = self._capitals and self._random.random() < 0.5
        upper = [name for name in SPELLED if capitals and self._random.random() < 0.7]
        self._names = {name: name.upper() for name in upper}
        return self._names

    def _commit(self, instant: str, files: list[Written], action: str, operation: str) -> None:
        text = json.dumps(schema_of(self._names))
        self.hudi.commit(instant, files, action=action, operation=operation, schema=text)

    def _insert(self) -> None:
        instant = self._instant()
        group = Group(f"g{len(self.groups):03}-0")
        rows = []
        for _ in range(4):
            rows.append({**self._row(f"k{self._keys}", instant), "_hoodie_is_deleted": False})
            self._keys += 1
        group.merged = {row["k"]: row for row in rows}
        group.base = self._base(group, instant)
        self.groups.append(group)
        self._commit(instant, [group.base], "deltacommit", "INSERT")

    def _update(self) -> None:
        instant = self._instant()
        group = self._random.choice(self.groups)
        first = 4 * self.groups.index(group)
        keys = self._random.sample(range(first, first + 4), self._random.randint(1, 3))
        rows = [self._row(f"k{key}", instant) for key in keys]
        self._commit(instant, [self._log(group, instant, rows)], "deltacommit", "UPSERT")
        for row in rows:
            self._merge(group, row)

    def _merge(self, group: Group, row: Row) -> None:
        held = group.merged.get(row["k"])
        if held is None or self._mode == COMMIT_TIME or row["ts"] >= held["ts"]:
            group.merged[row["k"]] = row

    def _compact(self) -> None:
        group = self._random.choice(self.groups)
        if group.logs:
            instant = self._instant()
            group.merged = {row["k"]: row for row in group.rows}
            group.base = self._base(group, instant)
            group.logs = 0
            self._commit(instant, [group.base], "commit", "COMPACT")

    def _fail(self) -> None:
        """A writer dies: its log stays, and no reader may look at it."""
        instant = self._instant()
        group = self._random.choice(self.groups)
        row = self._row(f"k{4 * self.groups.index(group)}", instant)
        self.hudi.begin(instant, "deltacommit")
        self._log(group, instant, [row])
        group.logs -= 1

    def _base(self, group: Group, instant: str) -> Written:
        name = self.hudi.base("", group.id, instant).name
        path = self._root / name
        held = pa.Table.from_pylist(group.rows, _ARROW)
        spelled = self._spelling()
        pq.write_table(held.rename_columns([spelled.get(n, n) for n in held.column_names]), path)
        return Written("", name, path.stat().st_size)

    def _log(self, group: Group, instant: str, rows: list[Row]) -> Written:
        name = self.hudi.log("", group.id, instant).name
        path = self._root / name
        path.write_bytes(self._block(instant, rows))
        group.logs += 1
        previous = group.base.name.rpartition("_")[2].partition(".")[0] if group.base else "null"
        return Written("", name, path.stat().st_size, previous)

    def _block(self, instant: str, rows: list[Row]) -> bytes:
        spelled = self._spelling()
        told = [{spelled.get(n, n): value for n, value in row.items()} for row in rows]
        return avro_block(instant, schema_of(spelled), told)


def condition(random: Random) -> tuple[str, Any]:
    """A predicate in SQL, and whether a row satisfies it."""
    low = random.randint(-6, 61)
    high = low + random.randint(0, 12)
    instant = str(random.randint(1001, 1030))

    def number(holds: Any) -> Any:
        return lambda row: row["v"] is not None and holds(row["v"])

    return random.choice(
        [
            (f"v = {low}", number(lambda v: v == low)),
            (f"v BETWEEN {low} AND {high}", number(lambda v: low <= v <= high)),
            (f"v < {low}", number(lambda v: v < low)),
            (f"v >= {low} OR v IS NULL", lambda row: row["v"] is None or row["v"] >= low),
            (
                f"v <> {low} AND ts > 8",
                lambda row: number(lambda v: v != low)(row) and row["ts"] > 8,
            ),
            (f"ts = {low % 12}", lambda row: row["ts"] == low % 12),
            (
                f"v IN ({low}, {high}) AND ts <> {low % 12}",
                lambda row: row["v"] in (low, high) and row["ts"] != low % 12,
            ),
            (f"k = 'k{low % 30}'", lambda row: row["k"] == f"k{low % 30}"),
            (
                f"k IN ('k{low % 30}', 'k{high % 30}') OR v = {low}",
                lambda row: row["k"] in (f"k{low % 30}", f"k{high % 30}") or row["v"] == low,
            ),
            (
                f"_hoodie_commit_time > '{instant}'",
                lambda row: row["_hoodie_commit_time"] > instant,
            ),
        ]
    )


def kinds(random: Random) -> dict[str, list[str]]:
    """Columns of indexes beside min/max."""
    names = ["k", "v", "ts", "_hoodie_commit_time"]
    return {
        kind: random.sample(names, random.randint(1, 3))
        for kind in ("bloom", "values")
        if random.random() < 0.5
    }


def ids(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((r["k"], r["v"] is None, r["v"], r["ts"], r["_hoodie_commit_time"]) for r in rows)


def ask(table: Table, opened: bridge.Table, random: Random, count: int) -> int:
    """Asks for rows by some conditions; how many slices with logs were skipped."""
    skipped = 0
    rows = table.rows()
    for _ in range(count):
        text, holds = condition(random)
        scan = opened.scan(text)
        assert ids(scan.to_arrow().to_pylist()) == ids(row for row in rows if holds(row)), text
        kept = [path.rpartition("/")[2] for path in scan.files()["path"].to_pylist()]
        for group in table.groups:
            assert group.base is not None
            skipped += group.logs > 0 and group.base.name not in kept
    return skipped


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("mode", [COMMIT_TIME, EVENT_TIME])
@settings(max_examples=examples(5, 5, 60))  # of one, only the simplest history is drawn
@given(random=st.randoms(use_true_random=False))
def test_skipping_and_merging_is_merging_and_filtering(
    version: int, mode: str, random: Random
) -> None:
    with tempfile.TemporaryDirectory() as directory, bridge.connect() as session:
        table = Table(Path(directory) / "t", version, mode, random)
        table.run(random.randint(4, 24))
        opened = session.table(str(Path(directory) / "t"))
        for _ in range(random.randint(1, 2)):
            opened.index.build(**kinds(random))
            if random.random() < 0.4:
                table.run(random.randint(1, 6))  # the index does not know these
            assert ids(opened.scan().to_arrow().to_pylist()) == ids(table.rows())
            ask(table, opened, random, 6)


@pytest.mark.parametrize("mode", [COMMIT_TIME, EVENT_TIME])
def test_slices_are_skipped_with_their_logs(mode: str, tmp_path: Path) -> None:
    table = Table(tmp_path / "t", 9, mode, Random(5))
    table.run(40)
    with bridge.connect() as session:
        opened = session.table(str(tmp_path / "t"))
        opened.index.build()
        skipped = ask(table, opened, Random(7), 20)
    assert skipped > 10
