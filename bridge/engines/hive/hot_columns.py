"""Which columns Hive reads from a view of a table of segments as from its facts.

A view is of Parquet, whatever the facts are. The builder copies a Parquet column with its physical
and logical types, except that it writes every decimal as a byte array. It takes from ORC and typed
CSV the values themselves. Hive reads dates and times of Parquet by what the writer of a file tells
of its zone and calendar, pads CHAR, and names parts of nested values by the writer: a view does not
keep these. Text, JSON and Avro are read by SerDes of Hive, which nothing here has compared.
"""

from __future__ import annotations

from bridge.kernel.types import Kind, Type

_PLAIN = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.STRING,
    }
)
_KINDS = {
    "parquet": _PLAIN | {Kind.VARCHAR},
    "orc": _PLAIN,
    "csv": _PLAIN | {Kind.VARCHAR, Kind.DECIMAL},
}


def reads_alike(format: str, type: Type) -> bool:
    """Whether Hive reads the same values of the type from a view as from facts of the format."""
    return type.kind in _KINDS.get(format, ())
