"""The files that a plan may take up, with what their index knows of the sort columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.rewriting.ranks import boundaries, canonical_form, rank
from bridge.expression.format import format_value
from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics
from bridge.index.generations.replacements import FileState
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import TRINO, Field, Type
from bridge.storage.port import FileTable

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_LOWEST, _HIGHEST = -1, 2**62


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Least and greatest values of one column in some files; null where unknown."""

    type: Type
    low: pa.Array
    high: pa.Array

    def ranks(self) -> tuple[Int64, Int64]:
        """Ranks of the bounds among all of them; unknown bounds span everything."""
        both = pa.concat_arrays([self.low, self.high])
        edges = boundaries(both, len(both), max(len(both), 1))
        found = []
        for bounds, unknown in ((self.low, _LOWEST), (self.high, _HIGHEST)):
            ranks = rank(bounds, edges)
            if bounds.null_count:
                ranks[bounds.is_null().to_numpy(zero_copy_only=False)] = unknown
            found.append(ranks)
        return found[0], found[1]

    def texts(self, at: Int64) -> tuple[tuple[str | None, str | None], ...]:
        """Least and greatest value of some files as text; None where unknown."""
        sides = [
            [_text(v, self.type) for v in bounds.take(pa.array(at)).to_pylist()]
            for bounds in (self.low, self.high)
        ]
        return tuple(zip(*sides, strict=True))


@dataclass(frozen=True, slots=True)
class Plannable:
    """Files in any order.

    Attributes:
        owners: the partition of each.
        formats: names of file formats.
        bounds: of each sort column.
        clustered: which were written by clustering.
    """

    files: FileTable
    owners: tuple[str, ...]
    formats: tuple[str, ...]
    bounds: tuple[ColumnBounds, ...]
    clustered: Mask

    def join(self, other: Plannable) -> Plannable:
        """The files of both."""
        if not len(other.files):
            return self
        etags = [
            pa.nulls(len(f), pa.large_string()) if f.etags is None else f.etags
            for f in (self.files, other.files)
        ]
        return Plannable(
            FileTable(
                pa.concat_arrays([self.files.paths, other.files.paths]),
                np.concatenate([self.files.sizes, other.files.sizes]),
                np.concatenate([self.files.modified, other.files.modified]),
                pa.concat_arrays(etags),
            ),
            (*self.owners, *other.owners),
            (*self.formats, *other.formats),
            tuple(
                ColumnBounds(
                    a.type,
                    pa.concat_arrays([a.low, b.low]),
                    pa.concat_arrays([a.high, b.high]),
                )
                for a, b in zip(self.bounds, other.bounds, strict=True)
            ),
            np.concatenate([self.clustered, other.clustered]),
        )

    def state(self, i: int) -> FileState:
        """The identity of a file."""
        files = self.files
        etag = None if files.etags is None else files.etags[i].as_py()
        return FileState(files.paths[i].as_py(), int(files.sizes[i]), int(files.modified[i]), etag)

    def candidates(self) -> dict[str, tuple[Int64, Candidates]]:
        """The files of each partition, with their places here."""
        count = len(self.files)
        ranks = [each.ranks() for each in self.bounds]
        low = np.stack([r[0] for r in ranks]) if ranks else np.empty((0, count), np.int64)
        high = np.stack([r[1] for r in ranks]) if ranks else np.empty((0, count), np.int64)
        members: dict[str, list[int]] = {}
        for i, name in enumerate(self.owners):
            members.setdefault(name, []).append(i)
        return {
            name: (
                np.array(held, np.int64),
                Candidates(
                    tuple(self.files.paths.take(pa.array(held)).to_pylist()),
                    self.files.sizes[held],
                    self.files.modified[held],
                    low[:, held],
                    high[:, held],
                ),
            )
            for name, held in members.items()
        }


def bounds_in(
    index: IndexSnapshot, columns: Sequence[Field], sorted_by: Sequence[Field], ordinals: Int64
) -> tuple[ColumnBounds, ...]:
    """What an index knows of the sort columns in some of its files.

    Args:
        columns: the table's data columns.
    """
    known = index.statistics(tuple(columns), TRINO)
    return tuple(
        _bounds(known.column(BoundReference((f.name,), f.type)), ordinals, f.type)
        for f in sorted_by
    )


def _bounds(column: ColumnStatistics | None, ordinals: Int64, type: Type) -> ColumnBounds:
    if column is None:
        form = canonical_form(type)
        return ColumnBounds(type, pa.nulls(len(ordinals), form), pa.nulls(len(ordinals), form))
    return ColumnBounds(
        type,
        _taken(column.lower, column.lower_known, ordinals),
        _taken(column.upper, column.upper_known, ordinals),
    )


def _taken(bounds: Any, known: Mask | None, ordinals: Int64) -> pa.Array:
    unknown = None if known is None else ~known[ordinals]
    if isinstance(bounds, np.ndarray):
        return pa.array(bounds[ordinals], mask=unknown)
    found = bounds.take(pa.array(ordinals, mask=unknown))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _text(value: Any, type: Type) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if not isinstance(value, int | float):
        return str(value)
    return format_value(bool(value) if type.kind.value == "boolean" else value, type)
