"""Operations that tables of segments do not have, each with its remedy.

The law: the rows of a table are those of the files that were added. No statement writes, changes or
moves a row, and none that would is accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bridge.kernel.errors import InvalidStatement, OperationBlocked
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.statements import Name

_ADD = "ALTER TABLE {table} ADD SEGMENT LOCATION '...'"
_REPLACE = (
    "write new files, add them with " + _ADD + ", and take the old ones out with DELETE FROM TABLE "
    "{table} WHERE SEGMENT.ID IN (...)"
)
_BY_VIEW = "create a view of columns: CREATE MATERIALIZED VIEW ... SORT BY (...)"
_OWN_PREFIX = "only properties with the prefix of the format can change, such as csv.null"

BLOCKED: Mapping[str, str] = MappingProxyType(
    {
        "LOAD DATA": "add the files where they lie: " + _ADD,
        "INSERT": "write files with another program, then " + _ADD,
        "UPDATE": _REPLACE,
        "DELETE": _REPLACE,
        "MERGE": _REPLACE,
        "TRUNCATE": "DELETE FROM TABLE {table} WHERE SEGMENT.ID IN (...) takes all segments out",
        "CREATE TABLE AS SELECT": "create the table with its columns, then " + _ADD,
        "ADD COLUMNS": "create another table with the column, and add the same files to it",
        "REPLACE COLUMNS": "ALTER TABLE {table} DROP COLUMNS (...) or CHANGE name name type",
        "RENAME COLUMN": "columns are found in the files by name; use a view of your engine",
        "MERGE INDEX": "nothing needs it: ALTER TABLE {table} COMPACT 'MINOR' merges segments",
        "SET TBLPROPERTIES": _OWN_PREFIX,
        "UNSET TBLPROPERTIES": _OWN_PREFIX,
        "SET LOCATION": "files lie where they were added: " + _ADD,
        "SET SERDEPROPERTIES": _OWN_PREFIX,
        "SET FILEFORMAT": "the format may differ by segment: "
        + _ADD
        + " OPTIONS ('format'='json')",
        "PARTITION": "columns that names of directories hold: CREATE TABLE ... PARTITION COLUMNS "
        "(day date); " + _ADD + " then reads them from day=.../",
        "BUCKETING": _BY_VIEW,
        "PREAGGREGATE": _BY_VIEW,
        "TIMESERIES": _BY_VIEW,
        "LUCENE": "CREATE DATAMAP ... USING 'bloomfilter' finds whole values",
        "CONCURRENT REBUILD": "run one rebuild after the other",
        "EXTERNAL TABLE": "leave out EXTERNAL: dropping the table never deletes fact files",
    }
)
"""Remedy by operation; ``{table}`` stands for the table's name."""

_SPELLED = {
    "PARTITION": "partitions are not possible",
    "BUCKETING": "bucketing is not possible",
    "PREAGGREGATE": "a pre-aggregate datamap is not possible",
    "TIMESERIES": "a timeseries datamap is not possible",
    "LUCENE": "a lucene datamap is not possible",
    "CONCURRENT REBUILD": "concurrent rebuilds of a view are not possible",
    "EXTERNAL TABLE": "CREATE EXTERNAL TABLE is not possible",
}


def operation_blocked(operation: str, table: str, detail: str = "") -> OperationBlocked:
    """The refusal of an operation of `BLOCKED`.

    Args:
        detail: what exactly was asked for, such as a property's name.

    >>> print(operation_blocked("INSERT", "lake.calls"))
    OPERATION_BLOCKED: INSERT is not possible on lake.calls
      -> write files with another program, then ALTER TABLE lake.calls ADD SEGMENT LOCATION '...'
    """
    said = _SPELLED.get(operation, f"{operation} is not possible")
    return OperationBlocked(
        f"{said} on {table}" + (f": {detail}" if detail else ""),
        BLOCKED[operation].replace("{table}", table),
    )


def display_name(name: Name) -> str:
    """A table's name in a message, without backticks."""
    return f"{name.schema}.{name.name}" if name.schema is not None else name.name


def next_table_name(cursor: Cursor) -> str:
    """The table that comes next; a refusal needs no name."""
    try:
        return display_name(cursor.table())
    except InvalidStatement:
        return "a table of segments"
