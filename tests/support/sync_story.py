"""A table of one metastore, and rivals: the world of cases in which others change it."""

from __future__ import annotations

import itertools
from pathlib import Path

from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.servers.process import LOOPBACK
from tests.support.metastore_proxy import MetastoreProxy
from tests.support.sync_rivals import Outcome, Rivals, sync
from tests.support.sync_world import DDL_TIME, KEYS, Values, World, place_of

numbers = itertools.count()


class Story:
    """A table of one metastore, and rivals."""

    def __init__(self, port: int, base: Path) -> None:
        self.uri = f"thrift://{LOOPBACK}:{port}"
        self.client = MetastoreClient(self.uri)
        self.world = World(base, self.client, f"others{next(numbers)}", _never())
        self.rivals = Rivals(self.world, self.uri)
        self.proxy = MetastoreProxy(port)

    def __enter__(self) -> Story:
        return self

    def __exit__(self, *error: object) -> None:
        self.proxy.__exit__(*error)
        self.client.close()

    @property
    def root(self) -> Path:
        return self.world.root

    def write(self, *directories: str, kind: str = "first") -> None:
        for directory in directories:
            self.world.write(self.root / directory, kind)

    def create(self, keys: str, origin: str = "hive") -> None:
        self.world.keys = KEYS[keys]
        self.world.create(origin)

    def sync(self, *, through: bool = False, **options: object) -> Outcome:
        ended = sync(self.world, self.proxy.uri if through else self.uri, **options)
        if ended.error is not None and not options.get("refused"):
            raise ended.error
        return ended

    def places(self) -> dict[Values, Path]:
        return {v: place_of(p) for v, p in self.world.partitions().items()}

    def alter(self, values: Values, **changes: object) -> None:
        """Another's ALTER TABLE ... PARTITION: location, or properties."""
        record = self.world.partitions()[values]
        for what, value in changes.items():
            if what in ("location", "place"):
                record.sd.location = f"file:{value}" if what == "location" else value
            else:
                record.parameters[what] = str(value)
        self.alter_record(record)

    def alter_record(self, record: ttypes.Partition) -> None:
        self.client.alter_partitions(
            self.world.database, "t", [record], {"DO_NOT_UPDATE_STATS": "true"}
        )

    def alter_table(self, **properties: str) -> None:
        record = self.world.table()
        assert record is not None
        record.parameters |= properties
        record.parameters.pop(DDL_TIME, None)
        self.client.alter_table(self.world.database, "t", record)


def _never() -> object:
    class Never:
        def randrange(self, of: int) -> int:
            return of - 1

    return Never()
