"""The column of an index, found in each file."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.formats.physical_column import PhysicalType
from bridge.index.kinds.definition import column_path
from bridge.index.kinds.kind import FileFacts
from bridge.kernel.errors import InvalidConfiguration


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A column, or a field nested in one."""

    path: tuple[str, ...]

    def attach(self, file: FileFacts) -> tuple[int, PhysicalType] | None:
        """The number and stored type of its leaf in a file; None if there is no such leaf."""
        number = file.leaf(self.path)
        if number is None:
            return None
        return number, file.leaves[number].type


def column_source(text: str) -> ColumnSource:
    """Parses ``a``, ``st.a`` or ``"x.y"``. Errors: InvalidConfiguration."""
    path = column_path(text)
    if not all(path):
        raise InvalidConfiguration(f"{text!r} is no column", "write a column's name: a, or st.a")
    return ColumnSource(path)
