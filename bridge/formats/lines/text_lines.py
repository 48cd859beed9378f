"""Files of lines: which of them engines read as a whole."""

from __future__ import annotations

from collections.abc import Mapping

_COMPRESSED = (".bz2", ".deflate", ".gz", ".lz4", ".lzo", ".lzo_deflate", ".snappy", ".zst")
_HEADER = "skip.header.line.count"
_FOOTER = "skip.footer.line.count"


def is_compressed(path: str) -> bool:
    """Whether Hadoop's codecs decompress a file of this name."""
    return path.endswith(_COMPRESSED)


def is_whole(properties: Mapping[str, str], path: str) -> bool:
    """Whether one task reads all lines of the file.

    A compressed file has no places to begin in; only one reader can count lines from its start or
    its end. The first line alone is left out by whoever reads the file's beginning.
    """
    return is_compressed(path) or not has_free_lines(properties)


def has_free_lines(properties: Mapping[str, str]) -> bool:
    """Whether lines can be read without knowing their number."""
    return properties.get(_HEADER, "0") in ("0", "1") and properties.get(_FOOTER, "0") == "0"
