"""Events: which tables they change, and what happens when they cannot be told."""

from __future__ import annotations

import base64
import gzip
import json
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.kernel.errors import MetastoreUnavailable
from bridge.metastore._gen import ttypes
from bridge.metastore.notifications import EventLog, changed_tables


def event(
    number: int, kind: str, table: str | None = "t", message: str = "", form: str = ""
) -> Any:
    return ttypes.NotificationEvent(
        eventId=number,
        eventTime=0,
        eventType=kind,
        dbName="d" if table is not None else None,
        tableName=table,
        message=message,
        messageFormat=form,
    )


def altered(database: str, table: str) -> str:
    before = json.dumps({"1": {"str": table}, "2": {"str": database}})
    return json.dumps({"tableObjBeforeJson": before})


def test_what_an_event_changes() -> None:
    assert changed_tables(event(1, "INSERT")) == []
    assert changed_tables(event(1, "UPDATE_PART_COL_STAT_EVENT")) == []
    assert changed_tables(event(1, "ADD_PARTITION", "T")) == [("d", "t")]
    assert changed_tables(event(1, "DROP_DATABASE", None)) == [(None, None)]
    assert changed_tables(event(1, "SOMETHING_NEW")) == [("d", "t")]


def test_a_rename_changes_two_tables() -> None:
    packed = base64.b64encode(gzip.compress(altered("D", "Old").encode())).decode()
    for message, form in ((altered("D", "Old"), "json-0.2"), (packed, "gzip(json-2.0)")):
        found = changed_tables(event(1, "ALTER_TABLE", "new", message, form))
        assert found == [("d", "new"), ("d", "old")]


@pytest.mark.parametrize("message", ["", "{}", "[]", "x", '{"tableObjBeforeJson": "{}"}'])
@pytest.mark.parametrize("form", ["", "gzip(json-2.0)"])
def test_an_alteration_that_cannot_be_read_changes_everything(message: str, form: str) -> None:
    assert changed_tables(event(1, "ALTER_TABLE", "t", message, form)) == [(None, None)]


class Scripted(SimpleNamespace):
    """A log of events in memory: its gaps are what no server makes on demand."""

    events: list[Any]
    connections_opened = 0
    lost = False

    def get_current_notification_id(self) -> int:
        if self.lost:
            raise MetastoreUnavailable("gone", "")
        return self.events[-1].eventId if self.events else 0

    def get_next_notifications(self, after: int, limit: int) -> list[Any]:
        return [e for e in self.events if e.eventId > after][:limit]


@pytest.fixture
def log() -> tuple[EventLog, Scripted, list[tuple[str | None, str | None]]]:
    told: list[tuple[str | None, str | None]] = []
    source = Scripted(events=[event(i, "ADD_PARTITION") for i in range(1, 4)])
    followed = EventLog(source, lambda d, t: told.append((d, t)), vouched=True)  # type: ignore[arg-type]
    assert followed.catch_up()
    assert told == [(None, None)]
    told.clear()
    return followed, source, told


def test_events_are_applied_once(log: Any) -> None:
    followed, source, told = log
    source.events += [event(i, "ADD_PARTITION", f"t{i}") for i in range(4, 2500)]
    assert followed.catch_up() and followed.catch_up()
    assert told == [("d", f"t{i}") for i in range(4, 2500)]


@pytest.mark.parametrize("missing", [(4,), (5,), (4, 5, 6)])
def test_a_gap_forgets_everything(log: Any, missing: tuple[int, ...]) -> None:
    followed, source, told = log
    source.events += [event(i, "ADD_PARTITION") for i in range(4, 9) if i not in missing]
    assert followed.catch_up()
    assert (None, None) in told
    told.clear()
    assert followed.catch_up() and told == []


def test_a_database_restored_or_far_ahead_forgets_everything(log: Any) -> None:
    followed, source, told = log
    source.events = source.events[:1]
    assert followed.catch_up() and told == [(None, None)]
    source.events.append(event(100_000, "ADD_PARTITION"))
    assert followed.catch_up() and told == [(None, None)] * 2


def test_a_lost_metastore_is_not_trusted_and_starts_anew(log: Any) -> None:
    followed, source, told = log
    source.lost = True
    assert not followed.catch_up()
    source.lost = False
    assert followed.catch_up() and told == [(None, None)]


def test_an_age_saves_the_call(log: Any) -> None:
    followed, source, told = log
    source.events.append(event(4, "ADD_PARTITION"))
    assert followed.catch_up(age=60.0) and told == []
    assert followed.catch_up() and told == [("d", "t")]
