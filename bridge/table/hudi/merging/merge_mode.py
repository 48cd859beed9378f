"""Which of two versions of a row counts in a Hudi table, as its properties tell it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

_MODEL = "org.apache.hudi.common.model."
_LATEST = _MODEL + "OverwriteWithLatestAvroPayload"
_BY_ORDER = (_MODEL + "DefaultHoodieRecordPayload", _MODEL + "EventTimeAvroPayload")
_BY_ORDER_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_LATEST_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_PAYLOAD_ID = "00000000-0000-0000-0000-000000000000"
"""The strategy that leaves it to the payload class."""


class MergeMode(StrEnum):
    """Which of two records with one key is kept. CUSTOM: a class of the table's own decides."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


def text_of(properties: Mapping[str, str], *names: str) -> str:
    """The first of these properties that is set, without blanks around it; else empty."""
    return next((properties[name].strip() for name in names if properties.get(name)), "")


def fields_of(text: str) -> tuple[str, ...]:
    """The parts of a list that commas separate."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def payload_class(version: int, properties: Mapping[str, str]) -> str:
    """The full name of the payload class; empty: not said. From version 9 on the legacy one."""
    payload = text_of(properties, "hoodie.compaction.payload.class")
    if version >= 9:
        payload = payload or text_of(properties, "hoodie.table.legacy.payload.class")
    return payload.replace("com.uber.hoodie", "org.apache.hudi")


def merge_strategy(properties: Mapping[str, str]) -> str:
    """The id of the merge strategy; empty: not said."""
    return text_of(
        properties, "hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy"
    )


def ordering_fields(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The fields by which EVENT_TIME_ORDERING compares."""
    return fields_of(
        text_of(properties, "hoodie.table.ordering.fields", "hoodie.table.precombine.field")
    )


def partial_update(properties: Mapping[str, str]) -> str:
    """The mode of partial updates; empty: none."""
    said = text_of(properties, "hoodie.table.partial.update.mode")
    return "" if said == "NONE" else said


def merge_mode(version: int, properties: Mapping[str, str]) -> MergeMode:
    """The mode of a table; CUSTOM also where it is not sure.

    From version 8 on the writer records the mode; where it did not, the strategy comes first, then
    the payload class. Version 6 has no such property: there the payload class decides, which is
    OverwriteWithLatestAvroPayload if nothing is said.
    """
    payload, strategy = payload_class(version, properties), merge_strategy(properties)
    if version < 8:
        if strategy not in ("", _BY_ORDER_ID, _LATEST_ID, _PAYLOAD_ID):
            return MergeMode.CUSTOM
        if payload or strategy in ("", _PAYLOAD_ID):
            return _of_payload(payload or _LATEST)
        return _of_strategy(strategy)
    said = text_of(properties, "hoodie.record.merge.mode").upper()
    if said:
        return MergeMode(said) if said in MergeMode.__members__ else MergeMode.CUSTOM
    if strategy or payload:
        return _of_strategy(strategy) if strategy else _of_payload(payload)
    if ordering_fields(properties):
        return MergeMode.EVENT_TIME_ORDERING
    return MergeMode.COMMIT_TIME_ORDERING


def _of_payload(payload: str) -> MergeMode:
    if payload == _LATEST:
        return MergeMode.COMMIT_TIME_ORDERING
    return MergeMode.EVENT_TIME_ORDERING if payload in _BY_ORDER else MergeMode.CUSTOM


def _of_strategy(strategy: str) -> MergeMode:
    if strategy == _BY_ORDER_ID:
        return MergeMode.EVENT_TIME_ORDERING
    return MergeMode.COMMIT_TIME_ORDERING if strategy == _LATEST_ID else MergeMode.CUSTOM
