"""Columns that engines find by name or by position, depending on their settings.

Hive 4 reads the n-th column of an ORC file as the table's n-th, unless it is set to go by name; a
file of old Hive has no names at all. The index therefore keeps statistics of such a file by (name,
position), and uses them for a column of the table only where name and position agree. Everything
else is unknown, and the file is read.

=================  =====================  ==========================================
table (a, b)       file                   used
=================  =====================  ==========================================
``b``              (a, b)                 b
``b``              (b, a), (c, a, b)      nothing: by place it is another column
``b``              (_col0, _col1)         _col1: there is no other way to find it
``b``              (A, B)                 nothing: by name ORC finds it not, so it is NULL
``b``              (a)                    all NULL, both ways
``b``              (a, c)                 nothing: NULL by name, c by place
=================  =====================  ==========================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.file_formats.physical_column import NAMELESS, PhysicalColumn, PhysicalType
from bridge.file_formats.statistics import LeafStatistics
from bridge.types import Kind, Type

WIDTH = ("", "$columns")
"""The path of a leaf that no file has: its bounds are the number of the file's columns."""
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


def width_leaf(count: int) -> LeafStatistics:
    """Says of a file that its columns may be found by place, and how many there are."""
    column = PhysicalColumn(WIDTH, PhysicalType("INT32", "int", 32))
    return LeafStatistics(column.key(), column, count, count, True, 0, 0, 0)


def reads_as(stored: PhysicalType, target: Type) -> bool:
    """Whether a column of such a file is read as the table's type without Hive's conversions.

    Those of ORC turn what does not fit into NULL and write binary as digits: only a wider integer
    and a wider decimal are sure to be the same value.
    """
    if stored.logical == "int":
        return stored.width <= _INTEGERS.get(target.kind, 0)
    if stored.logical == "timestamp":
        return target.kind is Kind.TIMESTAMP and not stored.utc
    return target.kind in _SAME.get(stored.logical, ())


def agreeing(
    columns: Sequence[PhysicalColumn], path: tuple[str, ...], position: int | None, target: Type
) -> tuple[list[int], list[int]]:
    """Which stored columns are the table's, and which cast doubt on the files that have them.

    Args:
        columns: all that have a position.
        path: the column asked for, in lower case.
        position: its place in the table; None where it is not known.
    """
    sure: list[int] = []
    doubtful: list[int] = []
    for i, column in enumerate(columns):
        here = column.position == position and len(path) == 1
        if column.path in (path, NAMELESS) and here and reads_as(column.type, target):
            sure.append(i)
        elif here or tuple(name.lower() for name in column.path) == path:
            doubtful.append(i)
    return sure, doubtful
