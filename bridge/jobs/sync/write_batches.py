"""Requests to the metastore, cut by size in bytes.

A metastore turns a request into statements of its database, and a statement that is too long fails
as a whole: MySQL limits packets to ``max_allowed_packet``, Derby parses long lists recursively, and
the text of an event must fit its column. A batch is therefore limited in bytes and in number.

Larger batches are not faster. The metastore of Hive 4.0 writes all rows of a batch in one INSERT,
and Derby's time for it is quadratic: a partition costs 1 ms in batches of 50 to 200, 1.9 ms in a
batch of 1,000 and 3 to 4 ms in a batch of 2,000. On PostgreSQL, and with Hive 2.3, the size makes
no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from bridge.errors import InvalidConfiguration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one request.

    Attributes:
        bytes: size on the wire.
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
    """Cuts items into batches lazily, in order, without losing any.

    The law: a batch keeps both limits, unless it is a single item that is too large.

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
