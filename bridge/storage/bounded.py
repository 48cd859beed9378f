"""Calls of a library that has no timeout of its own, with a deadline.

Nothing can interrupt such a call. So it runs on a thread of its own; one that is late is left
behind, and its thread is used again when it ends after all. The threads do not outlive the process.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Answer = SimpleQueue[tuple[Any, BaseException | None]]
_Worker = SimpleQueue[tuple[Callable[[], Any], _Answer]]
_idle: deque[_Worker] = deque()
os.register_at_fork(after_in_child=_idle.clear)


class Late(Exception):
    """The call has not ended within its time."""


class Progress:
    """Between a call and who waits for it: each step shows that the call goes on."""

    def __init__(self) -> None:
        self.steps = 0
        self.abandoned = False

    def step(self) -> None:
        """Errors: Late: nobody waits any more, so nothing more may be done."""
        if self.abandoned:
            raise Late("nobody waits for this call any more")
        self.steps += 1


def call_with_deadline(seconds: float, call: Callable[[Progress], T]) -> T:
    """The result of a call, which sees the context variables of the caller.

    Args:
        seconds: the longest time without a step.

    Errors: of the call; Late.
    """
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        threading.Thread(
            target=_work, args=(worker,), name="skipbridge-bounded", daemon=True
        ).start()
    answer: _Answer = SimpleQueue()
    progress = Progress()
    worker.put((partial(contextvars.copy_context().run, call, progress), answer))
    try:
        result, error = _answered(answer, progress, seconds)
    finally:
        progress.abandoned = True
    if error is not None:
        raise error
    found: T = result
    return found


def _answered(
    answer: _Answer, progress: Progress, seconds: float
) -> tuple[Any, BaseException | None]:
    while True:
        before = progress.steps
        try:
            return answer.get(timeout=seconds)
        except Empty:
            if progress.steps == before:
                raise Late(f"no answer within {seconds:g} s") from None


def _work(mine: _Worker) -> None:
    while True:
        call, answer = mine.get()
        result, error = None, None
        try:
            result = call()
        except BaseException as e:  # Rust's panics are no Exception
            error = e
        _idle.append(mine)  # first, so that the caller's next call finds this thread
        answer.put((result, error))
        del call, answer, result, error
