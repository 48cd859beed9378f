"""What a sync that stays makes of the metastore's events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.errors import MetastoreFailure
from bridge.jobs.sync.watch import Events, Touched
from bridge.metastore._gen import ttypes


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
        events.touched()
    assert events.touched().changed == {"d.a", "d.b"} and events.last == 2


def test_a_renamed_table_is_dropped_under_its_old_name() -> None:
    before = json.dumps({"1": {"str": "old"}, "2": {"str": "d"}})
    found = Touched()
    found.take(event(1, "ALTER_TABLE", "new", json.dumps({"tableObjBeforeJson": before})))
    assert found.dropped == {"d.old"} and found.changed == {"d.new"}
