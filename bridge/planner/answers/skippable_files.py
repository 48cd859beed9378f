"""Files of a table that need not be read, by the index alone.

For engines that list storage themselves, as Hive does. The law: a file is named only if the entry
of exactly that file (path, size, time) proves that none of its rows satisfies the predicate. The
reader skips a file only if all three agree with its own listing, so the index need not be fresh:
files that are not indexed, or indexed in another state, are read. Of a table format that does not
record times the path and size suffice, and logs are named like base files: the reader leaves out a
slice only if all of its files are named. Base files that our index does not know are named by what
the format itself knows of them.

Files whose meaning the table declares (CSV, JSON) are named only if their entries were made under
the very declaration that the query reads them with. The query tells it: it may be newer than the
planner's, or older.

Partition keys never prove anything here, since only the reader knows which directory belongs to
which partition now. They only leave out files that the reader did not list anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.bind import bind
from bridge.expression.nodes import BoundExpression, BoundFalse, BoundReference
from bridge.expression.residual import keep_decided
from bridge.expression.statistics import Mask
from bridge.formats.lines.recipe import Recipe
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import Field, Kind, Semantics
from bridge.planner.file_pruner import FilePruner, failed_indexes
from bridge.planner.index_view import IndexView, argument
from bridge.planner.own_indexes import FormatIndex
from bridge.planner.partitions import select_partitions
from bridge.planner.reports.report import IndexNotUsed
from bridge.planner.request import ScanRequest
from bridge.storage.port import FileTable, join_tables
from bridge.table.model import CatalogTable
from bridge.table.registry import DIRECTORY
from bridge.table.snapshot import WrittenFiles


def _nothing() -> npt.NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class SkippableFiles:
    """The files that need not be read.

    Attributes:
        generation: of the index; -1 without one.
        known: number of indexed files in the partitions in question.
        paths: canonical URIs of the files that hold no matching row, by index: first those that
            min/max excludes.
        sizes, modified: of these files, in bytes and microseconds since the epoch.
        by_index: how many of these files each index excludes, in their order.
        not_used: why an index was not used.
    """

    generation: int = -1
    known: int = 0
    paths: pa.Array = field(default_factory=lambda: pa.array([], pa.large_string()))
    sizes: npt.NDArray[np.int64] = field(default_factory=_nothing)
    modified: npt.NDArray[np.int64] = field(default_factory=_nothing)
    by_index: tuple[tuple[str, int], ...] = ()
    not_used: tuple[IndexNotUsed, ...] = ()


def list_skippable_files(
    table: CatalogTable,
    view: IndexView,
    request: ScanRequest,
    written: WrittenFiles | None = None,
    recipe: Recipe | None = None,
) -> SkippableFiles:
    """Selects files in one vectorised pass per index; lists nothing and asks no metastore.

    Indexes are evaluated as in a scan's plan: each on the files that earlier ones did not exclude.

    Args:
        written: what entries say of a table of another format than directories; None: nothing.
        recipe: how the query reads all files that do not describe themselves; None: not told.

    Errors:
        ColumnNotFound, AmbiguousColumn: the predicate names a column that the table does not have.
    """
    if not request.pruning or (table.table_format != DIRECTORY and written is None):
        # Of other formats a file's logs or its version may hold what its entry does not say.
        return SkippableFiles(view.generation)
    keys = [Field(c.name, c.type) for c in table.partition_keys]
    columns = [Field(c.name, c.type) for c in table.columns]
    predicate = bind(request.predicate, columns, keys, request.semantics)
    index, own_indexes = view.index, () if written is None else written.own_indexes
    if isinstance(predicate, BoundFalse) or (index is None and not own_indexes):
        # A contradiction says nothing of any one file.
        return SkippableFiles(view.generation, not_used=view.not_used)
    known, not_used = 0, view.not_used
    excluded: list[tuple[str, FileTable]] = []
    if index is not None:
        listed = _listed(table, index, predicate, request.semantics, recipe)
        known = int(np.count_nonzero(listed))
        read_as_stored = _any if written is None else partial(_as_stored, index, written.names)
        data = keep_decided(predicate, lambda c: not c.partition and read_as_stored(c))
        left = np.flatnonzero(listed & index.trusted)
        if written is not None and not written.logs:
            left = left[~_hidden(index.paths_at(left))]
        pruner = FilePruner(table, index, request.semantics)
        for each in pruner.indexes:
            if not len(left) or not each.concerns(data):
                continue
            keep = pruner.keep_files(left, data, each)
            if keep is not None and not keep.all():
                excluded.append((each.name, _files_at(index, left[~keep])))
                left = left[keep]
        not_used += tuple(failed_indexes(pruner.indexes, argument(table)))
    stored = keep_decided(predicate, lambda c: not c.partition)
    for asked in own_indexes:
        asked.ask(stored)
    for own in (FormatIndex(each, request.semantics) for each in own_indexes):
        found = own.list_excluded(stored, index)
        named = join_tables([files for _, files in excluded]).paths
        found = found.filter(~pc.is_in(found.paths, named).to_numpy(zero_copy_only=False))
        if len(found):
            excluded.append((own.name, found))
        known = max(known, own.num_files)
        not_used += own.not_used()
    files = join_tables([files for _, files in excluded])
    return SkippableFiles(
        view.generation,
        known=known,
        paths=files.paths,
        sizes=files.sizes,
        modified=files.modified,
        by_index=tuple((name, len(files)) for name, files in excluded),
        not_used=not_used,
    )


def _listed(
    table: CatalogTable,
    index: IndexSnapshot,
    predicate: BoundExpression,
    semantics: Semantics,
    recipe: Recipe | None,
) -> Mask:
    """The indexed files of the query's partitions, without those that it reads in another way."""
    listed = np.ones(index.num_files, np.bool_)
    if table.partition_keys:
        names = list(dict.fromkeys(name for owners in index.owners for name in owners))
        kept = select_partitions(names, table.partition_keys, predicate, semantics)
        if len(kept.names) < len(names):
            wanted = set(kept.names)
            held = [not wanted.isdisjoint(owners) for owners in index.owners]
            listed = np.array(held, np.bool_)[index.partition]
    columns_told = tuple((c.name.lower(), c.type) for c in table.columns)
    told = recipe.digest if recipe is not None and recipe.columns == columns_told else ""
    other = np.array([digest not in ("", told) for digest in index.recipes], np.bool_)
    if other.any():
        listed &= ~other[index.recipe]
    return listed


def _files_at(index: IndexSnapshot, ordinals: npt.NDArray[np.int64]) -> FileTable:
    return FileTable(index.paths_at(ordinals), index.sizes[ordinals], index.modified[ordinals])


def _any(reference: BoundReference) -> bool:
    return True


def _as_stored(index: IndexSnapshot, names: frozenset[str], reference: BoundReference) -> bool:
    """Whether a format's own readers surely show Hive the values that its files hold.

    Their times depend on settings and zones, a float that became a double may be read by way of its
    text, and a column whose name has another case in a file may be NULL.
    """
    stored = index.stored_names(reference.path)
    if len(stored) > 1 or not stored <= names:
        return False
    if reference.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return False
    if reference.type.kind is not Kind.DOUBLE:
        return True
    return "float" not in index.stored_types(reference.path)


def _hidden(paths: pa.Array) -> npt.NDArray[np.bool_]:
    """Files whose name begins with a dot, as those of logs do."""
    found = pc.match_substring_regex(paths, r"/\.[^/]*$")
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
