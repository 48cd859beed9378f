"""What publishing asks of a remote store: partitions and files side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.types import STRING
from bridge.table.model import Column
from tests.support.clustered import clustered
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    SORTED,
    five_files,
    left,
    published,
    reverted,
    unneeded,
)

pytestmark = pytest.mark.full
DAYS = 8


class Remote:
    """A storage that answers one method only when all of some places are asked for.

    Args:
        place: of the arguments' text, what is asked for; None: nothing that is waited for.
    """

    def __init__(
        self, storage: Any, method: str, count: int, place: Callable[[str], str | None]
    ) -> None:
        self._storage, self._method, self._count, self._place = storage, method, count, place
        self._met: set[str] = set()
        self._all = threading.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name != self._method:
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            at = self._place(str(arguments[0]))
            if at is not None:
                self._met.add(at)
                if len(self._met) == self._count:
                    self._all.set()
                assert self._all.wait(30), f"only {sorted(self._met)} are asked for"
            return method(*arguments, **named)

        return call

    def is_remote(self, uri: str) -> bool:
        return True


def day_of(uri: str) -> str | None:
    return uri.rpartition("/day=")[2][:1] if "/day=" in uri else None


def by_days(root: Path) -> Lake:
    lake = Lake(root, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [(str(day),) for day in range(DAYS)]
    for (day,) in lake.partition_values:
        for i in range(2):
            age(lake.write(f"f{i}.parquet", {"x": [i], "s": [day]}, (day,)), 50_000)
    lake.build()
    clustered(lake, **SORTED)
    return lake


def test_partitions_are_published_and_looked_after_side_by_side(tmp_path: Path) -> None:
    lake = by_days(tmp_path)
    local = lake.storage
    steps: list[Callable[[], Any]] = [
        lambda: published(lake, refresh=False).published,
        lambda: left(lake),
        lambda: published(lake, refresh=False).published,
        lambda: unneeded(lake).files,
        lambda: reverted(lake, refresh=False).published,
    ]
    found = []
    for step in steps:
        lake.storage = Remote(local, "list_all", DAYS, day_of)
        found.append(step())
    days = [f"day={day}" for day in range(DAYS)]
    assert [sorted(found[0]), found[1], found[2], sorted(found[4])] == [days, [], [], days]


@pytest.mark.parametrize("method", ["read_state", "copy"])
def test_files_of_a_partition_are_compared_and_copied_side_by_side(
    tmp_path: Path, method: str
) -> None:
    lake = five_files(tmp_path)
    for i in range(5, 17):
        lake.write(f"g{i}.parquet", {"x": [i], "s": ["b"]})
    wanted = "/f" if method == "read_state" else "/g"
    count = 4 if method == "read_state" else 12

    def place(text: str) -> str | None:
        name = text.partition(".parquet")[0].rpartition("/")[2]
        return name if f"/{name}".startswith(wanted) and name != "f4" else None

    lake.storage = Remote(lake.storage, method, count, place)
    assert published(lake, refresh=False).published == [""]
