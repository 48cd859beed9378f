"""The open plans of one process, by handle; unused ones are closed after a time to live."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeVar

from bridge.kernel import telemetry
from bridge.kernel.errors import InvalidRequest, LimitExceeded, PlanLost


class Opened(Protocol):
    """What a handle refers to: splits, or rows of a system table."""

    def close(self) -> None: ...


Kind = TypeVar("Kind", bound=Opened)
_ABANDONED = 60.0
"""Seconds after which a plan that nobody has asked about makes room for others: its client did not
live to read the answer."""


@dataclass(slots=True)
class _Open:
    source: Opened
    query: str
    opened: float
    used: float


class OpenPlans:
    """Handles name their process, so that a foreign handle and an expired one can be told apart."""

    def __init__(self, process: str, ttl: float, limit: int) -> None:
        self._process = process
        self._ttl = ttl
        self._limit = limit
        self._plans: dict[str, _Open] = {}
        self._reserved = 0
        self._lock = threading.Lock()
        # Handles must not be guessable; a system call for each would release the interpreter lock.
        self._secret = secrets.token_bytes(32)
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._plans)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Reserves a place for the plan that is made and added in this block.

        Errors:
            LimitExceeded: no place is free; nothing was started.
        """
        if len(self._plans) + self._reserved >= self._limit:
            self._close_abandoned()
        with self._lock:
            taken = len(self._plans) + self._reserved
            if taken >= self._limit:
                raise LimitExceeded(
                    f"{taken} plans are open, the limit",
                    "close plans, or raise service.max_plans",
                )
            self._reserved += 1
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= 1

    def queries(self, query: str) -> int:
        """The number of queries with an open plan, and with the given one."""
        with self._lock:
            return len({query, *(held.query for held in self._plans.values())})

    def add(self, source: Opened, query: str) -> str:
        number = next(self._numbers).to_bytes(8, "big")
        handle = f"{self._process}/{blake2b(number, key=self._secret, digest_size=12).hexdigest()}"
        now = time.monotonic()
        with self._lock:
            self._plans[handle] = _Open(source, query, now, now)
            telemetry.OPEN_PLANS.set(len(self._plans))
        return handle

    def get(self, handle: str, kind: type[Kind]) -> Kind:
        """Errors: PlanLost; InvalidRequest: the handle refers to something of another kind."""
        with self._lock:
            held = self._plans.get(handle)
            if held is None:
                raise PlanLost(
                    f"no open plan {handle[:80]!r} in process {self._process}",
                    "the planner was restarted or the plan expired: run the query again",
                )
            held.used = time.monotonic()
            if not isinstance(held.source, kind):
                raise InvalidRequest(
                    f"{handle[:80]!r} is not a {kind.__name__}", "use the calls of what was opened"
                )
            return held.source

    def close(self, handle: str) -> Opened | None:
        """Closes and returns a plan; an unknown one is closed already."""
        return self._close_if(handle, lambda _: True)

    def _close_if(self, handle: str, holds: Callable[[_Open], bool]) -> Opened | None:
        with self._lock:
            held = self._plans.get(handle)
            if held is None or not holds(held):
                return None
            del self._plans[handle]
            telemetry.OPEN_PLANS.set(len(self._plans))
        held.source.close()
        return held.source

    def expire(self) -> None:
        """Closes plans that were not used for the time to live."""
        now = time.monotonic()
        self._close_where(lambda plan: now - plan.used > self._ttl)

    def _close_abandoned(self) -> None:
        now = time.monotonic()
        self._close_where(lambda p: p.used == p.opened and now - p.opened > _ABANDONED)

    def _close_where(self, holds: Callable[[_Open], bool]) -> None:
        with self._lock:
            found = [handle for handle, plan in self._plans.items() if holds(plan)]
        for handle in found:
            self._close_if(handle, holds)  # it may have been asked about meanwhile

    def close_all(self) -> None:
        for handle in list(self._plans):
            self.close(handle)
