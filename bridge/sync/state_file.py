"""Where the state of a record's last sync lies: a file beside the index.

The record itself names the file by a token, as a mark that is written once. Runs that change
partitions alone do not write to the record, so nothing that others write to it is lost.

The law: a state is that of one record. One that is lost, damaged, or of another record is none, and
costs a comparison of everything.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from dataclasses import dataclass

from bridge.index.generations.replacements import location_before_publishing
from bridge.kernel.errors import BridgeError
from bridge.metastore import records
from bridge.storage.port import Storage
from bridge.sync.state import STATE_PROPERTY

log = logging.getLogger(__name__)
_TOKEN = re.compile(r"[0-9a-f]{32}")


def new_token() -> str:
    return uuid.uuid4().hex


def token_of(record: records.Table | None) -> str | None:
    """The token of a record; None if it has none."""
    token = (record.parameters or {}).get(STATE_PROPERTY, "") if record is not None else ""
    return token if _TOKEN.fullmatch(token) else None


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The states of the records of one table.

    Attributes:
        root: canonical URI of the table's root.
        configured: canonical URI below which all states lie; empty: below the table.
    """

    storage: Storage
    root: str
    configured: str = ""

    def read(self, record: records.Table | None) -> str | None:
        """The state as it was written for this record; None if there is none."""
        written_for, state = self._written(record)
        if record is None or written_for != _identity(record):
            return None
        return state if isinstance(state, str) else None

    def is_of_another(self, record: records.Table) -> bool:
        """Whether the record's token came with a copy of another's properties, or of its old name.

        The other one may still use it: this record needs a token of its own.
        """
        written_for, _ = self._written(record)
        return written_for is not None and written_for != _identity(record)

    def _written(self, record: records.Table | None) -> tuple[object, object]:
        """The identity of the record that the file is of, and its state; None without a file."""
        uri = self._uri(record)
        if uri is None:
            return None, None
        try:
            found = json.loads(self.storage.read(uri))
            return found["record"], found["state"]
        except (BridgeError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("%s is not used: %s", uri, error)
            return None, None

    def write(self, record: records.Table, state: str) -> str | None:
        """Writes the state of a record; returns why that failed, or None."""
        uri = self._uri(record)
        if uri is None:
            return None
        text = json.dumps({"record": _identity(record), "state": state})
        try:
            self.storage.put(uri, text.encode())
        except BridgeError as error:
            return f"the state of the sync cannot be written ({error.message}): set index.root"
        return None

    def _uri(self, record: records.Table | None) -> str | None:
        token = token_of(record)
        if token is None:
            return None
        root = self.configured or f"{location_before_publishing(self.root)}/.skipbridge"
        return f"{root}/sync/{token}.json"


def _identity(record: records.Table) -> str:
    """Properties may be copied to another record, and tools copy the time of its creation, too."""
    return f"{token_of(record)} {record.createTime} {record.dbName}.{record.tableName}"
