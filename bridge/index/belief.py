"""Entries of older readers, which took from footers what writers had stated wrongly.

The law: where an older reader believed more than this one, the bounds and the counts of NULL and
NaN in its entries are unknown until a build has read the files again. An entry does not name the
writer of its file, so that wrong ones cannot be told from others. Numbers of rows, and what indexes
other than min and max hold, come from the data or were never in doubt.

Only footers are concerned. Columns with a position, and files that their table declares, were read
from the data: see `bridge.index.column_resolution` and `bridge.file_formats.recipe`. Files of views
are this program's own, and its footers were never in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.file_formats.physical_column import PhysicalColumn
from bridge.file_formats.registry import file_formats
from bridge.index.column_resolution import WIDTH
from bridge.index.manifest import BELIEVED, Manifest, Shard
from bridge.table.segments.log import VIEWS

Mask = npt.NDArray[np.bool_]


def believes(shard: Shard, formats: Iterable[str]) -> bool:
    """Whether a build keeps the entries of a shard for files of these formats."""
    return shard.reader >= BELIEVED or not any(map(_has_footers, formats))


def _has_footers(format: str) -> bool:
    known = file_formats().get(format)
    return known is None or not (known.by_position or known.chunks is not None)


def doubted(
    manifest: Manifest,
    files: pa.RecordBatch,
    recipes: Sequence[str],
    columns: Iterable[PhysicalColumn],
) -> Mask | None:
    """Files of which older readers believed more; None if there are none.

    Args:
        files: the local copy's, with the places of their shards, and of their recipes in the list.
        columns: of all files.
    """
    old = np.array([shard.reader < BELIEVED for shard in manifest.shards], np.bool_)
    if not old.any() or not any(map(is_of_footer, columns)):
        return None
    if f"/{VIEWS}/" in manifest.location:
        return None
    undeclared = np.array([not recipe for recipe in recipes], np.bool_)
    found: Mask = old[files.column("shard").to_numpy()]
    found &= undeclared[files.column("recipe").to_numpy()]
    return found if found.any() else None


def is_of_footer(column: PhysicalColumn) -> bool:
    """Whether what is known of a column came from a footer, in files that no table declares."""
    return column.position is None and column.path != WIDTH
