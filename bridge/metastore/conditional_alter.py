"""Alters a table only if its record is still the one on which the change was decided."""

from __future__ import annotations

import time

from bridge.kernel.errors import MetastoreFailure
from bridge.kernel.types import whole_number
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient

NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Keeps the metastore from listing directories for statistics when a record is altered."""
_CHANGED = "transient_lastDdlTime"


def alter_unless_changed(
    client: MetastoreClient,
    fresh: records.Table,
    amended: records.Table,
    pause: float | None = 0.0,
) -> bool:
    """Alters a table unless its record was altered since ``fresh`` was read; False if it was.

    The record is read again directly before, and compared in all fields; with a ``pause`` of None,
    ``fresh`` is that reading. Servers that support a condition check the time of the last change in
    the same transaction, and we write a new time. It has whole seconds: only a record that did not
    change during a ``pause`` of more than one second cannot change unnoticed within the second of
    its time.
    """
    name = fresh.dbName, fresh.tableName
    if pause is not None:
        time.sleep(pause)
        if client.get_table(*name) != fresh:
            return False
    context = dict(NO_STATISTICS)
    known = (fresh.parameters or {}).get(_CHANGED, "")
    changed_at = whole_number(known)
    if changed_at is not None:
        later = str(max(int(time.time()), changed_at + 1))
        amended.parameters = {**(amended.parameters or {}), _CHANGED: later}
        context |= {"expected_parameter_key": _CHANGED, "expected_parameter_value": known}
    try:
        client.alter_table(*name, amended, context)
    except MetastoreFailure:
        now = client.get_table(*name).parameters or {}
        if now.get(_CHANGED, "") != known:
            return False
        raise
    return True
