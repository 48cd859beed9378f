"""What a sync that stays makes of the metastore's events."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import BridgeError, MetastoreFailure, TableNotFound
from bridge.metastore._gen import ttypes
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncRequest
from bridge.sync.table import TableSync
from bridge.sync.watch import Events, TouchedTables
from tests.support.sync_lake import KEY_COLUMNS, NAME, SyncLake, Write


def event(number: int, kind: str, table: str, message: str = "{}") -> ttypes.NotificationEvent:
    return ttypes.NotificationEvent(
        eventId=number, eventTime=0, eventType=kind, dbName="d", tableName=table, message=message
    )


class Pages:
    """A metastore that fails between two pages, once."""

    fails = True

    def get_next_notifications(self, after: int, limit: int) -> list[Any]:
        if after == 0:
            return [event(1, "ALTER_TABLE", "a")]
        if self.fails:
            self.fails = False
            raise MetastoreFailure("gone for a moment", "wait")
        return [event(2, "ADD_PARTITION", "b")] if after == 1 else []


def test_events_are_told_again_if_the_metastore_fails_between_two_pages() -> None:
    events = Events(Pages())  # type: ignore[arg-type]
    with pytest.raises(MetastoreFailure):
        events.find_touched()
    assert events.find_touched().changed == {"d.a", "d.b"} and events.last == 2


def test_a_renamed_table_is_dropped_under_its_old_name() -> None:
    before = json.dumps({"1": {"str": "old"}, "2": {"str": "d"}})
    found = TouchedTables()
    found.take(event(1, "ALTER_TABLE", "new", json.dumps({"tableObjBeforeJson": before})))
    assert found.dropped == {"d.old"} and found.changed == {"d.new"}


@pytest.mark.rule("44")
def test_a_table_that_is_dropped_is_not_created_again_by_the_same_job(tmp_path: Path) -> None:
    """Between two of its runs, and before any call of one."""
    at = 0
    while True:
        lake = SyncLake(tmp_path / str(at))
        lake.take(Write("p=1/q=1", "first"))
        request = SyncRequest(NAME, str(lake.root), keys=KEY_COLUMNS)

        def run(lake: SyncLake = lake, request: SyncRequest = request) -> None:
            TableSync(lake.metastore, LocalStorage(), request, lake.settings).run()

        def drop(lake: SyncLake = lake) -> None:
            lake.metastore.record = None
            lake.metastore.partitions.clear()

        run()
        assert lake.metastore.record is not None
        if at == 0:
            drop()
        calls: list[str] = []

        def interfere(
            method: str, moment: str, at: int = at, calls: list[str] = calls, drop: Any = drop
        ) -> None:
            if moment == "before":
                calls.append(method)
                if len(calls) == at:
                    drop()

        lake.take(Write("p=2/q=1", "longer"))
        lake.metastore.interfere = interfere
        with contextlib.suppress(BridgeError, AssertionError):  # the model has no table to ask
            run()
        lake.metastore.interfere = lambda method, moment: None
        if len(calls) < at:
            break
        for _ in range(2):
            assert lake.metastore.record is None, (at, calls)
            with pytest.raises(TableNotFound, match="not created again"):
                run()
        at += 1
    assert at > 5
