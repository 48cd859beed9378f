"""Work in batches that are bounded in bytes and in number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(
    items: Iterable[T], size: Callable[[T], int], most_bytes: int, most: int
) -> Iterator[list[T]]:
    """Cuts items into batches lazily, in order, without losing any.

    The law: a batch keeps both limits, unless it is a single item that is too large.

    >>> list(batches(["a", "bbb", "cc"], len, most_bytes=4, most=9))
    [['a', 'bbb'], ['cc']]
    """
    batch: list[T] = []
    held = 0
    for item in items:
        weight = size(item)
        if batch and (held + weight > most_bytes or len(batch) == most):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += weight
    if batch:
        yield batch
