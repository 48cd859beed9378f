"""The fair lock: one at a time and in order; nobody is held up for long."""

from __future__ import annotations

import threading
import time

import pytest

from bridge.service.fair_lock import FairLock


def test_one_at_a_time() -> None:
    turns, inside, most = FairLock(patience=60), 0, 0
    done = []

    def call() -> None:
        nonlocal inside, most
        for _ in range(50):
            with turns.turn():
                inside += 1
                most = max(most, inside)
                time.sleep(0)
                inside -= 1
        done.append(1)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (most, len(done)) == (1, 8)


def test_first_come_first_served() -> None:
    turns = FairLock(patience=60)
    order: list[int] = []

    def call(number: int) -> None:
        with turns.turn():
            order.append(number)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
    with turns.turn():
        for i, thread in enumerate(threads):
            thread.start()
            while len(turns._waiting) <= i:
                time.sleep(0.001)
    for thread in threads:
        thread.join(30)
    assert order == list(range(6))


def test_who_waits_too_long_goes_on_without() -> None:
    turns = FairLock(patience=0.01)
    with turns.turn():
        found: list[int] = []

        def call() -> None:
            with turns.turn():
                found.append(1)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join(30)
        assert found == [1]
    with turns.turn():  # free again: nobody waits, nobody holds it
        assert not turns._waiting


def test_a_failure_hands_the_turn_on() -> None:
    turns = FairLock(patience=60)
    with pytest.raises(ValueError, match="x"), turns.turn():
        raise ValueError("x")
    with turns.turn():
        pass
