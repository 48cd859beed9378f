"""What a table says of how its files are read, for formats whose files do not say it themselves.

The bytes of a CSV file have no types, no names, and no quote character: the table declares them. A
statistic of such a file is true only under the declaration with which the file was read. An index
entry therefore keeps the digest of that declaration, and planners use the entry only for files that
are declared in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from bridge.kernel.types import Type

RULES = 2
"""Raise it when readers of statistics read a file differently: older entries are then not used."""
FIELDS = "skipbridge.csv.fields"
"""A property: the names of the fields of a CSV file in order; columns are found by name."""
CAST = "skipbridge.cast"
"""A property: fields of a CSV file are cast from text to the columns' types. ``try``: what cannot
be cast is NULL; ``fail``: it is an error."""
_SCHEMA = frozenset({"columns", "columns.types"})
"""Properties that repeat the columns."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the bytes of a file become rows.

    Attributes:
        format: a name in the registry of file formats.
        properties: those of the SerDe and the table that readers heed, sorted.
        columns: names in lower case, and types, of the table's data columns in order.
    """

    format: str
    properties: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, Type], ...]

    @property
    def property_map(self) -> Mapping[str, str]:
        return {name: value for name, value in self.properties if name not in _SCHEMA}

    @property
    def digest(self) -> str:
        """16 hexadecimal digits: files are read alike if and only if these are equal."""
        hashed = hashlib.blake2b(digest_size=8)
        properties = sorted(self.property_map.items())
        columns = [(name, str(type)) for name, type in self.columns]
        counts = (str(RULES), str(len(properties)), self.format)
        for text in (*counts, *(t for pair in (*properties, *columns) for t in pair)):
            raw = text.encode("utf-8", "surrogatepass")
            hashed.update(len(raw).to_bytes(4, "big") + raw)
        return hashed.hexdigest()
