"""Real Trino shows times of a Hudi table in the units of its schema, whatever its files say.

Milliseconds that files call microseconds are taken for what they are, as in Hudi 1.2.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import bridge
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.support.hudi_registration import register
from tests.support.hudi_times import DAY, TimesTable

pytestmark = pytest.mark.full

SCHEMA = "hudi_times"
MILLIS = "date_diff('millisecond', TIMESTAMP '1970-01-01 00:00:00', t)"


@pytest.mark.parametrize(
    ("kind", "block", "millis"),
    [
        ("COPY_ON_WRITE", "", True),
        ("MERGE_ON_READ", "avro", True),
        ("MERGE_ON_READ", "avro", False),
        ("MERGE_ON_READ", "hfile", True),
        ("MERGE_ON_READ", "hfile", False),
    ],
)
def test_times_are_in_the_units_of_the_table(
    stack: Stack, kind: str, block: str, millis: bool, tmp_path: Path
) -> None:
    made = TimesTable(tmp_path / "t", kind, millis=millis)
    for day in range(4):
        made.base("us" if day % 2 else "ms", day)
    if block:
        hfile = block == "hfile"
        made.log("micros", 1, 3, timedelta(40), hfile=hfile)
        made.log("millis", 2, 4, timedelta(50), hfile=hfile)
        made.log("micros", 3, 5, timedelta(60), hfile=hfile)
    name = TableName(SCHEMA, f"{kind}_{block}_{millis}".lower())
    with MetastoreClient(stack.metastore_uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA, f"file://{tmp_path}")
        fields = [("k", pa.string()), ("t", pa.timestamp("us")), ("n", pa.int32())]
        register(client, name, made.hudi.root, pa.schema(fields))

    def rows(where: str) -> dict[str, int]:
        return dict(stack.query(f"SELECT k, {MILLIS} FROM {name}{where}"))

    def expected(since: datetime) -> dict[str, int]:
        return {k: int(t.timestamp() * 1000) for k, t in made.rows.items() if t >= since}

    assert rows("") == expected(datetime.min.replace(tzinfo=DAY.tzinfo))
    for since in (DAY + timedelta(1, 7200), DAY + timedelta(30)):
        assert rows(f" WHERE t >= TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}'") == expected(since)
    assert rows(" WHERE t < TIMESTAMP '2000-01-01 00:00:00'") == {}
    with bridge.connect() as session:
        late = DAY + timedelta(30)
        text = f"t >= TIMESTAMP '{late:%Y-%m-%d %H:%M:%S}'"
        made.check(session.table(str(made.hudi.root)), text, lambda t, n: t >= late)
