"""Calls with a deadline: they end, or are left behind, and their threads are used again."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from bridge.storage import bounded
from bridge.storage.bounded import Late, Progress, call_with_deadline

asking: contextvars.ContextVar[str] = contextvars.ContextVar("asking", default="nobody")


def test_results_errors_and_context_are_the_calls_own() -> None:
    asking.set("me")
    assert call_with_deadline(30, lambda _: asking.get()) == "me"
    with pytest.raises(ZeroDivisionError):
        call_with_deadline(30, lambda _: 1 // 0)
    with pytest.raises(KeyboardInterrupt):
        call_with_deadline(30, _interrupted)


def _interrupted(progress: Progress) -> None:
    raise KeyboardInterrupt


def test_a_thread_is_used_again() -> None:
    assert len({call_with_deadline(30, _thread) for _ in range(50)}) == 1
    gate = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        used = set(pool.map(lambda _: call_with_deadline(30, partial(_together, gate)), range(8)))
        assert len(used) == 8
        again = set(pool.map(lambda _: call_with_deadline(30, _thread), range(200)))
    assert again <= used


def _thread(progress: Progress) -> int:
    return threading.get_ident()


def _together(gate: threading.Barrier, progress: Progress) -> int:
    gate.wait(30)
    return threading.get_ident()


def test_a_late_call_is_left_behind_and_its_thread_comes_back() -> None:
    over = threading.Event()
    ended: SimpleQueue[str] = SimpleQueue()

    def slow(progress: Progress) -> None:
        over.wait(30)
        try:
            progress.step()
        except Late as error:
            ended.put(str(error))

    before = len(bounded._idle)
    with pytest.raises(Late, match=r"no answer within 0\.05 s"):
        call_with_deadline(0.05, slow)
    assert len(bounded._idle) <= before
    over.set()
    assert ended.get(timeout=30) == "nobody waits for this call any more"
    assert call_with_deadline(30, lambda _: "next") == "next"


class Answer:
    """Comes after so many waits, during each of which the call takes a step."""

    def __init__(self, progress: Progress, waits: int) -> None:
        self._progress = progress
        self._waits = waits

    def get(self, timeout: float) -> tuple[str, None]:
        if self._progress.steps < self._waits:
            self._progress.step()
            raise Empty
        return "done", None


def test_a_call_that_goes_on_is_waited_for() -> None:
    progress = Progress()
    slow: Any = Answer(progress, 5)
    assert bounded._answered(slow, progress, 1.0) == ("done", None)
    assert progress.steps == 5
