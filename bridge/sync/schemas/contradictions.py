"""Options of ``sync`` that contradict the declaration of a table that exists: they are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import UNKNOWN, whole_number
from bridge.sync.request import SyncRequest
from bridge.sync.writing.metastore import RegisteredTable
from bridge.table.hive_properties import DELIMITER, HEADER_LINES
from bridge.table.model import Column

_KEYS_REMEDY = "a table's keys cannot be changed: leave --partition-keys out, or register another"


def refuse_contradictions(request: SyncRequest, table: RegisteredTable) -> None:
    """Errors: InvalidRequest: an option says otherwise than the table."""
    if request.format not in (None, table.layout.format):
        raise InvalidRequest(
            f"{request.name} is stored as {table.layout.format}, not {request.format}",
            "leave --format out, or register the directory under another name",
        )
    for option, held in _contradictions(request, table):
        raise InvalidRequest(
            f"{request.name} exists, and {option} contradicts it: {held}",
            f"leave {option.split()[0]} out; to change the table: ALTER TABLE, or drop it (its "
            "files stay) and sync again",
        )
    types = {k.name.lower(): k.type for k in table.keys}
    for key in request.keys:
        type = types.get(key.name.lower(), UNKNOWN)
        if UNKNOWN not in (key.type, type) and key.type != type:
            raise InvalidRequest(
                f"{request.name} has the partition key {key.name} {type}, not {key.type}",
                _KEYS_REMEDY,
            )


def refuse_other_keys(request: SyncRequest, known: Sequence[str]) -> None:
    """Errors: InvalidRequest: the user names other keys than the table has."""
    keys = [k.name.lower() for k in request.keys]
    if keys and keys != list(known):
        raise InvalidRequest(
            f"{request.name} has the partition keys {', '.join(known) or 'none'}, "
            f"not {', '.join(keys)}",
            _KEYS_REMEDY,
        )


def _contradictions(request: SyncRequest, table: RegisteredTable) -> Iterator[tuple[str, str]]:
    """Each option, and what the table says instead."""
    format, serde = table.layout.format, table.record.sd.serdeInfo
    held = {**((serde.parameters if serde is not None else None) or {}), **table.properties}
    if request.header and held.get(HEADER_LINES, "").strip() in ("", "0"):
        yield "--header", f"{HEADER_LINES} is 0"
    if request.delimiter is not None:
        delimiter = {
            "csv": held.get("separatorChar", ","),
            "text": _character(held.get(DELIMITER) or held.get("serialization.format", "1")),
        }.get(format)
        if delimiter is None:
            yield "--delimiter", f"it is stored as {format}"
        elif delimiter != _character(request.delimiter):
            yield f"--delimiter {request.delimiter!r}", f"its delimiter is {delimiter!r}"
    asked = _spelled(request.columns)
    if asked != _spelled(table.columns)[: len(asked)]:  # others may have been appended since
        columns = ", ".join(f"{c.name} {c.type}" for c in table.columns[:20])
        yield "--columns", f"its columns are {columns}"


def _character(text: str) -> str:
    """What separates fields, as LazySimpleSerDe takes it: a number is a character's code."""
    code = whole_number(text)
    return chr(code) if code is not None and code < 128 else text


def _spelled(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(c.name.lower(), str(c.type)) for c in columns]
