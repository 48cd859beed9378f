"""Where other tables lie, also if the metastore cannot give one of their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from bridge.errors import MetastoreFailure, MetastoreUnavailable, TableNotFound
from bridge.jobs.other_tables import other_tables
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName

NAME = TableName("db", "mine")


class Records:
    """A metastore that has counted its calls, and cannot give some records."""

    def __init__(self, tables: dict[str, str | None], broken: dict[str, Exception]) -> None:
        self.tables, self.broken, self.calls = tables, broken, 0

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
        return ttypes.Table(
            tableName=name, dbName="db", sd=ttypes.StorageDescriptor(location=place)
        )


def found(records: Records) -> dict[str, tuple[str, bool]]:
    tables = other_tables(cast(MetastoreClient, cast(Any, records)), NAME)
    return {each.name: (each.location, each.unreadable) for each in tables}


def test_a_call_for_a_hundred_tables() -> None:
    many: dict[str, str | None] = {f"t{i:03}": f"s3a://b/x/{i}" for i in range(250)}
    records = Records({**many, "view": None, "odd": "no such thing"}, {})
    places = found(records)
    assert len(places) == 250 and places["db.t007"] == ("s3://b/x/7", False)
    assert records.calls == 3


@pytest.mark.parametrize(
    "error", [MetastoreFailure("NullPointerException"), MetastoreUnavailable("closed")]
)
def test_a_record_that_cannot_be_read_stops_nothing(error: Exception) -> None:
    records = Records({"good": "s3a://b/good"}, {"Broken": error})
    assert found(records) == {
        "db.good": ("s3://b/good", False),
        "db.Broken": ("s3://b/warehouse/db.db/broken", True),
    }


def test_a_metastore_that_is_gone_stops_it() -> None:
    class Gone(Records):
        def get_all_databases(self) -> list[str]:
            if self.calls:
                raise MetastoreUnavailable("gone")
            return ["db"]

    with pytest.raises(MetastoreUnavailable):
        found(Gone({}, {"x": MetastoreUnavailable("gone")}))
