"""Calls of the object stores' client: within one bound of this process, and interruptible.

The client's own blocking calls ignore signals, follow an endless listing for ever, and open a
connection each. So a call is awaited on one event loop of this process, and a caller that gives up
cancels its requests. At most `limit` calls run at once, first come, first served.
A call holds its slot only while it runs, never while it waits for something else.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from obstore.exceptions import GenericError

from bridge.storage import retry

T = TypeVar("T")


class NoAnswer(GenericError):
    """A call has not ended in its time; perhaps it goes on, page by page."""


CONNECTIONS = 128
"""Calls that run at once, unless a setting says less."""
STALL = 15.0
"""Seconds after which a page of a listing is asked for in another way, too."""
_AT_ONCE = 10
"""Calls of one caller that run at once."""
_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
_places: list[asyncio.Semaphore] = []
_most = [0]
_until: ContextVar[float | None] = ContextVar("until", default=None)


def _forked() -> None:
    _loops.clear()
    _places.clear()


os.register_at_fork(after_in_child=_forked)


def limit(connections: int) -> None:
    """Lets at most so many calls run at once in this process; the least number given holds."""
    with _lock:
        if not _most[0] or connections < _most[0]:
            _most[0] = connections
            _places.clear()


@contextmanager
def deadline_for_optional_calls(seconds: float) -> Iterator[None]:
    """For what a caller can do without: calls of this thread end with `NoAnswer` by then."""
    before = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(before)


def wait_for(
    call: Callable[[], Awaitable[T]],
    *,
    late: bool = True,
    stalled: Callable[[], None] | None = None,
) -> T:
    """The result of a call.

    Args:
        late: False for one that has a bound of its own, which its progress may move.
        stalled: is called once if there is no result in `STALL`, and may end the call by an error.

    Errors: its own; NoAnswer: there was none in `retry.DEADLINE`, or by the caller's deadline.
    """
    return wait_for_all([call], late=late, stalled=stalled)[0]


def wait_for_all(
    calls: Sequence[Callable[[], Awaitable[T]]],
    *,
    late: bool = True,
    stalled: Callable[[], None] | None = None,
) -> list[T]:
    """As `wait_for`, of several calls side by side. One that fails cancels the others."""
    loop, places = _running()
    mine = asyncio.Semaphore(_AT_ONCE)
    bound, until = retry.DEADLINE if late else None, _until.get()
    if until is not None:
        bound = max(until - time.monotonic(), 0.0)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with mine, places:
            try:
                async with asyncio.timeout(bound):
                    return await call()
            except TimeoutError as error:
                said = f"no answer within {bound or 0:.3g} s (kind: Timeout)"
                raise NoAnswer(said) from error

    async def run() -> list[T]:
        if len(calls) == 1:
            return [await one(calls[0])]
        tasks = [asyncio.ensure_future(one(call)) for call in calls]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()  # nothing happens to one that has ended

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        if stalled is not None and not wait([future], STALL).done:
            stalled()
        return future.result()
    finally:
        future.cancel()


def _running() -> tuple[asyncio.AbstractEventLoop, asyncio.Semaphore]:
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="skipbridge-store", daemon=True).start()
            _loops.append(loop)
        if not _places:
            _places.append(asyncio.Semaphore(_most[0] or CONNECTIONS))
        return _loops[0], _places[0]
