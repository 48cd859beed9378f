"""Equal calls from many threads: those that wait share the next call, as a group commit does.

The law: an answer comes from a call that began after the request. A call in flight therefore serves
only those who asked before it began; whoever asks later waits for the next one, with all others who
do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Group:
    running: int = 0
    waiting: int = 0
    next: Future[Any] | None = None


class SharedCalls:
    """Calls by key; all threads share it.

    Args:
        at_once: calls of one key that may be in flight. With two, the second of two requests does
            not wait for the first.
    """

    def __init__(self, at_once: int = 2) -> None:
        self._at_once = at_once
        self._groups: dict[Hashable, _Group] = {}
        self._changed = threading.Condition()

    def ask(self, key: Hashable, call: Callable[[], T]) -> T:
        """The answer of a call for this key that begins after this request.

        Errors:
            whatever ``call`` raises, for all who share the call.
        """
        answer: Future[T] = Future()
        with self._changed:
            group = self._groups.setdefault(key, _Group())
            next: Future[T] | None = group.next
            if next is not None:
                group.waiting += 1
            else:
                if group.running >= self._at_once:
                    group.next, group.waiting = answer, 1
                    self._changed.wait_for(lambda: group.running < self._at_once)
                    group.next, group.waiting = None, 0
                group.running += 1
        if next is not None:
            return next.result()
        try:
            found = call()
        except BaseException as error:
            answer.set_exception(error)
            raise
        else:
            answer.set_result(found)
            return found
        finally:
            with self._changed:
                group.running -= 1
                if not group.running and group.next is None:
                    self._groups.pop(key, None)
                self._changed.notify_all()
