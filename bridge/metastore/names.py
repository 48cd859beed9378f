"""Partition names: ``month=1/note=a%2Fb``, as Hive writes and reads them.

A name is split on ``/``, each level on its first ``=``, and only then unescaped, once: escaped text
may hold either character. ``__HIVE_DEFAULT_PARTITION__`` stands for NULL, compared after
unescaping; Hive cannot tell an empty value from NULL and writes both so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bridge.errors import InvalidRequest

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# org.apache.hadoop.hive.common.FileUtils; a space and everything beyond ASCII stay as they are.
_ESCAPED = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def escape_path_name(text: str) -> str:
    """Escapes one key or value for a partition's name.

    >>> escape_path_name("a/b=50%")
    'a%2Fb%3D50%25'
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescape_path_name(text: str) -> str:
    """Undoes `escape_path_name`; a ``%`` without two hexadecimal digits after it stands for itself.

    >>> unescape_path_name("a%2Fb%3D50%25 100%")
    'a/b=50% 100%'
    """
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def partition_name(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """The name of a partition; keys in lower case, as Hive keeps them.

    >>> partition_name(["Month", "note"], ["1", None])
    'month=1/note=__HIVE_DEFAULT_PARTITION__'
    """
    if len(keys) != len(values):
        raise InvalidRequest(
            f"{len(values)} values for the partition keys {', '.join(keys)}", "give one value a key"
        )
    return "/".join(
        f"{escape_path_name(key.lower())}={escape_path_name(value) if value else NULL_PARTITION}"
        for key, value in zip(keys, values, strict=True)
    )


def parse_partition_name(name: str) -> tuple[tuple[str, str | None], ...]:
    """Keys and values of a partition's name, in its order; a NULL is None.

    Errors:
        InvalidRequest: a level has no ``=``.

    >>> parse_partition_name("month=1/note=a%2Fb%3Dc")
    (('month', '1'), ('note', 'a/b=c'))
    """
    levels = []
    for level in name.split("/"):
        key, separator, value = level.partition("=")
        if not separator:
            raise InvalidRequest(f"not a partition name: {name!r}", "key=value, levels parted by /")
        levels.append((unescape_path_name(key), decode_value(unescape_path_name(value))))
    return tuple(levels)


def partition_values(name: str) -> tuple[str | None, ...]:
    """The values alone; of the empty name, which stands for an unpartitioned table, none."""
    return tuple(value for _, value in parse_partition_name(name)) if name else ()


def decode_value(value: str) -> str | None:
    """An unescaped value as the metastore holds it; None where that is NULL's stand-in."""
    return None if value == NULL_PARTITION else value


def encode_value(value: str | None) -> str:
    """A value as the metastore holds it."""
    return value if value else NULL_PARTITION
