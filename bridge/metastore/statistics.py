"""Statistics in a metastore: of Hive and Trino in its own tables, of Spark among the properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bridge.metastore._gen import ttypes
from bridge.metastore.calls import MethodUnknown
from bridge.metastore.client import MetastoreClient
from bridge.table.catalog_statistics import CatalogColumn, CatalogStatistics, number_in_range
from bridge.table.model import CatalogTable

_SPARK = "spark.sql.statistics."
_MOST_PARTITIONS = 1000
"""The metastore sums up the statistics of at most so many partitions."""
_MOST_COLUMNS = 500


def table_statistics(
    client: MetastoreClient, table: CatalogTable, partitions: Sequence[str]
) -> CatalogStatistics:
    """What ANALYZE left; see `bridge.table.catalog_statistics.StatisticsCatalog`.

    Spark's statistics come with the table's definition and cover the whole table. Otherwise one
    call is made.
    """
    of_spark = spark_statistics(table.properties)
    if of_spark.columns:
        return of_spark
    rows = of_spark.rows
    if rows is None and not table.partition_keys:  # of a partitioned table it may be anything
        rows = number_in_range(table.properties.get("numRows"))
    columns = [column.name for column in table.columns if not column.type.is_nested]
    found = _ask(client, table, columns[:_MOST_COLUMNS], _spread(partitions))
    known = {name: column for name, column in map(_column, found) if column != CatalogColumn()}
    # A metastore that keeps no statistics says 0 rows.
    return CatalogStatistics(rows or None, known, whole=not table.partition_keys)


def _ask(
    client: MetastoreClient, table: CatalogTable, columns: list[str], partitions: list[str]
) -> Iterable[ttypes.ColumnStatisticsObj]:
    schema, name = table.name.schema, table.name.table
    try:
        if not table.partition_keys:
            one = ttypes.TableStatsRequest(dbName=schema, tblName=name, colNames=columns)
            return client.call("get_table_statistics_req", one).tableStats or ()
        if not partitions:
            return ()
        some = ttypes.PartitionsStatsRequest(
            dbName=schema, tblName=name, colNames=columns, partNames=partitions
        )
        return client.call("get_aggr_stats_for", some).colStats or ()
    except (MethodUnknown, ttypes.NoSuchObjectException):
        return ()


def _spread(partitions: Sequence[str]) -> list[str]:
    step = -(-len(partitions) // _MOST_PARTITIONS) or 1
    return list(partitions[::step])


def _column(found: ttypes.ColumnStatisticsObj) -> tuple[str, CatalogColumn]:
    data = found.statsData
    for name in data.__slots__:
        held = getattr(data, name)
        if held is not None:
            break
    distinct = (
        2.0 if data.booleanStats is not None else number_in_range(getattr(held, "numDVs", None))
    )
    return found.colName.lower(), CatalogColumn(
        distinct,
        number_in_range(getattr(held, "numNulls", None)),
        number_in_range(getattr(held, "avgColLen", None)),
        _number(getattr(held, "lowValue", None)),
        _number(getattr(held, "highValue", None)),
    )


def _number(value: object) -> float | None:
    """A bound as a number: days for a date, microseconds for a timestamp."""
    match value:
        case int() | float():
            return float(value)
        case ttypes.Decimal():
            return float(int.from_bytes(value.unscaled, "big", signed=True)) / 10.0 ** int(
                value.scale
            )
        case ttypes.Date():
            return float(value.daysSinceEpoch)
        case ttypes.Timestamp():
            return float(value.secondsSinceEpoch) * 1e6
    return None


def spark_statistics(properties: Mapping[str, str]) -> CatalogStatistics:
    """The statistics that Spark's ANALYZE leaves among a table's properties.

    >>> spark_statistics({
    ...     "spark.sql.statistics.numRows": "8",
    ...     "spark.sql.statistics.colStats.a.b.distinctCount": "3",
    ...     "spark.sql.statistics.colStats.a.b.nullCount": "-1",
    ... })
    CatalogStatistics(rows=8.0, columns={'a.b': CatalogColumn(distinct=3.0, nulls=None, length=None, low=None, high=None)}, whole=True)
    """  # noqa: E501
    found: dict[str, dict[str, str]] = {}
    prefix = f"{_SPARK}colStats."
    for key, value in properties.items():
        if key.startswith(prefix):
            name, _, what = key.removeprefix(prefix).rpartition(".")
            found.setdefault(name.lower(), {})[what] = value
    columns = {
        name: CatalogColumn(
            number_in_range(held.get("distinctCount")),
            number_in_range(held.get("nullCount")),
            number_in_range(held.get("avgLen")),
        )
        for name, held in found.items()
    }
    return CatalogStatistics(number_in_range(properties.get(f"{_SPARK}numRows")), columns)
