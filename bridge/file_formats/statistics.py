"""What a file's reader says of the file: rows, and bounds and counts of its leaf columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.file_formats.physical_column import PhysicalColumn


@dataclass(slots=True)
class LeafStatistics:
    """One leaf column of one file; None is unknown. Bounds are of the physical type."""

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
    """What is known of a file: rows, offsets of the row groups of a large one, and its leaves."""

    rows: int
    row_groups: list[int] | None
    leaves: list[LeafStatistics]
