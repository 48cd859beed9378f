"""Applies the table of what is believed of writers to the entries of a generation.

The law: what is not believed of a file's writer is unknown, unless a build has seen it in the
file's values. Shards keep what footers state; nothing here is stored in them. The table itself is
`bridge.file_formats.readers.parquet_writers`.

The work is one comparison per distinct kind of writer and column, and array operations over files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.file_formats.physical_column import PhysicalColumn
from bridge.file_formats.readers.parquet_writers import doubts_about
from bridge.file_formats.statistics import COUNTED, RESTS, SEEN
from bridge.index.belief import is_of_footer

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
            table are of no use.
        uncounted: files whose number of rows is stated by a writer that is not believed; None if
            there are none.
    """

    def __init__(self, writers: Sequence[str | None], codes: npt.NDArray[np.int32]) -> None:
        """``codes``: the place of each file's writer, as `FileStatistics.writer`, in the list."""
        found = [doubts_about(writer) for writer in writers]
        self._doubts = list(dict.fromkeys(found))
        places = np.array([self._doubts.index(each) for each in found], np.intp)
        self._of: npt.NDArray[np.intp] = places[codes] if found else np.empty(0, np.intp)
        self._writers, self._codes = writers, codes
        self.told = [repr(each) for each in found]
        doubted = self._files(np.array([each.rows for each in self._doubts], np.bool_))
        self.uncounted = doubted if doubted.any() else None

    def _files(self, of_doubts: Mask) -> Mask:
        found: Mask = of_doubts[self._of] if len(self._doubts) else np.empty(0, np.bool_)
        return found

    def not_believed(self) -> list[NotBelieved]:
        """The writers of which something is not believed, those of most files first."""
        times: Counter[tuple[str, tuple[str, ...]]] = Counter()
        counts = np.bincount(self._codes, minlength=len(self._writers)).tolist()
        for writer, count in zip(self._writers, counts, strict=True):
            words = tuple(doubts_about(writer).words())
            if writer is not None and words and count:
                times[writer.partition("\n")[0], words] += count
        return [NotBelieved(*named, count) for named, count in times.most_common(_MOST_TOLD)]

    def believed(
        self, column: PhysicalColumn, slots: npt.NDArray[np.int64], rows: pa.Table
    ) -> pa.Table:
        """The rows of a column as far as they are believed.

        Args:
            slots: the file of each row.
            rows: as `bridge.index.column_file.ColumnFile.read` gives them.
        """
        if not is_of_footer(column):
            return rows
        top = column.path[0] if column.path else ""
        bounds = [each.doubts_bounds(column.type, top) for each in self._doubts]
        counts = [each.doubts_counts(column.type, top) for each in self._doubts]
        some = [each.some for each in self._doubts]
        exact = [each.exact for each in self._doubts]
        if not any((*bounds, *counts, *some, *exact)):
            return rows
        of, basis = self._of[slots], rows["basis"].to_numpy()
        stated, uncounted = (basis & SEEN) == 0, (basis & COUNTED) == 0
        no_counts = np.array(counts, np.bool_)[of]
        positive = no_counts | np.array(some, np.bool_)[of]
        any_nulls = pc.fill_null(pc.greater(rows["nulls"], 0), False).to_numpy()
        # A row group without values was told from others by its NULL count, which was above zero.
        rested = ((basis & RESTS) != 0) & positive
        no_bounds = stated & (np.array(bounds, np.bool_)[of] | rested)
        inexact = stated & np.array(exact, np.bool_)[of]
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
