"""Requests to the metastore, cut by the bytes they carry.

A metastore puts a request into statements of its database, and one statement too long fails as a
whole: MySQL takes packets of ``max_allowed_packet``, Derby parses long lists by recursion, and an
event's text has the length of its column. So a batch has a limit in bytes and one in number.

A larger batch is not a faster one: the metastore of Hive 4.0 puts all rows of a batch into one
INSERT, which Derby carries out in a time that grows with its square (a partition costs 1 ms in
batches of 50 to 200, 1.9 ms in one of 1,000, 3 to 4 ms in one of 2,000); PostgreSQL and Hive 2.3
take the same time for either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from bridge.errors import InvalidConfiguration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one request holds at most.

    Attributes:
        bytes: on the wire.
        count: partitions.
    """

    bytes: int = 1 << 20
    count: int = 200

    def __post_init__(self) -> None:
        if self.bytes < 1 or self.count < 1:
            raise InvalidConfiguration(
                f"no batches of {self.count} partitions and {self.bytes} bytes",
                "set sync.batch_partitions and sync.batch_bytes to 1 or more",
            )


def batches(items: Iterable[T], size: Callable[[T], int], limits: BatchLimits) -> Iterator[list[T]]:
    """Cuts items into batches, in order, none lost; lazily.

    The law: a batch keeps both limits, unless it is one item that alone is too large.

    >>> list(batches(["a", "bbb", "cc"], len, BatchLimits(bytes=4, count=9)))
    [['a', 'bbb'], ['cc']]
    """
    batch: list[T] = []
    held = 0
    for item in items:
        weight = size(item)
        if batch and (held + weight > limits.bytes or len(batch) == limits.count):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += weight
    if batch:
        yield batch
