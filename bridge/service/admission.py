"""Admission of scans: a bounded number is in progress, the others wait in order of arrival."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from bridge.kernel.telemetry import QUEUED
from bridge.kernel.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class Admission(Threads):
    """Threads for scans, which mostly wait for the metastore and for storage.

    Scans that wait at the same time share calls and listings, so their number is far above that of
    the cores. What is computed in between releases the interpreter lock or is short.

    Args:
        most: scans in progress; further ones wait, and `QUEUED` counts them.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most, "plan")

    def submit(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Future[T]:
        def begin() -> T:
            QUEUED.dec()
            return call(*args, **options)

        QUEUED.inc()
        try:
            return super().submit(begin)
        except BaseException:  # the pool is closed
            QUEUED.dec()
            raise
