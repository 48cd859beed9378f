"""Columns that engines find by name or by position, depending on their settings.

Hive 4 reads the n-th column of an ORC file as the table's n-th column, unless it is set to match by
name. Files of old Hive versions have no names at all. The index therefore keeps statistics of such
a file by (name, position). It uses them for a column of the table only if name and position agree.
Otherwise the column is unknown, and the file is read.

=================  =====================  ==========================================
table (a, b)       file                   used
=================  =====================  ==========================================
``b``              (a, b)                 b
``b``              (b, a), (c, a, b)      nothing: by position it is another column
``b``              (_col0, _col1)         _col1: only the position can match
``b``              (A, B)                 nothing: ORC does not find it by name: NULL
``b``              (a)                    all NULL, by name and by position
``b``              (a, c)                 nothing: NULL by name, c by position
=================  =====================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bridge.formats.physical_column import NAMELESS, PhysicalColumn, PhysicalType
from bridge.formats.statistics import LeafStatistics
from bridge.kernel.types import Kind, Type

WIDTH = ("", "$columns")
"""The path of an artificial leaf whose bounds are the number of columns of the file."""
_INTEGERS: Mapping[Kind, int] = {
    Kind.TINYINT: 8,
    Kind.SMALLINT: 16,
    Kind.INTEGER: 32,
    Kind.BIGINT: 64,
}
_SAME = {
    "bool": (Kind.BOOLEAN,),
    "float": (Kind.FLOAT,),
    "double": (Kind.DOUBLE,),
    "date": (Kind.DATE,),
    "decimal": (Kind.DECIMAL,),
    "string": (Kind.STRING, Kind.VARCHAR),
    "binary": (Kind.BINARY,),
}


def in_lower_case(path: Sequence[str]) -> tuple[str, ...]:
    """A path as engines compare it that turn names to lower case."""
    return tuple(name.lower() for name in path)


def by_letters(path: Sequence[str]) -> tuple[str, ...]:
    """A path as engines compare it that ignore case letter by letter.

    Two letters are then equal if their capitals are: ``ı`` and ``İ`` are ``i``, and ``ſ`` is ``s``.

    >>> by_letters(("SıfK",)), by_letters(("ß", "Ölς"))
    (('sifk',), ('ß', 'ölσ'))
    """
    return tuple(name.lower() if name.isascii() else "".join(map(_letter, name)) for name in path)


def _letter(letter: str) -> str:
    if letter == "İ":  # the only one whose small form is two letters
        return "i"
    capital = letter.upper()
    return capital.lower() if len(capital) == 1 else letter


def doubtful_names(stored: Sequence[str], path: tuple[str, ...]) -> bool:
    """Whether some engines find the requested path under the stored one, and others do not.

    Args:
        path: as requested, in lower case.
    """
    if in_lower_case(stored) == path:
        return by_letters(stored) != by_letters(path)
    return len(stored) == len(path) and by_letters(stored) == by_letters(path)


class Names:
    """The paths of columns, of which a file or table may have thousands. None looks at all of them.

    Args:
        stored: as files spell them; columns are numbered in this order.
    """

    def __init__(self, stored: Iterable[Sequence[str]]) -> None:
        self._stored = list(stored)
        self._same: dict[tuple[str, ...], list[int]] = {}
        self._below: dict[tuple[str, ...], list[int]] = {}
        self._by_letters: dict[tuple[str, ...], list[int]] = {}
        for number, spelled in enumerate(self._stored):
            path, letters = in_lower_case(spelled), by_letters(spelled)
            self._same.setdefault(path, []).append(number)
            for length in range(len(path)):
                self._below.setdefault(path[:length], []).append(number)
            if letters != path:
                self._by_letters.setdefault(letters, []).append(number)

    def same(self, path: tuple[str, ...]) -> list[int]:
        """The columns of a path, which is in lower case."""
        return self._same.get(path, [])

    def find_conflicts(self, path: tuple[str, ...]) -> list[int]:
        """Columns that make a path ambiguous between engines: a part of it, a parent of it, or one
        of uncertain case.
        """
        found = list(self._below.get(path, []))
        for length in range(len(path)):
            found += self.same(path[:length])
        letters = by_letters(path)
        alike = {*self.same(path), *self.same(letters), *self._by_letters.get(letters, [])}
        return [*found, *(n for n in sorted(alike) if doubtful_names(self._stored[n], path))]


def width_leaf(count: int) -> LeafStatistics:
    """Marks a file whose columns may be found by position, and holds their number."""
    column = PhysicalColumn(WIDTH, PhysicalType("INT32", "int", 32))
    return LeafStatistics(column.key(), column, count, count, True, 0, 0, 0)


def reads_as(stored: PhysicalType, target: Type) -> bool:
    """Whether Hive reads the stored type as the table's type without changing values.

    Hive's ORC conversions turn values that do not fit into NULL, and binary into digits. Only
    conversions to a wider integer or a wider decimal surely keep the value.
    """
    if stored.logical == "int":
        return stored.width <= _INTEGERS.get(target.kind, 0)
    if stored.logical == "timestamp":
        return target.kind is Kind.TIMESTAMP and not stored.utc
    return target.kind in _SAME.get(stored.logical, ())


def match_columns(
    columns: Sequence[PhysicalColumn], path: tuple[str, ...], position: int | None, target: Type
) -> tuple[list[int], list[int]]:
    """Which stored columns are the table's column, and which make it unknown in their files.

    Args:
        columns: all columns that have a position.
        path: the requested column, in lower case.
        position: its position in the table; None if unknown.
    """
    sure: list[int] = []
    doubtful: list[int] = []
    for i, column in enumerate(columns):
        here = column.position == position and len(path) == 1
        if column.path in (path, NAMELESS) and here and reads_as(column.type, target):
            sure.append(i)
        elif here or in_lower_case(column.path) == path or doubtful_names(column.path, path):
            doubtful.append(i)
    return sure, doubtful
