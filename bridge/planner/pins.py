"""Pins: all scans of one (query, table) see one table definition, one index generation and one file
set.

A self-join that listed twice could join two states of the table; a pin makes the second scan see
what the first saw.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from bridge.planner.directory_lister import SharedListing
from bridge.planner.index_view import IndexView
from bridge.table.model import Partition, Table, TableName

_MAX_PINS = 128
_MAX_FILES = 500_000
_SECONDS = 120.0


@dataclass(slots=True)
class Pin:
    """What one query saw of one table.

    Attributes:
        names: partition names, None until asked for.
        partitions: by name, those that were fetched.
        listings: by partition location.
        listing: held while storage is listed.
    """

    table: Table
    view: IndexView
    used: float = 0.0
    names: list[str] | None = None
    partitions: dict[str, Partition] = field(default_factory=dict)
    listings: dict[str, SharedListing] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    listing: threading.Lock = field(default_factory=threading.Lock)


class Pins:
    """Pins by (query id, table), bounded in number, files and age.

    A query that outlives its pin lists again: later scans may then see newer files.
    """

    def __init__(self) -> None:
        self._pins: OrderedDict[tuple[str, TableName, int | None], Pin] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, query_id: str, name: TableName, generation: int | None) -> Pin | None:
        if not query_id:
            return None
        with self._lock:
            now = time.monotonic()
            while self._pins:
                oldest = next(iter(self._pins.values()))
                if len(self._pins) <= _MAX_PINS and now - oldest.used < _SECONDS:
                    break
                self._pins.popitem(last=False)
            pin = self._pins.get((query_id, name, generation))
            if pin is not None:
                pin.used = now
                self._pins.move_to_end((query_id, name, generation))
            return pin

    def trim(self) -> None:
        """Forgets the oldest pins while all together hold too many files."""
        with self._lock:
            held = [sum(map(len, list(p.listings.values()))) for p in self._pins.values()]
            total = sum(held)
            for count in held[:-1]:
                if total <= _MAX_FILES:
                    return
                self._pins.popitem(last=False)
                total -= count

    def put(self, query_id: str, generation: int | None, pin: Pin) -> Pin:
        """Keeps the pin, unless another thread was first: then that one counts."""
        pin.used = time.monotonic()
        if not query_id:
            return pin
        with self._lock:
            return self._pins.setdefault((query_id, pin.table.name, generation), pin)
