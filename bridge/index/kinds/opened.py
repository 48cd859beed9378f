"""The definitions of an opened generation. Each is read on first use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import BoundExpression
from bridge.expression.statistics import Mask
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.store import IndexStore
from bridge.index.kinds import registry
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.kind import IndexKind, KindStatistics, Ordinals
from bridge.index.kinds.payload import Payload, ShardPart, open_payload, rows_schema
from bridge.index.reading.local_cache import CachedIndex
from bridge.kernel.errors import BridgeError, IndexKindFailed, LimitExceeded
from bridge.kernel.types import Semantics
from bridge.storage.local_disk.local_errors import refuse_exhausted

_log = logging.getLogger(__name__)


class OpenedKind:
    """One definition of a generation. Thread-safe.

    If a definition cannot be read, it answers nothing from then on, and ``problem`` says why.

    Attributes:
        definition: its kind, columns and options.
        problem: the error; None if there was none.
    """

    def __init__(
        self,
        kind: IndexKind,
        definition: KindDefinition,
        load: Callable[[], Payload],
        compiled: CachedIndex,
    ) -> None:
        self.kind, self.definition = kind, definition
        self._compiled = compiled
        compiled.parts.add(self)
        self.problem: BridgeError | None = None
        self._load = load
        self._opened: tuple[Payload, KindStatistics | None] | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.definition.name

    def concerns(self, expression: BoundExpression) -> bool:
        """Whether it may answer anything about an expression. Reads nothing."""
        return self.problem is None and self.kind.concerns(self.definition, expression)

    def payload(self) -> Payload | None:
        """Its rows; None if they cannot be read. Errors: LimitExceeded."""
        opened = self._open()
        return None if opened is None else opened[0]

    def _open(self) -> tuple[Payload, KindStatistics | None] | None:
        opened = self._opened
        if opened is not None or self.problem is not None:
            return opened
        with self._lock:
            if self._opened is not None or self.problem is not None:
                return self._opened
            try:
                payload = self._load()
                opened = self._opened = payload, self.kind.open(self.definition, payload)
            except Exception as error:
                self.problem = self._told(error)
                return None
        self._compiled.keeps(self.definition.signature, payload.open_files, payload.nbytes)
        return opened

    def release(self) -> None:
        """Gives up the rows. They are opened again on request."""
        with self._lock:
            self._opened = None

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        """See `KindStatistics.never`. None also if the index cannot be read.

        Errors:
            LimitExceeded.
        """
        opened = self._open()
        if opened is None or opened[1] is None:
            return None
        try:
            return opened[1].never(expression, ordinals, semantics)
        except Exception as error:
            self.problem = self._told(error)
            return None

    def _told(self, error: Exception) -> BridgeError:
        """Converts an error for the report. Unexpected errors are logged; no query fails.

        Errors:
            LimitExceeded: it tells nothing of the index.
        """
        refuse_exhausted(error)
        if isinstance(error, LimitExceeded):
            raise error
        if isinstance(error, BridgeError):
            return error
        _log.warning("index %s failed", self.name, exc_info=error)
        return IndexKindFailed(
            f"{self.name} failed: {type(error).__name__}: {error}", "see the planner's log"
        )

    def distinct_values(self, column: str) -> float | None:
        """An estimate, if the kind makes one; see `bridge.index.kinds.distinct`."""
        estimate = getattr(self.kind, "distinct_values", None)
        if estimate is None or (payload := self.payload()) is None:
            return None
        found: float | None = estimate(payload, column)
        return found


def open_kinds(
    manifest: Manifest, compiled: CachedIndex, store: IndexStore
) -> tuple[OpenedKind, ...]:
    """The visible definitions of a generation whose kinds are installed, cheapest first."""
    installed = registry.kinds()
    found = []
    for definition in manifest.settings.definitions:
        kind = installed.get(definition.kind)
        if kind is not None and definition.visible:
            found.append(
                OpenedKind(
                    kind,
                    definition,
                    payload_loader(
                        manifest,
                        compiled,
                        store,
                        definition.signature,
                        rows_schema(kind.schema, kind.has_body),
                    ),
                    compiled,
                )
            )
    return tuple(sorted(found, key=lambda opened: opened.kind.cost))


def payload_loader(
    manifest: Manifest, compiled: CachedIndex, store: IndexStore, signature: str, schema: pa.Schema
) -> Callable[[], Payload]:
    """Opens the rows of all shards under a signature; ``schema``: see `rows_schema`."""

    def load() -> Payload:
        shard = compiled.files.column("shard").to_numpy()
        slot = compiled.files.column("ordinal").to_numpy()
        parts = []
        for position, each in enumerate(manifest.shards):
            held = each.payload(signature)
            if held is None:
                continue
            slots = np.full(each.num_files, -1, np.int64)
            mine = np.flatnonzero(shard == position)
            slots[slot[mine]] = mine
            parts.append(ShardPart(held.header, held.body, slots))
        return open_payload(
            signature,
            schema,
            parts,
            compiled.files.num_rows,
            store,
            compiled.directory,
        )

    return load
