"""Timestamps that files keep in UTC (INT96 among them), read in another zone (correctness 9).

Trino's reader moves them to the catalog's zone, so what indexes know of them does not hold there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, TIMESTAMP
from bridge.table.model import Column
from tests.engines.stack import ZONE, Stack, register

pytestmark = pytest.mark.full

FORMS = ("int96", "utc", "local")
# Around both changes of the clock in 2013, and two quiet months.
STARTS = (dt.datetime(2013, 1, 5), dt.datetime(2013, 3, 10), dt.datetime(2013, 11, 2, 23))
HOURS = 40


def _read(form: str, kept: dt.datetime, zone: str) -> dt.datetime:
    """What a reader in a zone makes of a moment that a file keeps."""
    if form == "local":
        return kept
    return kept.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


Moments = list[tuple[int, str, dt.datetime]]


@pytest.fixture(scope="module")
def moments(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moments]:
    """Table laws.moments: a file for each form and start, of 40 hours; index of bounds, values
    and bloom filters.
    """
    directory = tmp_path_factory.mktemp("moments")
    written: Moments = []
    for form in FORMS:
        for start in STARTS:
            ids = range(len(written), len(written) + HOURS)
            kept = [start + dt.timedelta(hours=i) for i in range(HOURS)]
            kind = pa.timestamp("us", "UTC" if form == "utc" else None)
            table = pa.table({"id": ids, "at": pa.array(kept, kind)})
            pq.write_table(
                table,
                directory / f"{form}-{start:%m}.parquet",
                use_deprecated_int96_timestamps=form == "int96",
            )
            written += [(i, form, moment) for i, moment in zip(ids, kept, strict=True)]
    columns = (Column("id", BIGINT), Column("at", TIMESTAMP))
    register(stack, "moments", directory, columns, kinds=[("values", "at"), ("bloom", "at")])
    yield written


@pytest.mark.parametrize("catalog", ["bridge", "zoned"])
def test_9_zone_of_the_catalog(stack: Stack, moments: Moments, catalog: str) -> None:
    zone = "UTC" if catalog == "bridge" else ZONE
    rows = [(i, _read(form, moment, zone)) for i, form, moment in moments]
    assert stack.query("SELECT id, at FROM laws.moments ORDER BY id", None, catalog) == [
        [i, moment] for i, moment in rows
    ]
    least, greatest = min(at for _, at in rows), max(at for _, at in rows)
    sql = "SELECT min(at), max(at), count(at) FROM laws.moments"
    assert stack.query(sql, None, catalog) == [[least, greatest, len(rows)]]
    asked = [rows[n][1] for n in (0, 39, 40, 45, 79, 80, 119, 120, 165, 201, 239, 240, 300, 359)]
    for at in asked:
        for operator, matches in (
            ("=", [i for i, each in rows if each == at]),
            ("<=", [i for i, each in rows if each <= at]),
            (">", [i for i, each in rows if each > at]),
        ):
            sql = f"SELECT id FROM laws.moments WHERE at {operator} TIMESTAMP '{at}' ORDER BY id"
            for session in (None, {"pruning_enabled": "false"}):
                found = [row[0] for row in stack.query(sql, session, catalog)]
                assert found == matches, (sql, session)


def test_what_lies_as_it_is_read_is_pruned_in_any_zone(stack: Stack, moments: Moments) -> None:
    """In UTC both forms with bounds are pruned; elsewhere only the zone-free one."""
    sql = "SELECT id FROM laws.moments WHERE at = TIMESTAMP '2013-03-10 05:00:00'"
    assert stack.kept_files(sql) == len(STARTS) + 2
    assert stack.kept_files(sql, catalog="zoned") == 2 * len(STARTS) + 1
