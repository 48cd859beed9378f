"""Hidden columns of files (``$path`` and others), answered from the listing alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import (
    BoundAnd,
    BoundExpression,
    BoundFalse,
    BoundReference,
    BoundTrue,
)
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.kernel.types import BIGINT, STRING, TIMESTAMP_TZ, Field, Semantics
from bridge.planner.partitions import PARTITION_COLUMN
from bridge.storage.port import FileTable

PATH_COLUMN = "$path"
SIZE_COLUMN = "$file_size"
MODIFIED_COLUMN = "$file_modified_time"
HIDDEN_COLUMNS: tuple[Field, ...] = (
    Field(PATH_COLUMN, STRING),
    Field(SIZE_COLUMN, BIGINT),
    Field(MODIFIED_COLUMN, TIMESTAMP_TZ),
    Field(PARTITION_COLUMN, STRING),
)
_FILE_COLUMNS = frozenset({PATH_COLUMN, SIZE_COLUMN, MODIFIED_COLUMN})


@dataclass(frozen=True, slots=True)
class SplitPredicate:
    """A predicate's conjuncts, split by what can answer them: the index or the listing."""

    data: BoundExpression
    attributes: BoundExpression


def split_by_source(predicate: BoundExpression) -> SplitPredicate:
    """Separates conjuncts over hidden file columns from conjuncts over data columns.

    A conjunct that mixes both is in neither part.
    """
    conjuncts = predicate.children if isinstance(predicate, BoundAnd) else (predicate,)
    data: list[BoundExpression] = []
    attributes: list[BoundExpression] = []
    for conjunct in conjuncts:
        names = {r.path[0] for r in references(conjunct)}
        if not names & _FILE_COLUMNS:
            data.append(conjunct)
        elif names <= _FILE_COLUMNS:
            attributes.append(conjunct)
    return SplitPredicate(_conjunction(data), _conjunction(attributes))


def _conjunction(parts: list[BoundExpression]) -> BoundExpression:
    if not parts:
        return BoundTrue()
    return parts[0] if len(parts) == 1 else BoundAnd(tuple(parts))


class FileAttributes:
    """Path, size and modification time as exact statistics, one entry per listed file."""

    def __init__(self, files: FileTable) -> None:
        self._files = files

    @property
    def num_files(self) -> int:
        return len(self._files)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        n = len(self._files)
        bounds: pa.Array | npt.NDArray[np.int64]
        match reference.path[0]:
            case "$path":
                bounds = self._files.paths.cast(pa.large_binary())
            case "$file_size":
                bounds = self._files.sizes
            case "$file_modified_time":
                if (self._files.modified < 0).any():
                    return None  # rows of files whose time is not known show NULL
                # Engines see milliseconds; a listing may be more precise.
                bounds = self._files.modified // 1000 * 1000
            case _:
                return None
        zeros = np.zeros(n, np.int64)
        return ColumnStatistics(
            type=reference.type,
            lower=bounds,
            upper=bounds,
            lower_known=None,
            upper_known=None,
            exact=None,
            null_count=zeros,
            nan_count=zeros,
            row_count=np.ones(n, np.int64),
            all_null=None,
        )


def keep_by_attributes(
    files: FileTable, predicate: BoundExpression, semantics: Semantics
) -> Mask | None:
    """For each listed file: False if path, size or time excludes it; None keeps all."""
    if isinstance(predicate, BoundTrue):
        return None
    if isinstance(predicate, BoundFalse):
        return np.zeros(len(files), np.bool_)
    return ~prune(predicate, FileAttributes(files), semantics).never
