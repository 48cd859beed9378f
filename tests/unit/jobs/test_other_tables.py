"""Where other tables lie, also if the metastore cannot give one of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from bridge.clustering.commands.other_tables import MOST_PARTITIONS, other_tables
from bridge.clustering.publication.places import OtherTable
from bridge.kernel.errors import MetastoreFailure, MetastoreUnavailable, TableNotFound
from bridge.metastore._gen import ttypes
from bridge.metastore.client import FoundPartitions, MetastoreClient
from bridge.table.model import TableName

NAME = TableName("db", "mine")


class Records:
    """A metastore that has counted its calls, and cannot give some records."""

    def __init__(
        self,
        tables: dict[str, str | None],
        broken: dict[str, Exception],
        partitions: dict[str, list[str]] | None = None,
    ) -> None:
        self.tables, self.broken, self.calls = tables, broken, 0
        self.partitions = partitions or {}

    def get_all_databases(self) -> list[str]:
        return ["db"]

    def get_all_tables(self, database: str) -> list[str]:
        return sorted({*self.tables, *self.broken, "mine", "dropped"})

    def get_tables_by_names(self, database: str, names: Sequence[str]) -> list[ttypes.Table]:
        self.calls += 1
        for name in names:
            if name in self.broken:
                raise self.broken[name]
        return [self._record(name) for name in names if name in self.tables]

    def get_table(self, database: str, name: str) -> ttypes.Table:
        self.calls += 1
        if name in self.broken:
            raise self.broken[name]
        if name not in self.tables:
            raise TableNotFound(name)
        return self._record(name)

    def get_database(self, name: str) -> ttypes.Database:
        return ttypes.Database(name=name, locationUri="s3a://b/warehouse/db.db")

    def _record(self, name: str) -> ttypes.Table:
        place = self.tables[name]
        keys = [ttypes.FieldSchema("day", "string")] if name in self.partitions else []
        return ttypes.Table(
            tableName=name,
            dbName="db",
            sd=ttypes.StorageDescriptor(location=place),
            partitionKeys=keys,
        )

    def get_partition_names(self, database: str, table: str, limit: int = -1) -> list[str]:
        self.calls += 1
        return [f"day={i}" for i in range(len(self.partitions[table]))][:limit]

    def get_partition_locations(
        self, database: str, table: str, names: Sequence[str]
    ) -> FoundPartitions:
        self.calls += 1
        if "sick" in self.partitions[table]:
            raise MetastoreFailure("NullPointerException")
        places = [self.partitions[table][int(name.partition("=")[2])] for name in names]
        found = [ttypes.Partition(sd=ttypes.StorageDescriptor(location=place)) for place in places]
        return FoundPartitions(tuple(names), tuple(found), ())


def others(records: Records) -> dict[str, OtherTable]:
    client = cast(MetastoreClient, cast(Any, records))
    tables = other_tables(client, NAME, lambda place: place.startswith("s3://b/mine/"))
    return {each.name: each for each in tables}


def found(records: Records) -> dict[str, tuple[str, bool]]:
    return {name: (each.location, each.unreadable) for name, each in others(records).items()}


def test_a_call_for_a_hundred_tables() -> None:
    many: dict[str, str | None] = {f"t{i:03}": f"s3a://b/x/{i}" for i in range(250)}
    records = Records({**many, "view": None, "odd": "no such thing"}, {})
    places = found(records)
    assert len(places) == 251 and places["db.t007"] == ("s3://b/x/7", False)
    assert records.calls == 3


@pytest.mark.parametrize("place", ["no such thing", "s3a://b/x/../mine", "file:/a/../b"])
def test_a_location_that_is_not_known_here_may_be_anywhere(place: str) -> None:
    """Hive reads a path with .. in it."""
    assert found(Records({"odd": place}, {})) == {"db.odd": ("s3://b/warehouse/db.db/odd", True)}


@pytest.mark.parametrize(
    "error", [MetastoreFailure("NullPointerException"), MetastoreUnavailable("closed")]
)
@pytest.mark.rule("36")
def test_a_record_that_cannot_be_read_stops_nothing(error: Exception) -> None:
    records = Records({"good": "s3a://b/good"}, {"Broken": error})
    assert found(records) == {
        "db.good": ("s3://b/good", False),
        "db.Broken": ("s3://b/warehouse/db.db/broken", True),
    }


def test_partitions_that_lie_near_are_found() -> None:
    places = [f"s3a://b/far/{i}" for i in range(1200)] + ["s3a://b/mine/day=1"]
    tables: dict[str, str | None] = {
        "far": "s3a://b/far",
        "big": "s3a://b/big",
        "odd": "s3a://b/odd",
        "sick": "s3a://b/s",
    }
    partitions = {
        "far": places,
        "odd": ["s3a://b/mine/day=2", "s3a://b/far/../mine/day=1"],
        "big": ["s3a://b/mine/x"] * (MOST_PARTITIONS + 1),
        "sick": ["sick"],
    }
    records = Records(tables, {}, partitions)
    made = others(records)
    assert made["db.far"].partitions == ("s3://b/mine/day=1",) and not made["db.far"].unasked
    assert made["db.big"].partitions == () and made["db.big"].unasked
    assert made["db.odd"].partitions == ("s3://b/mine/day=2",) and made["db.odd"].unreadable
    assert made["db.sick"].unreadable and not made["db.far"].unreadable
    assert records.calls == 1 + 4 + 1 + 2 + 2  # tables; far; big; odd; sick


@pytest.mark.rule("36")
def test_a_metastore_that_is_gone_stops_it() -> None:
    class Gone(Records):
        def get_all_databases(self) -> list[str]:
            if self.calls:
                raise MetastoreUnavailable("gone")
            return ["db"]

    with pytest.raises(MetastoreUnavailable):
        found(Gone({}, {"x": MetastoreUnavailable("gone")}))
