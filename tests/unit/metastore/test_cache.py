"""The cache's law while answers are under way: a catalog in memory changes between its steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.types import STRING
from bridge.metastore._gen import ttypes
from bridge.metastore.cache import CachedCatalog
from bridge.table.model import CatalogTable, Column, Partition, PartitionBatch, TableName

NAME = TableName("d", "t")
TABLE = CatalogTable(NAME, (), (Column("p", STRING),), "file:///t")


class Source:
    """Names and locations that events record, as a metastore does; one number a change."""

    def __init__(self) -> None:
        self.partitions: dict[str, str] = {}
        self.number = 0
        self.asked = 0
        self.before_answer: Any = lambda: None
        self.client = SimpleNamespace(
            get_current_notification_id=lambda: self.number,
            get_next_notifications=self._events,
            connections_opened=0,
        )

    def put(self, name: str, location: str) -> None:
        self.partitions[name] = location
        self.number += 1

    def drop(self, name: str) -> None:
        self.partitions.pop(name, None)
        self.number += 1

    def _events(self, after: int, limit: int) -> list[ttypes.NotificationEvent]:
        numbers = range(after + 1, min(self.number, after + limit) + 1)
        return [ttypes.NotificationEvent(n, 0, "ADD_PARTITION", "d", "t", "") for n in numbers]

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        self.asked += 1
        names = sorted(self.partitions)
        self.before_answer()
        return names

    def partitions_of(self, names: list[str]) -> Iterator[PartitionBatch]:
        for begin in range(0, len(names), 2):
            batch = names[begin : begin + 2]
            known = [n for n in batch if n in self.partitions]
            gone = tuple(n for n in batch if n not in self.partitions)
            yield PartitionBatch(tuple(Partition(n, (n,), self.partitions[n]) for n in known), gone)


def cached(source: Source, capacity: int = 1000) -> CachedCatalog:
    class Catalog:
        client = source.client
        partition_names = staticmethod(source.partition_names)

        @staticmethod
        def partitions(table: CatalogTable, names: list[str], age: float = 0.0) -> Any:
            return _Closing(source.partitions_of(names))

    return CachedCatalog(Catalog(), capacity, vouched=True)  # type: ignore[arg-type]


class _Closing:
    def __init__(self, batches: Iterator[PartitionBatch]) -> None:
        self._batches = batches

    def __iter__(self) -> _Closing:
        return self

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is under way."""


def see(catalog: CachedCatalog) -> dict[str, str]:
    names = catalog.partition_names(TABLE)
    batches = list(catalog.partitions(TABLE, names))
    assert [p.name for b in batches for p in b.partitions] == names
    return {p.name: p.location for b in batches for p in b.partitions}


def test_an_answer_overtaken_by_a_change_is_not_kept() -> None:
    source = Source()
    catalog = cached(source)
    source.put("p=1", "a")
    assert see(catalog) == {"p=1": "a"}
    source.put("p=2", "b")

    def change() -> None:
        source.before_answer = lambda: None
        source.put("p=3", "c")
        assert see(catalog).keys() == {"p=1", "p=2", "p=3"}  # somebody else asks meanwhile

    source.before_answer = change
    assert catalog.partition_names(TABLE) == ["p=1", "p=2"]  # as it was when it was asked
    assert see(catalog).keys() == {"p=1", "p=2", "p=3"}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "drop", "see", "part"]), st.integers(0, 6)), max_size=40
    ),
    st.sampled_from([3, 12, 1000]),
)
def test_what_is_seen_is_what_there_is(steps: list[tuple[str, int]], capacity: int) -> None:
    source = Source()
    catalog = cached(source, capacity)
    for number, (step, which) in enumerate(steps):
        name = f"p={which}"
        if step == "put":
            source.put(name, f"{which}/{number}")
        elif step == "drop":
            source.drop(name)
        elif step == "see":
            assert see(catalog) == source.partitions
        else:  # a scan of some partitions alone leaves the others to be fetched
            some = sorted(source.partitions)[::2]
            found = [p for b in catalog.partitions(TABLE, some) for p in b.partitions]
            assert {p.name: p.location for p in found} == {n: source.partitions[n] for n in some}
        assert catalog.weight <= capacity


def test_without_a_change_it_asks_once_for_many_threads() -> None:
    source = Source()
    catalog = cached(source)
    for i in range(20):
        source.put(f"p={i:02}", str(i))
    assert len(see(catalog)) == 20
    asked = source.asked
    threads = [threading.Thread(target=see, args=(catalog,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.asked == asked
