"""Follows a metastore's notification events to detect what has changed.

A metastore with ``DbNotificationListener`` among its transactional listeners records each
alteration in the same transaction, under numbers without gaps. If the newest number is the last
known one, nothing has changed; otherwise the events in between name the changes. This holds only if
every metastore process that writes to the database has the listener. Each address in
``metastore.uri`` is asked for its listeners; the operator must vouch for other processes.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bridge.kernel.errors import BridgeError
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.metastore.connection import parse_addresses

Forget = Callable[[str | None, str | None], None]
"""Called with the database and the table of a change; None stands for all."""

_LISTENER = "DbNotificationListener"
_LISTENER_KEYS = (
    "metastore.transactional.event.listeners",
    "hive.metastore.transactional.event.listeners",
)
_RECHECK_SECONDS = 60.0
_PAGE = 1000
_FARTHEST = 20_000
_MOMENTS = ("Before", "After")
_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
    binascii.Error,
)
# These events change neither a table's definition nor its set of partitions.
_HARMLESS = frozenset(
    {
        "INSERT",
        "OPEN_TXN",
        "COMMIT_TXN",
        "ABORT_TXN",
        "ALLOC_WRITE_ID_EVENT",
        "ACID_WRITE_EVENT",
        "BATCH_ACID_WRITE_EVENT",
        "UPDATE_TBL_COL_STAT_EVENT",
        "DELETE_TBL_COL_STAT_EVENT",
        "UPDATE_PART_COL_STAT_EVENT",
        "UPDATE_PART_COL_STAT_EVENT_BATCH",
        "DELETE_PART_COL_STAT_EVENT",
    }
)


class EventLog:
    """The events of one metastore, reported to a cache; thread-safe.

    Args:
        client: fetches the events.
        forget: called with each change.
        vouched: every writer records events, whatever the addresses report.
    """

    def __init__(self, client: MetastoreClient, forget: Forget, *, vouched: bool = False) -> None:
        self._client = client
        self._forget = forget
        self._vouched = vouched
        self._lock = threading.Lock()
        self._position: int | None = None
        self._checked = float("-inf")
        self._recording = False
        self._asked = float("-inf")
        self._opened = -1

    def catch_up(self, age: float = 0.0) -> bool:
        """Reports every event recorded until now, or until ``age`` seconds ago.

        Returns:
            True if everything still cached matches the metastore. False if that is unknown: events
            are not recorded, or the metastore does not answer.
        """
        wanted = time.monotonic() - age
        with self._lock:
            # A check that began after this call covers it, too.
            if self._checked >= wanted and self._recording:
                return True
            started = time.monotonic()
            try:
                if self._records():
                    self._apply()
                    self._checked = started
                    return True
            except BridgeError:
                pass  # the next request meets the same error, with its code
            self._position = None
            return False

    def _apply(self) -> None:
        current = self._client.get_current_notification_id()
        position = self._position
        if position is None or not position <= current <= position + _FARTHEST:
            # First call, a restored database, or too far behind: starting over is cheaper.
            self._forget(None, None)
            self._position = current
            return
        while position < current:
            events = self._client.get_next_notifications(position, _PAGE)
            numbers = [e.eventId for e in events]
            if not events or numbers != list(range(position + 1, position + 1 + len(events))):
                # A gap: the metastore no longer keeps these events.
                self._forget(None, None)
                position = current
                break
            for event in events:
                for database, table in changed_tables(event):
                    self._forget(database, table)
            position = numbers[-1]
        self._position = position

    def _records(self) -> bool:
        """Whether alterations are recorded; checked again after each new connection."""
        opened = self._client.connections_opened
        old = time.monotonic() - self._asked > _RECHECK_SECONDS
        if self._vouched:
            self._recording = True
        elif old or (self._recording and opened != self._opened):
            self._recording = all(map(self._listens, parse_addresses(self._client.uris)))
            self._asked = time.monotonic()
            self._opened = self._client.connections_opened
        return self._recording

    def _listens(self, address: object) -> bool:
        settings = replace(self._client.settings, connect_timeout=1.0, retry_deadline=0.0)
        with MetastoreClient(str(address), settings) as one:
            return any(_LISTENER in one.get_config_value(key, "") for key in _LISTENER_KEYS)


def changed_tables(event: ttypes.NotificationEvent) -> list[tuple[str | None, str | None]]:
    """The databases and tables whose partitions or definition an event may have changed."""
    if event.eventType in _HARMLESS:
        return []
    database = event.dbName.lower() if event.dbName else None
    table = event.tableName.lower() if event.tableName else None
    if database is None or event.eventType != "ALTER_TABLE":
        return [(database, table)]
    # The event has only one name, but a renamed table has two.
    before = _name_before(event)
    return [(None, None)] if before is None else [(database, table), before]


def _name_before(event: ttypes.NotificationEvent) -> tuple[str, str] | None:
    """Database and table before an alteration; None if the message does not say."""
    try:
        table: dict[str, Any] = json.loads(_message(event)["tableObjBeforeJson"])
        # Thrift's JSON: field number, then type and value.
        return table["2"]["str"].lower(), table["1"]["str"].lower()
    except _MALFORMED:
        return None


def leaves_data_alone(event: ttypes.NotificationEvent) -> bool:
    """Whether a partition was altered in its parameters alone; False if the message does not say.

    Its values, columns, location and classes are the same.
    """
    try:
        message = _message(event)
        before, after = (json.loads(message[f"partitionObj{when}Json"]) for when in _MOMENTS)
        old, new = before["6"]["rec"], after["6"]["rec"]
        same = all(old.get(field) == new.get(field) for field in ("1", "2", "3", "4", "7"))
        return bool(same and before["1"] == after["1"])
    except _MALFORMED:
        return False


def _message(event: ttypes.NotificationEvent) -> dict[str, Any]:
    text = event.message
    if (event.messageFormat or "").startswith("gzip"):
        text = gzip.decompress(base64.b64decode(text)).decode()
    found: dict[str, Any] = json.loads(text)
    return found
