"""A scalar within a JSON text by its path, where Trino, Hive and Spark find the same.

The engines differ in many ways. Trino stops reading at the value; Hive reads the whole text. One
takes the first of two equal keys, the other the last. Numbers are kept as written or as Java
formats them. Arrays on the path give NULL or are searched. Objects give NULL or text. So only a
text that is valid JSON throughout, neither huge nor deep, is answered, and only along a plain path:
objects alone, each key once, ending in a string, a whole number, true, false or null. A missing key
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
"""Characters of a text, brackets in it, and characters of a number in it: engines' readers have
limits of their own, none of them below."""


class _Disputed(Exception):
    """Engines may find different values."""


class _Object(dict[str, Any]):
    """An object; keys that occur more than once are remembered."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: set[str] = set()
        if len(self) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                (self.twice if key in seen else seen).add(key)


class _Number(str):
    """A number as it is spelled."""

    def __new__(cls, spelled: str) -> _Number:
        if len(spelled) > _LONGEST_NUMBER:
            raise _Disputed
        return super().__new__(cls, spelled)


def is_path(path: object) -> bool:
    """Whether a path, as bytes, is one of keys alone: ``$.a.b``."""
    return isinstance(path, bytes) and PATH.fullmatch(path.decode("utf-8", "replace")) is not None


def scalars(texts: pa.Array, constants: Sequence[Any]) -> pa.Array | None:
    """The values at a path; None if engines may disagree about one of them.

    Args:
        texts: Arrow large_string.
        constants: the path, see `is_path`.
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
    raise ValueError(word)  # NaN and Infinity, which Python would read


_read = partial(
    json.loads,
    object_pairs_hook=_Object,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_no_json,
)
