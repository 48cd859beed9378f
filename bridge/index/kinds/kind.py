"""The interface of index kinds: what a kind gathers from a file, stores, and answers.

A kind is one file: a subclass of `IndexKind` and an instance named ``KIND`` in
`bridge.index.kinds`, or an entry point elsewhere (docs/reference/index-kinds.md). A kind only
defines its rows. `bridge.index.kinds.payload` handles storage, shards, merging, tombstones, caches
and range reads.

The law of every kind: if it answers NEVER for a file, no row of the file satisfies the expression
as the requesting engine reads it. A file without a row in the index, or in doubt, is MAYBE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import (
    BoundAnd,
    BoundExpression,
    BoundOr,
    BoundPredicate,
    BoundReference,
)
from bridge.expression.statistics import Mask
from bridge.formats.parquet.footer import Chunk
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.kinds.definition import KindDefinition, column_path, parse_definition
from bridge.index.kinds.payload import Payload
from bridge.index.kinds.plain import hashable, hashes
from bridge.index.kinds.xxh64 import Hashes, ascending, least
from bridge.index.reading.column_resolution import Names, in_lower_case
from bridge.kernel.types import Semantics
from bridge.storage.port import Range

Ordinals = npt.NDArray[np.int64]
Row = dict[str, Any]
STORED = pa.field("stored", pa.dictionary(pa.int32(), pa.large_string()))
"""The key of the stored column of a row's values (`PhysicalColumn.key`)."""
_SAMPLE = 1024


@dataclass(frozen=True)
class FileFacts:
    """A file as a kind sees it before its data is read.

    Attributes:
        groups: the row groups that have rows: the number of rows, and a chunk for every leaf; None
            for formats without them.
        leaves: the leaf columns in footer order.
        legacy: dates before 1900 may use the hybrid calendar (correctness 9).
        read_ranges: reads byte ranges of the file.
    """

    uri: str
    size: int
    groups: Sequence[tuple[int, Sequence[Chunk]]] | None
    leaves: tuple[PhysicalColumn, ...]
    legacy: bool
    read_ranges: Callable[[Sequence[tuple[int, int]]], list[bytes]]

    def leaf(self, path: tuple[str, ...]) -> int | None:
        """The number of the only leaf that engines read for a column, ignoring case.

        None if there is none, if two names differ only in case, if engines disagree about the case
        of a letter, if the leaf is in a list or map, or if the name is both a leaf and a group
        (correctness 14).
        """
        wanted = in_lower_case(path)
        found = self._names.same(wanted)
        if len(found) != 1 or self._names.find_conflicts(wanted):
            return None
        return None if self.leaves[found[0]].type.logical == "repeated" else found[0]

    @cached_property
    def _names(self) -> Names:
        return Names(column.path for column in self.leaves)


class Arrays:
    """Values of some rows of a file, by leaf number. Derived arrays are cached for all kinds.

    Text may be dictionary-encoded, as in the file. A dictionary entry counts as a value even if no
    row has it.
    """

    def __init__(self, values: Mapping[int, pa.ChunkedArray]) -> None:
        self._values = dict(values)
        self._coded = {i: v for i, v in values.items() if isinstance(v.type, pa.DictionaryType)}
        self._distinct: dict[int, pa.Array] = {}
        self._covering: dict[int, pa.Array] = {}
        self._hashes: dict[int, Hashes | None] = {}
        self._ascending: dict[int, Hashes] = {}

    def __getitem__(self, leaf: int) -> pa.ChunkedArray:
        """The decoded values of all rows, in order."""
        values = self._values[leaf]
        if isinstance(values.type, pa.DictionaryType):
            self._values[leaf] = values = values.cast(values.type.value_type)
        return values

    def counts(self, leaf: int) -> tuple[int, int]:
        """The number of rows, and of rows where the leaf is NULL."""
        values = self._values[leaf]
        return len(values), values.null_count

    def distinct(self, leaf: int) -> pa.Array:
        """Distinct non-null values."""
        if leaf not in self._distinct:
            self._distinct[leaf] = self._few(leaf).unique().drop_null()
        return self._distinct[leaf]

    def each_value(self, leaf: int) -> pa.Array:
        """Non-null values, each at least once; only distinct ones if removing repeats pays."""
        if leaf not in self._covering:
            values = self._few(leaf)
            # A sample decides: where most values differ, removing repeats does not pay.
            first = values[:_SAMPLE]
            repeats = len(first.unique()) < len(first) // 2
            few = leaf in self._distinct or repeats
            self._covering[leaf] = self.distinct(leaf) if few else _flat(values)
        return self._covering[leaf]

    def _few(self, leaf: int) -> pa.ChunkedArray:
        coded = self._coded.get(leaf)
        if coded is None:
            return self._values[leaf]
        return pa.chunked_array([c.dictionary for c in coded.chunks], coded.type.value_type)

    def hashes(self, leaf: int, stored: PhysicalType) -> Hashes | None:
        """Hashes of the distinct values, ascending; see `bridge.index.kinds.plain`."""
        found = self._raw(leaf, stored)
        if found is None:
            return None
        if leaf not in self._ascending:
            self._ascending[leaf] = ascending(found)
        return self._ascending[leaf]

    def least_hashes(self, leaf: int, stored: PhysicalType, count: int) -> Hashes | None:
        """The first ``count`` of `hashes`."""
        found = self._raw(leaf, stored)
        if found is None:
            return None
        held = self._ascending.get(leaf)
        return least(found, count) if held is None else held[:count]

    def _raw(self, leaf: int, stored: PhysicalType) -> Hashes | None:
        if leaf not in self._hashes:
            # Hashing a number is faster than looking it up.
            text = stored.holds == "bytes"
            known = hashable(stored)
            whole = self.each_value(leaf) if known and text else _flat(self._values[leaf])
            self._hashes[leaf] = hashes(stored, whole) if known else None
        return self._hashes[leaf]


def _flat(values: pa.ChunkedArray) -> pa.Array:
    found = values.drop_null().combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found


class Gathering(Protocol):
    """One definition over one file.

    Attributes:
        leaves: numbers of the leaves whose values it needs; empty if the footer is enough.
    """

    @property
    def leaves(self) -> tuple[int, ...]: ...

    def update(self, arrays: Arrays) -> None:
        """Adds the values of more rows. All arrays of one call have the same length."""
        ...

    def finish(self) -> Iterable[Row]:
        """The file's rows: the fields of the kind's schema, and ``body`` if it has one."""
        ...


class KindStatistics(Protocol):
    """One definition for all files of an opened generation. Thread-safe."""

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        """The files of ``ordinals`` in which no row satisfies the expression; None: no such file.

        Called for every predicate, and for every conjunction before its parts.
        """
        ...


class IndexKind:
    """An index kind. Stateless.

    Attributes:
        name: its name in manifests, in reports and in ``skipbridge index build --NAME``.
        cost: relative cost of an answer. Cheaper kinds are evaluated first, min/max before all.
        help: the help text of the command's option.
        options: names and defaults of the options in ``column:option=value``.
        schema: the fields of its rows besides ``file`` and ``body``.
        has_body: rows have bytes of their own, which are read only for the requested files.
        single_values: it answers nothing for arrays, maps and whole structs.
        functions: it takes a function of a column in place of a column.
    """

    name: str
    cost: float = 10.0
    help: str = ""
    options: Mapping[str, str] = {}
    schema: pa.Schema
    has_body: bool = False
    single_values: bool = False
    functions: bool = False

    def define(self, text: str) -> KindDefinition:
        """Parses the value of the command's option. Errors: InvalidConfiguration."""
        return parse_definition(self.name, text, self.options)

    def columns(self, definition: KindDefinition) -> list[tuple[str, ...]]:
        """The columns of the table that the definition covers."""
        return [column_path(definition.on)]

    def most_values(self, definition: KindDefinition) -> int | None:
        """The most distinct values of a file for which it knows each value of its one column.

        None: it does not keep values. Advice on clustering simulates kinds that do: they answer =
        and IN whatever the order of rows.
        """
        return None

    def ahead(self, definition: KindDefinition, file: FileFacts) -> Sequence[Range]:
        """Byte ranges that `gather` reads, as far as they are known; builders fetch them ahead."""
        return ()

    def gather(self, definition: KindDefinition, file: FileFacts) -> Gathering | None:
        """A gathering for a file; None if the kind cannot index the file."""
        raise NotImplementedError

    def reduce(self, rows: pa.Table) -> pa.Table:
        """Reduces the rows of many files. A row that covers several files has ``file`` -1."""
        return rows

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        """Whether it could answer anything about the expression. Reads nothing."""
        return any(is_column(p.reference, definition.on) for p in predicates(expression))

    def open(self, definition: KindDefinition, payload: Payload) -> KindStatistics | None:
        """Opens the rows of all shards; None for a kind that prunes nothing."""
        raise NotImplementedError


def is_column(reference: BoundReference, on: str) -> bool:
    """Whether a reference is the column or field that a definition names.

    Compares paths, because a column may be called ``st.a`` beside a field ``a`` of ``st``
    (correctness 14).
    """
    path = tuple(name.lower() for name in reference.path)
    return path == column_path(on.lower()) and not reference.partition


def predicates(expression: BoundExpression) -> Iterable[BoundPredicate]:
    """All predicates within an expression."""
    match expression:
        case BoundAnd(children) | BoundOr(children):
            for child in children:
                yield from predicates(child)
        case BoundPredicate():
            yield expression
