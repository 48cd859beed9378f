"""list_indexed_tables: which tables a hook in Hive may read through an index."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from bridge.formats.registry import hive_hooks
from bridge.kernel.errors import TableNotFound
from bridge.service import indexed_tables
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.table.model import CatalogTable, TableName
from bridge.table.registry import table_hooks
from tests.support.service import Service


def among(service: Service, *names: str) -> dict[str, str]:
    found = service.handler.list_indexed_tables(list(names), PROTOCOL)
    assert found.protocol == PROTOCOL and found.input_formats == {**hive_hooks(), **table_hooks()}
    assert not set(found.undecided) & set(found.locations)
    locations: dict[str, str] = found.locations
    return locations


def test_tables_with_an_index_are_told_where_they_lie(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = service.lake
    known = {
        "t": lake.table(),
        "objects": replace(lake.table(), format="rcfile"),
        "versions": replace(lake.table(), table_format="toy"),
    }

    def table(name: TableName, age: float = 0.0) -> CatalogTable:
        if name.table not in known:
            raise TableNotFound(f"there is no {name}", "look again")
        return replace(known[name.table], name=name)

    monkeypatch.setattr(lake, "table", table)
    names = [f"db.{name}" for name in (*known, "none")]
    assert among(service, *names) == {"db.t": lake.location}
    assert among(service) == {}


@pytest.mark.parametrize("name", ["", "t", "db.", ".t"])
def test_what_names_no_table(service: Service, name: str) -> None:
    with pytest.raises(ttypes.BridgeFailure, match=r"schema\.table"):
        among(service, name)


def test_too_many_tables(service: Service) -> None:
    with pytest.raises(ttypes.BridgeFailure, match="1001 tables"):
        among(service, *["db.t"] * 1001)


def test_a_table_that_takes_long_is_undecided_and_asked_about_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_tables, "_PATIENCE", 0.05)
    goes_on, asked, own = threading.Event(), [], service.lake.table

    def slow(name: TableName, age: float = 0.0) -> CatalogTable:
        asked.append(name)
        goes_on.wait(30.0)
        return own(name, age)

    monkeypatch.setattr(service.lake, "table", slow)
    assert among(service, "db.t") == among(service, "db.t") == {}
    assert service.handler.list_indexed_tables(["db.t"], PROTOCOL).undecided == ["db.t"]
    assert len(asked) == 1
    goes_on.set()
    monkeypatch.setattr(indexed_tables, "_PATIENCE", 30.0)
    decided = service.handler.list_indexed_tables(["db.t"], PROTOCOL)
    assert set(decided.locations) == {"db.t"} and decided.undecided == []


@pytest.mark.rule("36")
def test_a_table_whose_index_is_damaged_hides_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = service.lake.table

    def table(name: TableName, age: float = 0.0) -> CatalogTable:
        if name.table == "broken":
            raise ValueError("nobody expected this")
        return own(name, age)

    monkeypatch.setattr(service.lake, "table", table)
    assert set(among(service, "db.broken", "db.t")) == {"db.t"}


def test_many_slow_tables_hold_up_no_statistics(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_tables, "_PATIENCE", 0.05)
    goes_on, own = threading.Event(), service.lake.table

    def slow(name: TableName, age: float = 0.0) -> CatalogTable:
        if name.schema == "slow":
            goes_on.wait(30.0)
        return own(name, age)

    monkeypatch.setattr(service.lake, "table", slow)
    try:
        assert among(service, *[f"slow.t{i}" for i in range(100)]) == {}
        assert service.handler._answers.submit(int).result(10.0) == 0
    finally:
        goes_on.set()
