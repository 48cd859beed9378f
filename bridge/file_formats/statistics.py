"""Statistics of one file: its rows, and the bounds and counts of its leaf columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.file_formats.physical_column import PhysicalColumn


@dataclass(slots=True)
class LeafStatistics:
    """One leaf column of one file. None means unknown. Bounds have the physical type."""

    key: str
    column: PhysicalColumn
    lower: Any
    upper: Any
    exact: bool
    nulls: int | None
    nans: int | None
    size: int


@dataclass(slots=True)
class FileStatistics:
    """The statistics of a file: its rows, its leaves, and row-group offsets of a large file."""

    rows: int
    row_groups: list[int] | None
    leaves: list[LeafStatistics]
