"""Admission: in order of arrival, no more than allowed at once; the queue's length is told."""

from __future__ import annotations

import threading
import time

import pytest

from bridge.kernel.telemetry import QUEUED
from bridge.service.admission import Admission


def queued() -> float:
    return float(QUEUED._value.get())


def test_in_order_of_arrival_and_counted() -> None:
    before, order = queued(), []
    gate, begun = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert gate.wait(30)

    with Admission(1) as pool:
        pool.submit(first)
        assert begun.wait(30)
        rest = [pool.submit(order.append, i) for i in range(64)]
        assert queued() == before + 64
        gate.set()
        for future in rest:
            future.result(30)
    assert order == list(range(64))
    assert queued() == before


def test_no_more_at_once_than_allowed() -> None:
    lock, inside, most = threading.Lock(), 0, 0

    def scan() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.001)
        with lock:
            inside -= 1

    with Admission(5) as pool:
        for future in [pool.submit(scan) for _ in range(100)]:
            future.result(30)
    assert most <= 5


def test_nothing_is_counted_once_it_is_closed() -> None:
    before, pool = queued(), Admission(1)
    pool.shutdown()
    with pytest.raises(RuntimeError):
        pool.submit(print)
    assert queued() == before
