"""What an index kind is: how it gathers from a file, what it stores, and what it answers.

A kind is one file: a subclass of `IndexKind` and an instance named ``KIND`` in
`bridge.index.kinds`, or an entry point elsewhere (docs/reference/index-kinds.md).
`bridge.index.kinds.payload` keeps rows, bodies, shards, merging, tombstones, caches and range
reads; a kind only says what a row is.

The law of every kind: where it answers NEVER, no row of that file satisfies the expression as the
asking engine reads it. A file it has no row of, or doubts, is MAYBE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from bridge.file_formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.kinds.definition import Definition, column_path, parse_definition
from bridge.index.kinds.payload import Payload
from bridge.index.kinds.plain import hashable, hashes
from bridge.index.kinds.xxh64 import Hashes, ascending, least
from bridge.storage.parquet_footer import Chunk
from bridge.types import Semantics

Ordinals = npt.NDArray[np.int64]
Row = dict[str, Any]
STORED = pa.field("stored", pa.dictionary(pa.int32(), pa.large_string()))
"""The key of the stored column that a row's values come from (`PhysicalColumn.key`)."""
_SAMPLE = 1024


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as a kind sees it before its data is read.

    Attributes:
        groups: its row groups with rows: the number of rows, and a chunk for every leaf.
        leaves: of the footer, in its order.
        legacy: dates before 1900 may be of the hybrid calendar (correctness 9).
        read_ranges: byte ranges of the file.
    """

    uri: str
    size: int
    groups: Sequence[tuple[int, Sequence[Chunk]]]
    leaves: tuple[PhysicalColumn, ...]
    legacy: bool
    read_ranges: Callable[[Sequence[tuple[int, int]]], list[bytes]]

    def leaf(self, path: tuple[str, ...]) -> int | None:
        """The number of the one leaf that engines read for a column, without regard to case.

        None if there is none, if two are spelled alike but for case, if it lies in a list or map,
        or if the name is a leaf here and a group there (correctness 14).
        """
        wanted = tuple(name.lower() for name in path)
        found = None
        for number, column in enumerate(self.leaves):
            here = tuple(name.lower() for name in column.path)
            if here == wanted:
                if found is not None or column.type.logical == "repeated":
                    return None
                found = number
            elif len(here) != len(wanted) and here[: len(wanted)] == wanted[: len(here)]:
                return None
        return found


class Arrays:
    """Values of some rows of a file, by the number of their leaf; what is derived is shared.

    Text may come in dictionaries, as files store it: what is in a dictionary counts as a value,
    though it need not be in any row.
    """

    def __init__(self, values: Mapping[int, pa.ChunkedArray]) -> None:
        self._values = dict(values)
        self._coded = {i: v for i, v in values.items() if isinstance(v.type, pa.DictionaryType)}
        self._distinct: dict[int, pa.Array] = {}
        self._covering: dict[int, pa.Array] = {}
        self._hashes: dict[int, Hashes | None] = {}
        self._ascending: dict[int, Hashes] = {}

    def __getitem__(self, leaf: int) -> pa.ChunkedArray:
        """The values of all rows, in order, out of their dictionaries."""
        values = self._values[leaf]
        if isinstance(values.type, pa.DictionaryType):
            self._values[leaf] = values = values.cast(values.type.value_type)
        return values

    def counts(self, leaf: int) -> tuple[int, int]:
        """How many rows there are, and in how many the leaf is NULL."""
        values = self._values[leaf]
        return len(values), values.null_count

    def distinct(self, leaf: int) -> pa.Array:
        """Distinct non-null values."""
        if leaf not in self._distinct:
            self._distinct[leaf] = self._few(leaf).unique().drop_null()
        return self._distinct[leaf]

    def covering(self, leaf: int) -> pa.Array:
        """Non-null values, each at least once: the distinct ones where it pays to tell them."""
        if leaf not in self._covering:
            values = self._few(leaf)
            # Most differ where most of the first do: these are not looked up one by one.
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
            # A number is hashed faster than it is looked up.
            text = stored.holds == "bytes"
            known = hashable(stored)
            whole = self.covering(leaf) if known and text else _flat(self._values[leaf])
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
        leaves: numbers of the leaves whose values it needs; none if the footer told it all.
    """

    @property
    def leaves(self) -> tuple[int, ...]: ...

    def update(self, arrays: Arrays) -> None:
        """Takes the values of some more rows; the arrays of one call are of equal length."""
        ...

    def finish(self) -> Iterable[Row]:
        """The file's rows: by name what the kind's schema holds, and ``body`` where it has one."""
        ...


class KindStatistics(Protocol):
    """One definition over all files of an opened generation; safe for threads."""

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        """Of the given files those in which no row satisfies the expression; None: none known.

        Asked for every predicate, and for every conjunction before its parts.
        """
        ...


class IndexKind:
    """A kind; stateless.

    Attributes:
        name: as manifests, reports and ``skipbridge index build --NAME`` spell it.
        cost: of an answer; cheaper kinds are asked first, min/max before all of them.
        help: of the command's option.
        options: names and defaults of what follows the column: ``column:option=value``.
        schema: of its rows, beside ``file`` and ``body``.
        has_body: rows have bytes of their own, which are read for the files asked about only.
    """

    name: str
    cost: float = 10.0
    help: str = ""
    options: Mapping[str, str] = {}
    schema: pa.Schema
    has_body: bool = False

    def define(self, text: str) -> Definition:
        """Reads an option's text. Errors: InvalidConfiguration."""
        return parse_definition(self.name, text, self.options)

    def columns(self, definition: Definition) -> list[tuple[str, ...]]:
        """The columns of the table that it is over."""
        return [column_path(definition.on)]

    def gather(self, definition: Definition, file: FileFacts) -> Gathering | None:
        """How to gather from a file; None where nothing can be said of it."""
        raise NotImplementedError

    def reduce(self, rows: pa.Table) -> pa.Table:
        """What is kept of many files' rows; a row about no file in particular has ``file`` -1."""
        return rows

    def concerns(self, definition: Definition, expression: BoundExpression) -> bool:
        """Whether it could answer anything; asked before anything of it is read."""
        return any(is_column(p.reference, definition.on) for p in predicates(expression))

    def open(self, definition: Definition, payload: Payload) -> KindStatistics | None:
        """Opens what shards hold; None for a kind that prunes nothing."""
        raise NotImplementedError


def is_column(reference: BoundReference, on: str) -> bool:
    """Whether a reference is the column, or field, that a definition names; by path, since a column
    may be called ``st.a`` beside a field a of st (correctness 14).
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
