"""Statistics of one file: its rows, and the bounds and counts of its leaf columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.formats.physical_column import PhysicalColumn

COUNTED, SEEN, RESTS = 1, 2, 4
"""Bits of a leaf's basis: NULLs were counted in the values; the bounds were found among them; the
bounds rest on a NULL count that says of a row group that it has no values."""


@dataclass(slots=True)
class LeafStatistics:
    """One leaf column of one file. None means unknown. Bounds have the physical type.

    Attributes:
        basis: of what is known, where it is not just what a footer states.
        null_span: of values that were read, the most rows from the first to the last NULL of a row
            group; 0: not sought.
        null_groups: row groups that hold NULL and were read.
    """

    key: str
    column: PhysicalColumn
    lower: Any
    upper: Any
    exact: bool
    nulls: int | None
    nans: int | None
    size: int
    basis: int = 0
    null_span: int = 0
    null_groups: int = 0


@dataclass(slots=True)
class FileStatistics:
    """The statistics of a file: its rows, its leaves, and row-group offsets of a large file.

    Attributes:
        writer: who states them, see `bridge.formats.parquet.writers`; None: nobody,
            they are those of the values.
        group_rows: rows of the largest row group; None: unknown.
        shown: what reading the file has shown of its writer, see
            `bridge.index.building.evidence`; None: it was not read for that.
        stored: what readers that find columns by name meet, as
            `bridge.formats.parquet.stored_file.parse_stored` reads it; None: not known.
    """

    rows: int
    row_groups: list[int] | None
    leaves: list[LeafStatistics]
    writer: str | None = field(default=None, kw_only=True)
    group_rows: int | None = field(default=None, kw_only=True)
    shown: str | None = field(default=None, kw_only=True)
    stored: str | None = field(default=None, kw_only=True)
