"""Calls of the object stores' client: within one bound of this process, and interruptible.

The client's own blocking calls are deaf to signals, follow a listing without an end for ever, and
open a connection each. So a call is awaited on one event loop of this process; who gives it up
cancels its requests. A call waits until one of `limit` many has ended, in the order of asking, and
holds its place no longer than it runs: never while somebody waits for something else.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from obstore.exceptions import GenericError

from bridge.storage import again

T = TypeVar("T")


class NoAnswer(GenericError):
    """A call has not ended in `again.DEADLINE`; perhaps it goes on, page by page."""


CONNECTIONS = 128
"""Calls that run at once, unless a setting says less."""
_AT_ONCE = 10
"""Calls of one caller that run at once."""
_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
_places: list[asyncio.Semaphore] = []
_most = [0]


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


def awaited(call: Callable[[], Awaitable[T]], *, late: bool = True) -> T:
    """The result of a call.

    Args:
        late: False for one that has a bound of its own, which its progress may move.

    Errors: its own; NoAnswer: there was none in `again.DEADLINE`.
    """
    return all_awaited([call], late=late)[0]


def all_awaited(calls: Sequence[Callable[[], Awaitable[T]]], *, late: bool = True) -> list[T]:
    """As `awaited`, of several calls side by side. One that fails cancels the others."""
    loop, places = _running()
    mine = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with mine, places:
            try:
                async with asyncio.timeout(again.DEADLINE if late else None):
                    return await call()
            except TimeoutError as error:
                said = f"no answer within {again.DEADLINE:g} s (kind: Timeout)"
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
