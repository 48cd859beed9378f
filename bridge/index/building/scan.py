"""The single pass over a file's data that serves every index that needs values.

Footers have no NaN counts and lack some bounds. `LeafScan` computes these from the data, like any
index kind. No data is read if no index needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.leaf_scan import LeafScan
from bridge.formats.parquet.int96 import far_leaves
from bridge.formats.parquet.statistics import Footer
from bridge.formats.parquet.stored_file import parse_stored
from bridge.formats.parquet.values import read_leaves
from bridge.formats.parquet.writers import Doubts, doubts_about
from bridge.formats.statistics import LeafStatistics
from bridge.index.kinds.kind import Arrays, Gathering
from bridge.kernel.errors import FileCorrupt
from bridge.storage.port import Range
from bridge.storage.reading.source import is_passing

_NOT_OF_THE_FILE = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
"""What an index may raise for values that were decoded."""
_PLAIN = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}
_BOUNDED = frozenset({"bool", "int", "float", "double", "date", "string", "binary"})


class _Opens(Protocol):
    def source(self) -> Any:
        """A file object for pyarrow."""


def leaf_scans(footer: Footer) -> list[LeafScan]:
    """Scans for the statistics that the footer lacks, or that are not believed of its writer."""
    doubts = doubts_about(footer.writer)
    wanted = [(i, leaf) for i, leaf in enumerate(footer.leaves) if _lacks(leaf, footer, doubts)]
    names = [".".join(footer.leaves[i].column.path) for i, _ in wanted]
    # Two leaves with the same dotted name cannot be told apart, so neither is scanned.
    rows = [count for count, _ in footer.groups]
    found = zip(wanted, names, strict=True)
    return [LeafScan(i, leaf, rows) for (i, leaf), name in found if _once(name, names)]


def _once(name: str, names: list[str]) -> bool:
    return names.count(name) == 1


def scan(
    footer: Footer,
    gatherings: Sequence[Gathering],
    file: _Opens,
    uri: str,
) -> dict[int, str]:
    """Reads each required leaf once and passes it to all gatherings.

    Returns:
        The places of gatherings that have not got their values because a library lacks something,
        each with the reason. The others are whole.

    Errors:
        FileCorrupt: the data cannot be decoded.
    """
    leaves = _needed(footer, gatherings)
    waiting = {i: g for i, g in enumerate(gatherings) if g.leaves}
    lost: dict[int, str] = {}
    if not leaves:
        return lost
    try:
        with _damage_as_error(uri):
            for table in read_leaves(file.source(), footer, leaves):
                paths = {i: footer.leaves[i].column.path for i in leaves}
                arrays = Arrays({i: leaf_values(table, path) for i, path in paths.items()})
                for i, gathering in waiting.items():
                    if i not in lost:
                        try:
                            gathering.update(arrays)
                        except _NOT_OF_THE_FILE as error:
                            lost[i] = f"{uri}: no index of its values: {error}".partition("\n")[0]
    except NotImplementedError as error:
        why = f"{uri}: its data cannot be read here: {error}".partition("\n")[0]
        return dict.fromkeys(waiting, why)
    return lost


@contextmanager
def _damage_as_error(uri: str) -> Iterator[None]:
    """Errors: FileCorrupt; NotImplementedError: a library lacks something."""
    try:
        yield
    except NotImplementedError:
        raise
    except (pa.ArrowException, OSError, KeyError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: its data cannot be decoded: {first}", "rewrite it") from error


def nanosecond_leaves(footer: Footer) -> list[int]:
    """See `bridge.formats.parquet.stored_file.StoredSchema.nanoseconds`."""
    if footer.stored is None or not footer.rows:
        return []
    return parse_stored(footer.stored).schema.nanoseconds


def find_far(footer: Footer, file: _Opens) -> tuple[int, ...] | None:
    """See `bridge.formats.parquet.stored_file.StoredFile.far`.

    Errors:
        FileCorrupt: the data cannot be decoded.
    """
    leaves = nanosecond_leaves(footer)
    if not leaves:
        return None
    try:
        with _damage_as_error(footer.uri):
            return tuple(far_leaves(file.source(), footer.metadata, leaves))
    except NotImplementedError:
        return None


def column_ranges(
    footer: Footer, gatherings: Sequence[Gathering], more: Sequence[int] = ()
) -> list[Range]:
    """Where the values that `scan` reads are in the file, and those of more leaves."""
    leaves = sorted({*_needed(footer, gatherings), *more})
    chunks = [chunks[leaf] for _, chunks in footer.groups for leaf in leaves]
    return [(chunk.start, chunk.start + chunk.size) for chunk in chunks]


def _needed(footer: Footer, gatherings: Sequence[Gathering]) -> list[int]:
    if not footer.rows:
        return []
    return sorted({leaf for gathering in gatherings for leaf in gathering.leaves})


def leaf_values(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """The values of one leaf, by its path."""
    column = _stored(table.column(path[0]))
    for name in path[1:]:
        column = _stored(pc.struct_field(column, name))
    return column


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in a type that Arrow's functions take: extensions and durations as stored, wide
    decimals, and the texts themselves in place of views."""
    if isinstance(column.type, pa.BaseExtensionType):
        storage = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
    held = column.type
    if pa.types.is_duration(held):
        return column.cast(pa.int64())
    if held in _PLAIN:
        return column.cast(_PLAIN[held])
    if pa.types.is_decimal(held) and not pa.types.is_decimal128(held) and held.precision <= 38:
        return column.cast(pa.decimal128(held.precision, held.scale))
    return column


def _lacks(leaf: LeafStatistics, footer: Footer, doubts: Doubts) -> bool:
    stored = leaf.column.type
    if stored.is_floating:
        return True
    if stored.logical == "date" and footer.legacy:  # the calendar of days before 1900 is unknown
        return False
    if stored.logical not in _BOUNDED:
        return False
    top = leaf.column.path[0] if leaf.column.path else ""
    if doubts.exact or doubts.some or doubts.doubts_counts(stored, top):
        return True
    return doubts.doubts_bounds(stored, top) or (leaf.lower is None and leaf.nulls != footer.rows)
