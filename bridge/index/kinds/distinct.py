"""Sketches of a column's number of distinct values: one per shard, merged for the table.

A sketch holds the k least hashes (XXH64) of the values, like a theta sketch. It is exact below k
values, and within 1/sqrt(k) above. Two sketches are merged by keeping the k least hashes of both.
The hashes are shared with the bloom filters of the same read. (Sketch libraries need one Python
call per value; this needs one sort per file.)

Sketches prune nothing; `IndexSnapshot.distinct_values` reads them. Values of removed files count
until their shard is compacted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import BoundExpression
from bridge.formats.physical_column import PhysicalColumn
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.kind import Arrays, FileFacts, IndexKind, KindStatistics, Row
from bridge.index.kinds.payload import FILE, Payload
from bridge.index.kinds.plain import hashable
from bridge.index.kinds.source import column_source
from bridge.index.kinds.xxh64 import Hashes, least

_KEPT = 1024


class Distinct(IndexKind):
    """See the module."""

    name = "ndv"
    cost = 99.0
    help = "Sketch the number of distinct values of a column, or of * for all: for the optimiser."
    schema = pa.schema(
        [
            pa.field("column", pa.large_string(), nullable=False),
            pa.field("hashes", pa.large_list(pa.uint64()), nullable=False),
        ]
    )

    def columns(self, definition: KindDefinition) -> list[tuple[str, ...]]:
        return [] if definition.on == "*" else super().columns(definition)

    def gather(self, definition: KindDefinition, file: FileFacts) -> _Gathering | None:
        leaves = tuple(range(len(file.leaves)))
        if definition.on != "*":
            found = column_source(definition.on).attach(file)
            leaves = leaves[found[0] : found[0] + 1] if found is not None else ()
        wanted = tuple(leaf for leaf in leaves if hashable(file.leaves[leaf].type))
        return _Gathering(wanted, file.leaves) if wanted else None

    def reduce(self, rows: pa.Table) -> pa.Table:
        """Merges the rows into one sketch per column."""
        held: dict[str, list[Hashes]] = {}
        for name, hashes in zip(rows["column"].to_pylist(), _lists(rows), strict=True):
            held.setdefault(name, []).append(hashes)
        merged = {name: least(np.concatenate(parts), _KEPT) for name, parts in held.items()}
        schema = pa.schema([FILE, *self.schema])
        return pa.table(
            [
                pa.array([-1] * len(merged), pa.int64()),
                pa.array(list(merged), pa.large_string()),
                pa.array(list(merged.values()), self.schema.field("hashes").type),
            ],
            schema=schema,
        )

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        return False

    def open(self, definition: KindDefinition, payload: Payload) -> KindStatistics | None:
        return None

    def distinct_values(self, payload: Payload, column: str) -> float | None:
        """The estimate for a column by its dotted name; None if it has no sketch."""
        wanted = column.lower()
        names = payload.rows["column"].to_pylist() if payload.rows.num_rows else []
        parts = [h for n, h in zip(names, _lists(payload.rows), strict=True) if n == wanted]
        if not parts:
            return None
        hashes = least(np.concatenate(parts), _KEPT)
        if len(hashes) < _KEPT:
            return float(len(hashes))
        return (_KEPT - 1) * 2.0**64 / float(hashes[-1])


def _lists(rows: pa.Table) -> Iterable[Hashes]:
    if not rows.num_rows:
        return []
    return [
        np.asarray(chunk[i].values.to_numpy(), np.uint64)
        for chunk in rows["hashes"].chunks
        for i in range(len(chunk))
    ]


class _Gathering:
    def __init__(self, leaves: tuple[int, ...], columns: tuple[PhysicalColumn, ...]) -> None:
        self.leaves = leaves
        self._columns = columns
        self._least: dict[int, Hashes] = {leaf: np.empty(0, np.uint64) for leaf in leaves}

    def update(self, arrays: Arrays) -> None:
        for leaf, held in self._least.items():
            found = arrays.least_hashes(leaf, self._columns[leaf].type, _KEPT)
            if found is not None:
                self._least[leaf] = least(np.concatenate([held, found]), _KEPT)

    def finish(self) -> Iterable[Row]:
        for leaf, hashes in self._least.items():
            name = ".".join(self._columns[leaf].path).lower()
            yield {"column": name, "hashes": hashes}


KIND = Distinct()
