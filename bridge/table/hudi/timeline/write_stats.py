"""Decodes the write statistics in Avro bodies of commits, more than twice as fast as fastavro.

A statistic has about thirty fields, of which four are wanted, and a large commit has thousands of
statistics. The schema in the file is compiled to steps: runs of numbers are passed over by one
regular expression, and everything else by what its schema says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from bridge.formats.avro.skipping import Skip, count_at, length_at, number_at, skipper, text_at

Stat = tuple[str | None, str | None, int | None, int | None]
"""The path, the previous commit, the size in bytes and the offset of a log."""
_WANTED = ("path", "prevCommit", "fileSizeInBytes", "logOffset")
_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_Step = tuple[int, re.Pattern[bytes] | None, tuple[Any, ...]]
"""Numbers: their pattern, and which values its groups are. A text: which value it is, or -1. Other
fields: how many they are, and how each is passed over."""
_NULLS = bytes(64)
_FEW, _LEAST = 4096, 16
"""Statistics of any size; bytes of one of more, for Hudi's have more than twenty fields."""


class StatsDecoder:
    """Decodes maps from partition to write statistics.

    Args:
        schema: of a statistic, an Avro record.

    Errors:
        ValueError, KeyError, TypeError: the schema is not one of write statistics.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        names: dict[str, Skip] = {}
        fields = schema["fields"]
        kinds = {field["name"]: _kind(field["type"]) for field in fields}
        if [kinds[name] for name in _WANTED] != ["text", "text", "number", "number"]:
            raise ValueError("its statistics have other fields")
        self._steps: list[_Step] = []
        for kind, run in groupby(fields, lambda field: kinds[field["name"]]):
            found = list(run)
            if kind == "number":
                self._steps.append(_numbers([field["name"] for field in found]))
            elif kind == "text":
                for field in found:
                    name = field["name"]
                    self._steps.append((_WANTED.index(name) if name in _WANTED else -1, None, ()))
            else:
                for begin in range(0, len(found), len(_NULLS)):
                    part = found[begin : begin + len(_NULLS)]
                    skips = tuple(skipper(field["type"], names) for field in part)
                    nullable = all(_starts_with_null(field["type"]) for field in part)
                    self._steps.append((len(skips) if nullable else -1, None, skips))

    def decode(self, data: bytes, at: int) -> tuple[dict[str, list[Stat]], int]:
        """The statistics of each partition, and the position after the map.

        Errors:
            IndexError, ValueError: the data is cut or damaged.
        """
        found: dict[str, list[Stat]] = {}
        total, most = 0, _FEW + len(data) // _LEAST
        while True:
            entries, at = count_at(data, at)
            if not entries:
                return found, at
            total += entries
            for _ in range(entries):
                partition, at = text_at(data, at)
                stats = found.setdefault(partition, [])
                while True:
                    number, at = count_at(data, at)
                    total += number
                    if total > most:
                        raise ValueError(f"{len(data)} bytes state {total} statistics")
                    if not number:
                        break
                    for _ in range(number):
                        at = self._stat(data, at, stats)

    def _stat(self, data: bytes, at: int, stats: list[Stat]) -> int:
        values: list[Any] = [None, None, None, None]
        for place, pattern, skips in self._steps:
            if pattern is not None:
                match = pattern.match(data, at)
                if match is None:
                    raise ValueError("a number of a statistic is cut")
                at = match.end()
                for group, raw in zip(skips, match.groups(), strict=True):
                    if len(raw) > 1:
                        values[group] = number_at(raw, 1)[0]
            elif skips:
                # Most of them are null, which is one zero byte each.
                if place > 0 and data.startswith(_NULLS[:place], at):
                    at += place
                else:
                    for skip in skips:
                        at = skip(data, at)
            elif data[at] == 2:
                # A length below 64 is one byte, which saves two calls.
                length = data[at + 1]
                if length < 0x80 and not length & 1:
                    length >>= 1
                    at += 2
                else:
                    length, at = length_at(data, at + 1)
                end = at + length
                if place >= 0:
                    values[place] = data[at:end].decode()
                at = end
            elif data[at] == 0:
                at += 1
            else:
                raise ValueError("a text of a statistic has an unknown branch")
        if at > len(data):
            raise ValueError("a text of a statistic is cut")
        stats.append((values[0], values[1], values[2], values[3]))
        return at


def _numbers(run: list[str]) -> _Step:
    one = rb"\x00|\x02" + _VARINT
    parts = [b"(%b)" % one if name in _WANTED else b"(?:%b)" % one for name in run]
    places = tuple(_WANTED.index(name) for name in run if name in _WANTED)
    return -1, re.compile(b"".join(parts), re.DOTALL), places


def _kind(type: Any) -> str:
    if isinstance(type, list) and len(type) == 2 and type[0] == "null":
        inner = type[1].get("type") if isinstance(type[1], dict) else type[1]
        if inner in ("int", "long"):
            return "number"
        if inner == "string":
            return "text"
    return "other"


def _starts_with_null(type: Any) -> bool:
    return isinstance(type, list) and type[0] == "null"
