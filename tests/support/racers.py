"""Many writers of one name at once, in threads of several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bridge.storage.routed import open_storage
from bridge.storage.uri import join

_PATIENCE = 120.0


def race(
    root: str, options: Mapping[str, str], rounds: int, processes: int, threads: int
) -> list[list[bytes]]:
    """Lets all of them create ``root/0``, then ``root/1`` and so on, each with content of its own.

    Returns:
        For each name the contents of those who were told that they had created it.
    """
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(processes), context.Queue()
    running = [
        context.Process(
            target=_take_part, args=(root, dict(options), rounds, threads, n, barrier, answers)
        )
        for n in range(processes)
    ]
    for process in running:
        process.start()
    try:
        told = [answers.get(timeout=_PATIENCE) for _ in running]
        for process in running:
            process.join(_PATIENCE)
    finally:
        for process in running:
            process.kill()
    return [[content for wins in told for content in wins[number]] for number in range(rounds)]


def _take_part(
    root: str,
    options: dict[str, str],
    rounds: int,
    threads: int,
    number: int,
    barrier: Any,
    answers: Any,
) -> None:
    storage = open_storage(options=options)
    storage.stat(join(root, "warm"))
    wins: list[list[bytes]] = []
    contents = [b"process %d, thread %d" % (number, thread) for thread in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for name in range(rounds):
            uri = join(root, str(name))
            barrier.wait(_PATIENCE)
            created = pool.map(
                lambda content, uri=uri: storage.put_if_absent(uri, content), contents
            )
            wins.append([c for c, won in zip(contents, created, strict=True) if won])
    answers.put(wins)
