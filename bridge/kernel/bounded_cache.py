"""The cache of this program, bounded by number, weight and age: what is unused for longest goes.

The law: a value that was dropped can be made again, so a bound costs time and never an answer.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_ABSENT: Any = object()


class BoundedCache(Generic[K, V]):
    """Values by key, the one unused for longest first; safe for threads.

    Args:
        most: values held.
        capacity: weight of all values together. The value used last may exceed it alone.
        weigh: the weight of a value, asked when it is put.
        seconds: values unused for longer go with the next `put` or `expire`.
        on_drop: called for each value that makes room, with the lock held.

    Attributes:
        lock: hold it to do several steps as one. Re-entrant: garbage collection may come back to
            the cache inside any of these methods.
        weight: of all values.
    """

    def __init__(
        self,
        most: int = sys.maxsize,
        *,
        capacity: int = sys.maxsize,
        weigh: Callable[[V], int] | None = None,
        seconds: float = float("inf"),
        on_drop: Callable[[K, V], None] | None = None,
    ) -> None:
        self.most, self.capacity, self.seconds = most, capacity, seconds
        self.weight = 0
        self.lock = threading.RLock()
        self._weigh, self._on_drop = weigh, on_drop
        self._held: OrderedDict[K, tuple[V, int, float]] = OrderedDict()
        self._loading: dict[K, threading.Lock] = {}

    def get(self, key: K, default: Any = None) -> V | Any:
        """The value, which counts as used now."""
        with self.lock:
            return self._use(key, default)

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Those of the values that are held; they count as used now."""
        with self.lock:
            held = self._held
            return {key: self._use(key, None) for key in keys if key in held}

    def put(self, key: K, value: V) -> None:
        """Holds a value in place of the key's former one, and drops others beyond the bounds."""
        with self.lock:
            self._put(key, value)
            self._shrink()

    def put_all(self, values: Mapping[K, V]) -> None:
        with self.lock:
            for key, value in values.items():
                self._put(key, value)
            self._shrink()

    def reweigh(self, key: K) -> None:
        """Asks for the weight of a value again; that is no use of it."""
        with self.lock:
            held = self._held.get(key)
            if held is not None and self._weigh is not None:
                weight = self._weigh(held[0])
                self._held[key] = (held[0], weight, held[2])
                self.weight += weight - held[1]
                self._shrink()

    def get_or_put(self, key: K, make: Callable[[], V]) -> V:
        """The value, made if it is not held. ``make`` is quick: the lock is held meanwhile."""
        with self.lock:
            found: V = self._use(key, _ABSENT)
            if found is _ABSENT:
                found = make()
                self.put(key, found)
            return found

    def load(self, key: K, make: Callable[[], V]) -> V:
        """As `get_or_put` where ``make`` is slow: only threads that want the same key wait for it.

        Errors: those of ``make``; the next thread tries anew.
        """
        with self.lock:
            found: V = self._use(key, _ABSENT)
            if found is not _ABSENT:
                return found
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            found = self.get(key, _ABSENT)
            if found is not _ABSENT:
                return found
            try:
                found = make()
                self.put(key, found)
            finally:
                with self.lock:
                    self._loading.pop(key, None)
            return found

    def pop(self, key: K, default: Any = None) -> V | Any:
        """Takes a value out; ``on_drop`` is not called."""
        with self.lock:
            value, weight, _ = self._held.pop(key, (default, 0, 0.0))
            self.weight -= weight
            return value

    def expire(self) -> None:
        """Drops what has been unused for too long."""
        with self.lock:
            while self._held and self._is_old():
                self._drop()

    def clear(self) -> None:
        """Takes all values out; ``on_drop`` is not called."""
        with self.lock:
            self._held.clear()
            self.weight = 0

    def __contains__(self, key: object) -> bool:
        with self.lock:
            return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[K]:
        """The keys at this moment, the one unused for longest first."""
        with self.lock:
            return iter(list(self._held))

    def _use(self, key: K, default: Any) -> V | Any:
        held = self._held.get(key)
        if held is None:
            return default
        if self.seconds != float("inf"):
            self._held[key] = (held[0], held[1], time.monotonic())
        self._held.move_to_end(key)
        return held[0]

    def _put(self, key: K, value: V) -> None:
        before = self._held.pop(key, None)
        weight = 0 if self._weigh is None else self._weigh(value)
        self._held[key] = (value, weight, time.monotonic())
        self.weight += weight - (0 if before is None else before[1])

    def _shrink(self) -> None:
        while len(self._held) > 1 and (
            len(self._held) > self.most or self.weight > self.capacity or self._is_old()
        ):
            self._drop()

    def _is_old(self) -> bool:
        if self.seconds == float("inf"):
            return False
        return time.monotonic() - next(iter(self._held.values()))[2] > self.seconds

    def _drop(self) -> None:
        key, (value, weight, _) = self._held.popitem(last=False)
        self.weight -= weight
        if self._on_drop is not None:
            self._on_drop(key, value)
