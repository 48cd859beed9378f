"""Hudi tables through PyIceberg: Spark's rows, or a refusal that names the reason.

The law: of every real table the door shows all rows of base files as Hudi has them, or none.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import EqualTo

from bridge.table.hudi.table_config import load_table_config
from bridge.table.infer import type_of
from bridge.table.model import CatalogTable, Column, TableName
from tests.behaviour.test_hudi_tables import rows, spark
from tests.support.hudi_expectations import unlike_spark
from tests.support.hudi_fixtures import Answer, HudiFixture, few, hudi_fixtures
from tests.support.iceberg_door import OpenDoor, open_door
from tests.support.lake import NAME, Lake

FIXTURES = [pytest.param(f, id=f.id) for f in few(hudi_fixtures())]
READ_OPTIMIZED = {"hoodie.query.as.ro.table": "true"}
REASONS = (
    "logs that are not compacted",
    "columns were renamed",
    "of old levels",
    "its files hold",
    "has times of the old calendar",
    "holds orc files",
    "the partition key",
    "has no value that is",
)
outcomes: Counter[str] = Counter()


@dataclass
class HudiLake(Lake):
    """A Hudi table that lies somewhere."""

    told: CatalogTable | None = None

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        assert self.told is not None
        return self.told


def lake_of(fixture: HudiFixture, root: Path, answer: Answer, **properties: str) -> HudiLake:
    """The table as Hudi's own sync registers it, without partitions."""
    path = fixture.path()
    lake = HudiLake(root)
    config = load_table_config(lake.storage, f"file://{path}")
    fields = [Column(f.name.lower(), type_of(f.type)) for f in answer.schema]
    partition_fields = [f.lower() for f in config.partition_fields]
    keys = tuple(c for key in partition_fields for c in fields if c.name == key)
    columns = tuple(c for c in fields if c not in keys)
    lake.told = CatalogTable(
        NAME, columns, keys, f"file://{path}", properties=properties, table_format="hudi"
    )
    lake.partition_values = []
    return lake


@pytest.mark.parametrize("read_optimized", [False, True])
@pytest.mark.parametrize("fixture", FIXTURES)
def test_rows_are_hudis_or_the_table_is_refused(
    fixture: HudiFixture, read_optimized: bool, tmp_path: Path
) -> None:
    answers = fixture.answers()
    answer = answers.read_optimized if read_optimized else answers.snapshot
    if answer.error is not None or unlike_spark(fixture):
        pytest.skip("Spark has no answer, or another one by intent")
    lake = lake_of(fixture, tmp_path, answer, **(READ_OPTIMIZED if read_optimized else {}))
    with open_door(lake, "live") as door:
        try:
            found = scan(door)
        except BadRequestError as error:
            outcomes["refused"] += 1
            assert any(reason in str(error) for reason in REASONS), error
            return
    outcomes["read"] += 1
    places = [i for i, f in enumerate(answer.schema) if f.name.lower() in found.column_names]
    schema = pa.schema([answer.schema.field(i) for i in places])
    cut = replace(answer, schema=schema, rows=tuple([r[i] for i in places] for r in answer.rows))
    assert len(places) >= len(answer.schema) - 2
    assert rows(found, cut) == spark(cut)


def scan(door: OpenDoor) -> pa.Table:
    """All columns that PyIceberg shows rightly. A file may have to teach the door names first."""
    names = [field.name for field in door.table().schema().fields]
    while True:
        try:
            return door.table().scan(selected_fields=tuple(names)).to_arrow()
        except BadRequestError as error:
            lossy = re.search(r"the column (\w+) is .* PyIceberg shows", str(error))
            if lossy:
                names.remove(lossy[1])
            elif "not yet known" not in str(error) or outcomes["taught"] > 20:
                raise
            else:
                outcomes["taught"] += 1


def test_most_tables_are_read() -> None:
    if outcomes["read"] + outcomes["refused"] < 100:
        pytest.skip("all tables are asked together")
    assert outcomes["read"] > outcomes["refused"]


INDEXED = [f for f in hudi_fixtures(prefix="cow_") if "statistics" in f.name or "index" in f.name]


@pytest.mark.full
@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in INDEXED])
def test_hudis_own_indexes_lose_no_row(fixture: HudiFixture, tmp_path: Path) -> None:
    """Every value of each column of integers or text finds the rows that have it."""
    with open_door(lake_of(fixture, tmp_path, fixture.answers().snapshot), "live") as door:
        whole = scan(door)
        files = len(door.files())
        least = files
        for name in whole.column_names:
            kind = whole[name].type
            if not (pa.types.is_integer(kind) or pa.types.is_large_string(kind)):
                continue
            for value in whole[name].drop_null().unique().to_pylist()[:12]:
                found = door.table().scan(EqualTo(name, value)).to_arrow()
                assert found.num_rows == pc.sum(pc.equal(whole[name], value)).as_py(), (name, value)
                least = min(least, door.planned[-1])
        outcomes["own"] += 1
        outcomes["skipped"] += least < files


def test_hudis_own_indexes_leave_out_files() -> None:
    if not outcomes["own"]:
        pytest.skip("all tables are asked together")
    assert outcomes["skipped"] > 2
