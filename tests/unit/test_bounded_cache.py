"""The cache against a list of what was used in order; and threads that want the same value."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bridge.kernel.bounded_cache import BoundedCache
from tests.tiers import examples, seed


@pytest.mark.rule("31")
@pytest.mark.parametrize("number", range(examples(20, 200, 2000)))
def test_bounds_hold_and_what_is_unused_for_longest_goes(number: int) -> None:
    rng = random.Random(seed(number))
    most, capacity = rng.randint(1, 6), rng.randint(1, 40)
    sizes: dict[int, int] = {}
    dropped: list[int] = []
    cache: BoundedCache[int, int] = BoundedCache(
        most,
        capacity=capacity,
        weigh=lambda key: sizes[key],
        on_drop=lambda key, _: dropped.append(key),
    )
    model: list[int] = []  # the oldest use first
    weights: dict[int, int] = {}
    for _ in range(200):
        key, expected = rng.randint(0, 9), []
        match rng.choice(("get", "put", "put", "pop", "reweigh", "make", "load")):
            case "get":
                assert cache.get(key) == (key if key in model else None)
                if key in model:
                    model.append(model.pop(model.index(key)))
            case "pop":
                assert cache.pop(key) == (key if key in model else None)
                model = [held for held in model if held != key]
            case "reweigh":
                sizes[key] = rng.randint(0, 30)
                cache.reweigh(key)
                weights[key] = sizes[key]
            case "put":
                sizes[key] = weights[key] = rng.randint(0, 30)
                cache.put(key, key)
                model = [*(held for held in model if held != key), key]
            case do:
                sizes.setdefault(key, 7)
                ask = cache.get_or_put if do == "make" else cache.load
                assert ask(key, lambda made=key: made) == key
                if key not in model:
                    weights[key] = sizes[key]
                model = [*(held for held in model if held != key), key]
        while len(model) > 1 and (len(model) > most or sum(weights[k] for k in model) > capacity):
            expected.append(model.pop(0))
        assert list(cache) == model and dropped == expected
        assert cache.weight == sum(weights[held] for held in model)
        dropped.clear()


def test_what_is_unused_for_too_long_goes() -> None:
    cache: BoundedCache[str, int] = BoundedCache(seconds=1000.0)
    for key in "abc":
        cache.put(key, 1)
    cache.seconds = -1.0
    cache.put("d", 1)
    assert list(cache) == ["d"], "whoever puts drops what is old, and never what was put"
    cache.expire()
    assert list(cache) == [] and cache.get("d") is None


def test_one_thread_makes_what_many_want_and_no_other_key_waits() -> None:
    cache: BoundedCache[str, int | None] = BoundedCache(8)
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def make() -> None:
        calls.append("slow")
        begun.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(cache.load, "slow", make) for _ in range(4)]
        assert begun.wait(60)
        assert cache.load("other", lambda: 2) == 2
        go_on.set()
        assert [each.result() for each in asked] == [None] * 4, "None is a value, too"
    assert calls == ["slow"]


def test_who_comes_after_a_failure_tries_anew() -> None:
    cache: BoundedCache[str, int] = BoundedCache(8)
    with pytest.raises(ZeroDivisionError):
        cache.load("x", lambda: 1 // 0)
    assert cache.load("x", lambda: 3) == 3 and cache.get("x") == 3
