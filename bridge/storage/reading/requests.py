"""Counts requests to HDFS and object stores, in a metric and for whoever wants to know.

A request that the store's client repeats counts once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from bridge.kernel.telemetry import STORAGE_REQUESTS

A = TypeVar("A")
T = TypeVar("T")
_metrics = {
    operation: STORAGE_REQUESTS.labels(operation)
    for operation in ("list", "look", "read", "write", "delete")
}


class RequestCount:
    """A number of requests; safe for threads."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self, requests: int) -> None:
        with self._lock:
            self.count += requests


_tally: ContextVar[RequestCount | None] = ContextVar("tally", default=None)


def count_requests(operation: str, requests: int = 1) -> None:
    """Counts requests that this thread has made.

    Args:
        operation: ``list``, ``look``, ``read``, ``write`` or ``delete``.
    """
    _metrics[operation].inc(requests)
    tally = _tally.get()
    if tally is not None:
        tally.add(requests)


@contextmanager
def tally_requests(tally: RequestCount) -> Iterator[None]:
    """Counts the requests of this thread, and of those that `carry_count` prepared for others."""
    token = _tally.set(tally)
    try:
        yield
    finally:
        _tally.reset(token)


def carry_count(function: Callable[[A], T]) -> Callable[[A], T]:
    """The function for another thread, whose requests count as this thread's."""
    tally = _tally.get()
    if tally is None:
        return function

    def counted(argument: A) -> T:
        with tally_requests(tally):
            return function(argument)

    return counted
