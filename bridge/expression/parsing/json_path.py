"""Extracts a scalar from JSON text by a path, if Trino, Hive and Spark agree on it.

The engines differ in many ways. Trino stops reading at the value; Hive reads the whole text. Some
take the first of two equal keys, others the last. Numbers are returned as written or as Java
formats them. Arrays on the path give NULL or are searched. Objects give NULL or text. A value is
therefore returned only if the text is valid JSON of limited size and depth, and if the path leads
only through objects with unique keys to a string, an integer, true, false or null. A missing key
is NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*)+")
_DIGITS = 18
_LONGEST, _DEEPEST, _LONGEST_NUMBER = 50_000, 500, 500
"""Limits: characters of a text, opening brackets in it, characters of a number. No engine's limits
are lower.
"""


class _Disputed(Exception):
    """Engines may find different values."""


class _Object(dict[str, Any]):
    """A JSON object that records duplicate keys."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: set[str] = set()
        if len(self) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                (self.twice if key in seen else seen).add(key)


class _Number(str):
    """A number as written."""

    def __new__(cls, spelled: str) -> _Number:
        if len(spelled) > _LONGEST_NUMBER:
            raise _Disputed
        return super().__new__(cls, spelled)


def is_path(path: object) -> bool:
    """Whether a path (as bytes) consists only of keys, like ``$.a.b``."""
    return isinstance(path, bytes) and PATH.fullmatch(path.decode("utf-8", "replace")) is not None


def scalars(texts: pa.Array, constants: Sequence[Any]) -> pa.Array | None:
    """The values at a path; None if engines may differ about one of them.

    Args:
        texts: Arrow large_string.
        constants: the path; see `is_path`.
    """
    keys = constants[0].decode().split(".")[1:]
    try:
        found = [None if text is None else _scalar(text, keys) for text in texts.to_pylist()]
        return pa.array(found, pa.large_string())
    except (_Disputed, ValueError, RecursionError, pa.ArrowInvalid):  # also lone surrogates
        return None


def _scalar(text: str, keys: Sequence[str]) -> str | None:
    if len(text) > _LONGEST or text.count("{") + text.count("[") > _DEEPEST:
        raise _Disputed
    value = _read(text)
    if not isinstance(value, _Object):
        raise _Disputed
    for key in keys:
        if isinstance(value, list):
            raise _Disputed
        if not isinstance(value, _Object):
            return None
        if key in value.twice:
            raise _Disputed
        value = value.get(key)
    if isinstance(value, _Number):
        digits = value.removeprefix("-")
        if not digits.isdecimal() or len(digits) > _DIGITS or value == "-0":
            raise _Disputed
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value
    raise _Disputed


def _no_json(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity, which Python accepts


_read = partial(
    json.loads,
    object_pairs_hook=_Object,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_no_json,
)
