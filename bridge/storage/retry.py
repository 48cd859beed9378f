"""Repeats requests to object stores whose answers broke off.

obstore repeats requests that fail before an answer begins (refused, reset, timed out, 429, 5xx),
and reads of objects with an ETag that break off. It does not repeat listings that break off or are
damaged, nor reads of objects without an ETag or with headers that are none, nor what S3 has waited
for too long (400 RequestTimeout). What one of the two has repeated is not repeated by the other: a
request has one budget.

An answer that does not come, or does not go on, is given up after the option ``timeout``. Gives
up after `DEADLINE`, so that a store that never answers is an error and no wait for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from obstore.exceptions import BaseError, GenericError

from bridge.kernel.retry import Backoff

T = TypeVar("T")
_ATTEMPTS = 6
_FIRST = 0.1
_BROKEN = (
    *("response body error", "<Code>RequestTimeout</Code>", "Got invalid list response"),
    *("Content-Range", "CONTENT_RANGE", "error: Requested ", "Invalid last modified"),
    *("extract metadata from headers", "Received non-partial response"),
)
"""Where an answer broke off, or says what no store says: it is another one's, or was damaged."""
_REPEATED = "the client has asked for the rest again"
_RETRIES = re.compile(r", after (\d+) retries,")
DEADLINE = 120.0
"""Seconds after which a request that made no progress is not repeated."""


class RetryBudget(Backoff):
    """The attempts that one request has, with those that the client itself makes."""

    def __init__(self) -> None:
        super().__init__(_FIRST, attempts=_ATTEMPTS, deadline=DEADLINE)

    def wait_or_raise(self, error: Exception) -> None:
        """Waits before the next attempt. Errors: the given one: there is no use in another."""
        retries = _RETRIES.search(str(error))
        if not broke_off(error) or not self.pause(1 + (int(retries[1]) if retries else 0)):
            raise error


def broke_off(error: Exception) -> bool:
    """Whether the answer began and did not end, or the request did; and nobody has repeated it."""
    if not isinstance(error, GenericError) or _REPEATED in getattr(error, "__notes__", ()):
        return False
    return any(said in str(error) for said in _BROKEN)


def mark_repeated(error: BaseError) -> BaseError:
    """The error, noted as one of a request that the client itself has repeated."""
    error.add_note(_REPEATED)
    return error


def repeat(ask: Callable[[], T]) -> T:
    """The answer to a request that may be made more than once. Errors: of the last attempt."""
    budget = RetryBudget()
    while True:
        try:
            return ask()
        except BaseError as error:
            budget.wait_or_raise(error)
