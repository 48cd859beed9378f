"""What all of Hudi's own indexes have: the base files that they are about, and patience."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Protocol, TypeVar

import numpy as np

from bridge.expression.nodes import (
    BoundAnd,
    BoundExpression,
    BoundOr,
    BoundPredicate,
    BoundReference,
    Op,
)
from bridge.expression.statistics import Mask
from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.kernel.errors import BridgeError, FileCorrupt, LimitExceeded, UnsupportedTable
from bridge.kernel.types import Kind, Semantics, Value
from bridge.storage.port import UNKNOWN_TIME, FileTable
from bridge.table.hudi.files.file_slices import FileSlices, full_paths
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.slices import Int64Array

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds that queries wait for an answer since it was asked for; later ones have it."""
FIRST_DAY = -25567
"""1900-01-01, before which writers differ about calendars."""


class BaseFiles:
    """The base files of some slices, of which an index of Hudi's own is read in other threads.

    Attributes:
        problem: why nothing is known; None if nothing has failed.
    """

    def __init__(self, view: FileSystemView, slices: FileSlices, pool: Executor) -> None:
        self._view, self._slices = view, slices
        self._places: dict[str, int] | None = None
        self._pool, self._lock = pool, threading.Lock()
        self.problem: BridgeError | None = None

    @property
    def num_files(self) -> int:
        return len(self._slices)

    @property
    def files(self) -> FileTable:
        """The base files of the slices; a slice of logs alone has no path."""
        slices = self._slices
        paths = full_paths(self._view.config.base, slices.base_paths)
        return FileTable(paths, slices.base_sizes, np.full(len(slices), UNKNOWN_TIME, np.int64))

    def match(self, files: FileTable) -> Int64Array:
        """The place of each base file among the slices; -1 if it has none."""
        if self._places is None:
            paths = self.files.paths.to_pylist()
            self._places = {path: place for place, path in enumerate(paths) if path}
        known = self._places
        return np.fromiter((known.get(p, -1) for p in files.paths.to_pylist()), np.int64)

    def _fail(self, error: Exception) -> bool:
        """Keeps why nothing is known; returns whether the next query may ask storage again."""
        problem = error if isinstance(error, BridgeError) else metadata_damage(str(error))
        self.problem = problem
        return not isinstance(problem, FileCorrupt | LimitExceeded | UnsupportedTable)


class Values(Protocol):
    """What is known of the values of one column."""

    def never(self, values: list[bytes]) -> Mask:
        """The base files that hold none of the values, which are texts."""
        ...


ColumnKinds = Mapping[str, tuple[Kind, ...]]
"""The types by which a column may be asked for, by its name in lower case."""


class EqualityIndex(BaseFiles):
    """Base files that hold no row of `=` or IN; safe for threads.

    Nothing is read before it is asked for; then all of it, or of a column, is read once, in another
    thread.

    Args:
        kinds: of the columns that it knows.
    """

    by_column = False
    """Whether each column is read by itself."""

    def __init__(
        self, view: FileSystemView, slices: FileSlices, pool: Executor, kinds: ColumnKinds
    ) -> None:
        super().__init__(view, slices, pool)
        self._kinds = kinds
        self._asked: dict[str, tuple[Future[Values | None], float]] = {}

    def ask(self, expression: BoundExpression) -> None:
        for reference in _compared(expression):
            self._ask(reference)

    def columns(self, expression: BoundExpression) -> tuple[str, ...]:
        self.ask(expression)
        known = (r for r in _compared(expression) if self._values(r) is not None)
        return tuple(sorted({r.path[0] for r in known}))

    def never(self, expression: BoundExpression, semantics: Semantics) -> Mask | None:
        match expression:
            case BoundAnd(children):
                known = [m for c in children if (m := self.never(c, semantics)) is not None]
                return np.logical_or.reduce(known) if known else None
            case BoundOr(children):
                masks = [self.never(child, semantics) for child in children]
                known = [mask for mask in masks if mask is not None]
                return np.logical_and.reduce(known) if len(known) == len(masks) else None
            case BoundPredicate(Op.EQ | Op.NULL_SAFE_EQ | Op.IN, reference, values):
                texts = as_texts(values, reference.type.kind)
                held = None if texts is None else self._values(reference)
                return None if texts is None or held is None else held.never(texts)
        return None

    def _values(self, reference: BoundReference) -> Values | None:
        """What is known of a column by now."""
        asked = self._ask(reference)
        return None if asked is None else answer_until(*asked)

    def _ask(self, reference: BoundReference) -> tuple[Future[Values | None], float] | None:
        """What another thread reads once for a column, and until when queries wait for it."""
        name = reference.path[0].lower()
        if len(reference.path) != 1 or reference.partition:
            return None
        if reference.type.kind not in self._kinds.get(name, ()):
            return None
        column = name if self.by_column else ""
        with self._lock:
            if column not in self._asked:
                answer = self._pool.submit(self._attempt, column)
                self._asked[column] = answer, time.monotonic() + PATIENCE
            return self._asked[column]

    def _attempt(self, column: str) -> Values | None:
        try:
            found = self._read(column)
        except (BridgeError, *DAMAGE) as error:
            if self._fail(error):
                with self._lock:
                    self._asked.pop(column, None)
            return None
        if found is not None:
            self.problem = None
        return found

    def _read(self, column: str) -> Values | None:
        """What is known; None: nothing. Errors: BridgeError, DAMAGE."""
        raise NotImplementedError


def _compared(expression: BoundExpression) -> Iterator[BoundReference]:
    """The columns that are compared by `=` or IN."""
    match expression:
        case BoundAnd(children) | BoundOr(children):
            for child in children:
                yield from _compared(child)
        case BoundPredicate(Op.EQ | Op.NULL_SAFE_EQ | Op.IN, reference):
            yield reference


def as_texts(values: tuple[Value, ...], kind: Kind) -> list[bytes] | None:
    """Values as texts, days as numbers; None if Java has no such text, and so no index of Hudi's.

    So it is with days before 1900.
    """
    if kind is Kind.DATE and any(isinstance(v, int) and v < FIRST_DAY for v in values):
        return None
    try:
        return [(v.decode() if isinstance(v, bytes) else str(v)).encode() for v in values]
    except UnicodeDecodeError:
        return None


def answer_until(read: Future[T], deadline: float) -> T | None:
    """What a thread answers by a moment of the monotonic clock; None: it has not yet."""
    try:
        return read.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return None


def metadata_damage(detail: str) -> FileCorrupt:
    return FileCorrupt(
        f"the metadata table tells nothing of files: {detail}", "build the metadata table again"
    )
