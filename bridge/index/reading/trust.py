"""Applies the table of what is believed of writers to the entries of a generation.

The law: what is not believed of a file's writer is unknown, unless a build has seen it in the
file's values, or files that were read have shown it of the writer (`index.building.evidence`).
Shards keep what footers state; nothing here is stored in them. The table itself is
`bridge.formats.parquet.writers`.

The work is one comparison per distinct kind of writer and column, and array operations over files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.writers import Doubts, doubts_about
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.statistics import COUNTED, RESTS, SEEN
from bridge.index.building.evidence import (
    BOUNDS,
    EXACT,
    GREATEST,
    LEAST,
    NULLS,
    ROWS,
    Shown,
    type_of,
)
from bridge.index.reading.column_resolution import WIDTH

Mask = npt.NDArray[np.bool_]
_MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class NotBelieved:
    """What is not believed of a writer, and in how many files; an empty name: they name none."""

    writer: str
    what: tuple[str, ...]
    files: int


class Trust:
    """What is believed of the files of one generation.

    Attributes:
        told: names what is believed of each writer. Copies of entries that were made under another
            table, or other evidence, are of no use.
        uncounted: files whose number of rows is stated by a writer that is not believed; None if
            there are none.
    """

    def __init__(
        self, writers: Sequence[str | None], files: pa.RecordBatch, shown: Mapping[str, Any]
    ) -> None:
        """What is believed of writers.

        Args:
            writers: as `FileStatistics.writer`.
            files: with their rows, and the place of the writer of each in the list.
            shown: what files have shown, as `bridge.index.building.evidence.by_writer` says it.
        """
        codes = files.column("writer").to_numpy()
        found = [(doubts_about(one), Shown.of(one, writers, shown)) for one in writers]
        self._held = list(dict.fromkeys(found))
        places = np.array([self._held.index(each) for each in found], np.intp)
        self._of: npt.NDArray[np.intp] = places[codes] if found else np.empty(0, np.intp)
        self._writers, self._codes, self._shown = writers, codes, shown
        rows, group = files.column("rows").to_numpy(), files.column("group_rows").to_numpy()
        self._rows: npt.NDArray[np.int64] = np.where(group < 0, rows, group)
        self._several: Mask = group < rows
        self.told = [f"{doubts!r} {sorted(seen.facts)}" for doubts, seen in found]
        all_rows = np.arange(len(self._of))
        doubted = self._flags([doubts.rows for doubts, _ in self._held], all_rows)
        if doubted.any():
            doubted &= ~self._covered((ROWS,), "", all_rows, None)
        self.uncounted = doubted if doubted.any() else None

    def _flags(self, held: Sequence[bool], slots: npt.NDArray[np.int64]) -> Mask:
        """What holds of the writer of each file."""
        found: Mask = np.array(held, np.bool_)[self._of[slots]] if held else np.empty(0, np.bool_)
        return found

    def _covered(
        self,
        facts: Sequence[str],
        type: str,
        slots: npt.NDArray[np.int64],
        size: npt.NDArray[np.int64] | None,
    ) -> Mask:
        """Files in which the facts were shown of their writer, and never shown to be wrong."""
        found: Mask = np.zeros(len(slots), np.bool_)
        for place, (doubts, seen) in enumerate(self._held):
            if not (doubts.provable and seen.facts):
                continue
            if any(seen.refutes(fact, type) for fact in facts):
                continue
            mine = self._of[slots] == place
            for fact in facts:
                mine &= seen.covers(fact, type, self._rows[slots], size, self._several[slots])
            found |= mine
        return found

    def not_believed(self) -> list[NotBelieved]:
        """The writers of which something is not believed, those of most files first."""
        times: Counter[tuple[str, tuple[str, ...]]] = Counter()
        counts = np.bincount(self._codes, minlength=len(self._writers)).tolist()
        for writer, count in zip(self._writers, counts, strict=True):
            seen = Shown.of(writer, self._writers, self._shown)
            words = tuple(_words(doubts_about(writer), seen))
            if writer is not None and words and count:
                times[writer.partition("\n")[0], words] += count
        return [NotBelieved(*named, count) for named, count in times.most_common(_MOST_TOLD)]

    def keep_believed(
        self, column: PhysicalColumn, slots: npt.NDArray[np.int64], rows: pa.Table
    ) -> pa.Table:
        """The rows of a column as far as they are believed.

        Args:
            slots: the file of each row.
            rows: as `bridge.index.reading.column_file.ColumnFile.read` gives them.
        """
        if not is_of_footer(column):
            return rows
        stored, top = column.type, column.path[0] if column.path else ""
        bounds = [_doubts_bounds(doubts, seen, stored, top) for doubts, seen in self._held]
        counts = [doubts.doubts_counts(stored, top) for doubts, _ in self._held]
        some = [doubts.some for doubts, _ in self._held]
        exact = [doubts.exact for doubts, _ in self._held]
        if not any((*bounds, *counts, *some, *exact)):
            return rows
        basis = rows["basis"].to_numpy()
        stated, uncounted = (basis & SEEN) == 0, (basis & COUNTED) == 0
        no_counts, not_exact = self._flags(counts, slots), self._flags(exact, slots)
        no_bounds = self._flags(bounds, slots)
        positive = no_counts | self._flags(some, slots)
        # A row group without values was told from others by its NULL count, which was above zero.
        rested = ((basis & RESTS) != 0) & positive
        if len(column.path) == 1:
            size = rows["size"].to_numpy() if stored.holds == "bytes" else None
            told = type_of(stored)
            if stored.logical == "bool":
                shown = self._covered((LEAST, GREATEST), told, slots, size)
                no_bounds &= ~(shown & self._flags([not d.bounds for d, _ in self._held], slots))
            else:
                shown = self._covered((EXACT,), told, slots, size)
            not_exact &= ~shown
            # A file of NULL alone, or with a row group of NULL alone, is no file of both.
            both = rows["lower"].is_valid().to_numpy() & ((basis & RESTS) == 0)
            some_coded = self._flags([d.is_coded(stored, top) for d, _ in self._held], slots)
            shown = self._covered((NULLS,), stored.physical, slots, size)
            no_counts &= ~(shown & both & ~some_coded)
        positive = no_counts | self._flags(some, slots)
        any_nulls = pc.fill_null(pc.greater(rows["nulls"], 0), False).to_numpy()
        no_bounds = stated & (no_bounds | rested)
        inexact = stated & not_exact
        forgotten = {
            "lower": no_bounds,
            "upper": no_bounds,
            "nulls": uncounted & (no_counts | (positive & any_nulls)),
        }
        for name, mask in forgotten.items():
            if mask.any():
                kept = pc.if_else(pa.array(~mask), rows[name], pa.scalar(None, rows[name].type))
                rows = rows.set_column(rows.column_names.index(name), rows.field(name), kept)
        if inexact.any():
            kept = pc.and_(rows["exact"], pa.array(~inexact))
            rows = rows.set_column(rows.column_names.index("exact"), rows.field("exact"), kept)
        return rows


def _doubts_bounds(doubts: Doubts, seen: Shown, stored: PhysicalType, column: str) -> bool:
    wrong = doubts.provable and seen.refutes(BOUNDS, type_of(stored))
    return wrong or doubts.doubts_bounds(stored, column)


def _words(doubts: Doubts, seen: Shown) -> list[str]:
    """What is not believed of a writer, and what its files have proved right nevertheless."""
    if not doubts.provable:
        return doubts.words()
    shown = seen.words()
    found = [
        f"{word} but of {shown[word]}" if shown.get(word) else word
        for word in doubts.words()
        if shown.get(word, "doubted")
    ]
    wrong = sorted({one.type for one in seen.facts if one.fact == BOUNDS and not one.right})
    return found + [f"bounds of {type.split(' ')[-1]}" for type in wrong]


def is_of_footer(column: PhysicalColumn) -> bool:
    """Whether what is known of a column came from a footer, in files that no table declares."""
    return column.position is None and column.path != WIDTH
