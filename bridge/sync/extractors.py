"""Partition extractors: how writers encode partition values in directory names.

============  ===================  =================================
name          directory            values
============  ===================  =================================
``hive``      ``year=2024/m=3``    the keys and values it names
``single``    ``paris``            one key, the directory's name
``multi``     ``2024/paris``       one key per level
``month``     ``2024/03``          one key, ``2024-03``
``day``       ``2024/03/08``       one key, ``2024-03-08``
``hour``      ``2024/03/08/05``    one key, ``2024-03-08-05``
``none``      (the root)           none: not partitioned
============  ===================  =================================

Other packages add extractors as entry points of the group ``skipbridge.partition_extractors``: a
callable that takes the names of the keys and returns a `PartitionExtractor`.

The law (rule 18): split on '/', then on the first '=', THEN unescape, once. A directory that cannot
be read this way is reported as unparsable; its values are never guessed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Protocol

from bridge.kernel.errors import BridgeError, InvalidConfiguration
from bridge.table.partition import NULL_MARKER, unescape

ENTRY_POINTS = "skipbridge.partition_extractors"
KeyValues = dict[str, str | None]
"""Value by key, in the order of the levels; None is NULL."""


class UnparsableDirectory(ValueError):
    """The directory is not a partition in this encoding; the message says why."""


class PartitionExtractor(Protocol):
    """Reads one directory's path; pure, so that a path always gives the same partition."""

    def __call__(self, directory: str) -> KeyValues:
        """Values of a directory; its path is relative to the table's root, without outer slashes.

        Errors:
            UnparsableDirectory.
        """
        ...


def find_extractor(name: str, keys: Sequence[str] = ()) -> PartitionExtractor:
    """The extractor of this name.

    Args:
        keys: names of the partition keys, for encodings that do not name them.

    Errors:
        InvalidConfiguration: the extractor does not exist, needs other keys, or is broken.
    """
    lowered = tuple(k.lower() for k in keys)
    if len(set(lowered)) != len(lowered):
        raise InvalidConfiguration(f"partition keys twice: {', '.join(keys)}", "name each once")
    made = _OWN.get(name)
    if made is not None:
        return made(lowered)
    found = {e.name: e for e in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        raise InvalidConfiguration(
            f"no partition extractor {name!r}", f"one of {', '.join([*_OWN, *sorted(found)])}"
        )
    try:
        extractor: PartitionExtractor = found[name].load()(lowered)
    except BridgeError:
        raise
    except Exception as error:  # third-party code
        raise InvalidConfiguration(
            f"partition extractor {name!r} ({found[name].value}) does not load: {error!r}",
            "fix or reinstall the package that provides it",
        ) from error
    return extractor


def _value(text: str) -> str | None:
    value = unescape(text)
    if not value:
        raise UnparsableDirectory("a partition value is empty")
    return None if value == NULL_MARKER else value


def _levels(directory: str) -> list[str]:
    levels = directory.split("/") if directory else []
    if "" in levels:
        raise UnparsableDirectory("keys of its objects have an empty part (//): rename them")
    return levels


class _Hive:
    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys

    def __call__(self, directory: str) -> KeyValues:
        found: KeyValues = {}
        for level in _levels(directory):
            raw, separator, text = level.partition("=")
            key = unescape(raw).lower()
            if not separator or not key:
                raise UnparsableDirectory(f"{level!r} is not named key=value")
            if key in found:
                raise UnparsableDirectory(f"key {key!r} occurs twice")
            found[key] = _value(text)
        if self._keys and tuple(found) != self._keys:
            raise UnparsableDirectory(
                f"its keys are {_shown(tuple(found))}, not {_shown(self._keys)}"
            )
        return found


class _Levels:
    """One key per level; a level may also be named key=value."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        if not keys:
            raise InvalidConfiguration(
                "this partition extractor does not name its keys",
                "give --partition-keys, one a directory level",
            )
        self._keys = keys

    def __call__(self, directory: str) -> KeyValues:
        levels = _levels(directory)
        if len(levels) != len(self._keys):
            raise UnparsableDirectory(f"it has {len(levels)} levels, not {len(self._keys)}")
        return {k: _value(level) for k, level in zip(self._keys, levels, strict=True)}


def _single(keys: tuple[str, ...]) -> PartitionExtractor:
    if len(keys) > 1:
        raise InvalidConfiguration(
            f"extractor single has one key, not {', '.join(keys)}", "use multi"
        )
    return _Levels(keys)


class _SlashDate:
    """Year, month and smaller units as directories; one text as value."""

    def __init__(self, keys: tuple[str, ...], widths: tuple[int, ...]) -> None:
        if len(keys) > 1:
            raise InvalidConfiguration(
                f"dates in slashes are one key, not {', '.join(keys)}", "name one, or use multi"
            )
        self._key = keys[0] if keys else "dt"
        self._widths = widths

    def __call__(self, directory: str) -> KeyValues:
        levels = [unescape(level.rpartition("=")[2]) for level in _levels(directory)]
        if tuple(len(level) for level in levels) != self._widths or not all(
            level.isascii() and level.isdigit() for level in levels
        ):
            shape = "/".join(("yyyy", "mm", "dd", "hh")[: len(self._widths)])
            raise UnparsableDirectory(f"it is not {shape}")
        numbers = [int(level) for level in levels]
        try:
            dt.datetime(*(*numbers, 1)[: max(3, len(numbers))])  # type: ignore[arg-type]
        except ValueError as error:
            raise UnparsableDirectory(f"no such date: {error}") from None
        return {self._key: "-".join(levels)}


class _Nothing:
    def __init__(self, keys: tuple[str, ...]) -> None:
        if keys:
            raise InvalidConfiguration(
                f"extractor none has no partition keys, not {', '.join(keys)}",
                "leave --partition-keys out, or choose another extractor",
            )

    def __call__(self, directory: str) -> KeyValues:
        if directory:
            raise UnparsableDirectory("it is below the root of a table without partitions")
        return {}


def _shown(keys: tuple[str, ...]) -> str:
    return "/".join(keys) or "none"


_OWN: dict[str, Callable[[tuple[str, ...]], PartitionExtractor]] = {
    "hive": _Hive,
    "single": _single,
    "multi": _Levels,
    "month": lambda keys: _SlashDate(keys, (4, 2)),
    "day": lambda keys: _SlashDate(keys, (4, 2, 2)),
    "hour": lambda keys: _SlashDate(keys, (4, 2, 2, 2)),
    "none": _Nothing,
}
