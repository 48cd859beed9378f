"""Keeps an index up to date while others write the table: refreshes at an interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.kernel.errors import BridgeError, Category

_LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True)
class Watched:
    """The totals of a watch: refreshes, committed generations, failed refreshes."""

    rounds: int
    committed: int
    failed: int


def watch(
    refresh: Callable[[], dict[str, Any]],
    seconds: float,
    stop: threading.Event,
    *,
    told: Callable[[dict[str, Any]], None],
    say: Callable[[str], None],
) -> Watched:
    """Refreshes now, and every ``seconds`` after the start of the last refresh.

    A failed round is reported and retried, with a pause that doubles up to five minutes. An error
    in the first round that the user must fix ends the watch.

    Args:
        refresh: runs one round and returns its report.
        told: called with the report of each round that committed.

    Errors:
        BridgeError of category USER_ERROR, as ``refresh`` raises it in the first round.
    """
    rounds = committed = failed = 0
    pause = seconds
    while not stop.is_set():
        began = time.monotonic()
        try:
            report = refresh()
        except BridgeError as error:
            if rounds == 0 and error.category is Category.USER_ERROR:
                raise
            failed += 1
            pause = min(max(pause, 1.0) * 2, max(_LONGEST_PAUSE, seconds))
            say(f"{error.code}: {error.message}; tried again in {pause:.0f} s")
        else:
            pause = seconds
            if report["committed"]:
                committed += 1
                told(report)
        rounds += 1
        stop.wait(max(0.0, pause - (time.monotonic() - began)))
    return Watched(rounds, committed, failed)
