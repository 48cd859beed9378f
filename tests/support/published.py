"""Publishing and cleaning of a `Lake`, in this process, also by runs that die."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.clustering.cleaning import Cleaner, CleanReport
from bridge.clustering.publishing import Publisher, PublishReport
from bridge.index.replacements import forget_replacements, read_replacements, replacements_of
from bridge.index.store import now_micros
from bridge.storage.port import FileStat
from tests.support.index_builds import Killed
from tests.support.lake import Lake

_MUTATIONS = frozenset({"put", "put_if_absent", "delete", "copy", "move", "distrust"})


class Life:
    """How long a run lives.

    Args:
        last: the mutation at which it dies, from 1; 0: it does not.
        done: whether that mutation is still made.
    """

    def __init__(self, last: int = 0, *, done: bool = False) -> None:
        self.last, self.done, self.mutations = last, done, 0

    def of(self, thing: Any) -> Any:
        """The storage, or the places, of this run."""
        return _Mortal(thing, self)


@dataclass(frozen=True)
class _Mortal:
    thing: Any
    life: Life

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.thing, name)
        if name not in _MUTATIONS:
            return method

        def mutate(*arguments: Any) -> Any:
            life = self.life
            life.mutations += 1
            if life.last and life.mutations > life.last:
                raise Killed
            if life.mutations == life.last and not life.done:
                raise Killed
            result = method(*arguments)
            if life.mutations == life.last:
                raise Killed
            return result

        return mutate


@dataclass(frozen=True)
class LakePlaces:
    """The metastore of a lake; implements `Places`.

    Attributes:
        tables: locations of other tables by name.
    """

    lake: Lake
    tables: dict[str, str] = field(default_factory=dict)

    def all(self) -> dict[str, str]:
        return {p.name: p.location for p in self.lake.all_partitions()}

    def of(self, partition: str) -> str | None:
        return self.all().get(partition)

    def move(self, partition: str, old: str, new: str) -> bool:
        if self.of(partition) != old:
            return False
        self.lake.locations[partition] = Path(new.removeprefix("file://"))
        return True

    def others(self) -> dict[str, str]:
        return self.tables

    def distrust(self, partition: str) -> None:
        """There are no statistics."""


def published(lake: Lake, life: Life | None = None, *, refresh: bool = True) -> PublishReport:
    """What `skipbridge cluster publish` does."""
    life = life or Life()
    storage = life.of(lake.storage)
    store = lake.store(storage)
    manifest = store.latest()
    groups = [] if manifest is None else replacements_of(read_replacements(store, manifest))
    publisher = Publisher(
        lake.table(), storage, life.of(LakePlaces(lake)), recursive=lake.recursive
    )
    report = publisher.run(groups)
    if refresh and manifest is not None:
        lake.build(storage)
        gone = set(report.published)
        forget_replacements(store, lambda group: group.partition not in gone)
    return report


def cleaned(
    lake: Lake, life: Life | None = None, *, older_than: float = -5.0, dry_run: bool = False
) -> CleanReport:
    """What `skipbridge cluster clean` does; by default without a retention."""
    life = life or Life()
    store = lake.store(life.of(lake.storage))
    before = now_micros() - int(older_than * 1e6)
    places = LakePlaces(lake)
    return Cleaner(
        lake.table(), store, places, before, recursive=lake.recursive, dry_run=dry_run
    ).run()


def stat(lake: Lake, path: Path) -> FileStat:
    found = lake.storage.stat(f"file://{path}")
    assert found is not None
    return found
