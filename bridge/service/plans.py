"""The plans that are open in one process, by handle; forgotten ones are closed after a while."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeVar

from bridge import telemetry
from bridge.errors import InvalidRequest, LimitExceeded, PlanLost


class Opened(Protocol):
    """What a handle stands for: splits, or rows of a system table."""

    def close(self) -> None: ...


Kind = TypeVar("Kind", bound=Opened)


@dataclass(slots=True)
class _Open:
    source: Opened
    used: float


class OpenPlans:
    """Handles name the process: one that another process made is told from one that expired."""

    def __init__(self, process: str, ttl: float, limit: int) -> None:
        self._process = process
        self._ttl = ttl
        self._limit = limit
        self._plans: dict[str, _Open] = {}
        self._reserved = 0
        self._lock = threading.Lock()
        # Handles cannot be guessed; asking the system for each one would give the interpreter away.
        self._secret = secrets.token_bytes(32)
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._plans)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Holds a place for the plan that is made and added within.

        Errors:
            LimitExceeded: there is none; nothing was started.
        """
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

    def add(self, source: Opened) -> str:
        number = next(self._numbers).to_bytes(8, "big")
        handle = f"{self._process}/{blake2b(number, key=self._secret, digest_size=12).hexdigest()}"
        with self._lock:
            self._plans[handle] = _Open(source, time.monotonic())
            telemetry.OPEN_PLANS.set(len(self._plans))
        return handle

    def get(self, handle: str, kind: type[Kind]) -> Kind:
        """Errors: PlanLost; InvalidRequest: the handle stands for something else."""
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
                    f"{handle[:80]!r} is no {kind.__name__}", "use the calls of what was opened"
                )
            return held.source

    def close(self, handle: str) -> Opened | None:
        """Closes a plan and returns what it was; one that is not there is closed already."""
        with self._lock:
            held = self._plans.pop(handle, None)
            telemetry.OPEN_PLANS.set(len(self._plans))
        if held is None:
            return None
        held.source.close()
        return held.source

    def expire(self) -> None:
        """Closes plans that nobody asked about for the time to live."""
        now = time.monotonic()
        with self._lock:
            old = [h for h, p in self._plans.items() if now - p.used > self._ttl]
        for handle in old:
            self.close(handle)

    def close_all(self) -> None:
        for handle in list(self._plans):
            self.close(handle)
