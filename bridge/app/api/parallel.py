"""Work on many things at once whose results come in order, with bounded memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from bridge.kernel.threads import Threads

Task = TypeVar("Task")
Result = TypeVar("Result")
_DEPTH = 2
_LOOK = 0.1
_END = object()


def in_order(
    tasks: Iterable[Task], work: Callable[[Task], Iterator[Result]], threads: int
) -> Iterator[Result]:
    """The results of each task, in the order of the tasks.

    At most ``threads`` tasks are under way, each at most two results ahead. ``tasks`` is drawn by
    the thread that draws the results. Closing the iterator stops all work.

    >>> list(in_order("ab", lambda c: iter((c, c * 2)), 2))
    ['a', 'aa', 'b', 'bb']
    """
    stop = threading.Event()

    def run(task: Task, results: queue.Queue[Any]) -> None:
        try:
            for result in work(task):
                if not put(results, result):
                    return
            put(results, _END)
        except BaseException as error:
            put(results, _Failure(error))

    def put(results: queue.Queue[Any], result: Any) -> bool:
        while not stop.is_set():
            try:
                results.put(result, timeout=_LOOK)
                return True
            except queue.Full:
                continue
        return False

    pending: deque[queue.Queue[Any]] = deque()
    waiting = iter(tasks)
    with Threads(threads, "read") as pool:
        try:
            more = True
            while more or pending:
                while more and len(pending) < threads:
                    task = next(waiting, _END)
                    if task is _END:
                        more = False
                        break
                    pending.append(queue.Queue(_DEPTH))
                    pool.submit(run, task, pending[-1])  # type: ignore[arg-type]
                if pending:
                    yield from _drained(pending[0])
                    pending.popleft()
        finally:
            stop.set()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _drained(results: queue.Queue[Any]) -> Iterator[Any]:
    while (result := results.get()) is not _END:
        if isinstance(result, _Failure):
            raise result.error
        yield result
