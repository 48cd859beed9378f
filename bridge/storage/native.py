"""Calls of the object stores' client that end: within a bound, or when their caller is interrupted.

The client's own blocking calls are deaf to signals, and follow a listing without an end for ever.
So a call is awaited on one event loop of this process; who gives it up cancels its requests.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from obstore.exceptions import GenericError

from bridge.storage import again

T = TypeVar("T")
_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
os.register_at_fork(after_in_child=_loops.clear)


def awaited(call: Callable[[], Awaitable[T]]) -> T:
    """The result of a call. Errors: its own; GenericError: there was none in `again.DEADLINE`."""

    async def run() -> T:
        return await call()

    future = asyncio.run_coroutine_threadsafe(run(), _running())
    try:
        return future.result(again.DEADLINE)
    except TimeoutError as error:
        raise GenericError(f"no answer within {again.DEADLINE:g} s (kind: Timeout)") from error
    finally:
        future.cancel()  # nothing happens to a call that has ended


def _running() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="skipbridge-store", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
