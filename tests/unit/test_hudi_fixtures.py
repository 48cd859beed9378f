"""The archives of Hudi tables are whole, and Spark's answers agree with the files in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import HudiFixture, few, hudi_fixtures

# Rows of these lie in base files alone, with all columns and values as Spark gives them.
PLAIN = [
    "cow_upserts",
    "cow_inflight_left",
    "cow_insert_overwrite",
    "cow_insert_overwrite_table",
    "cow_clustered",
    "cow_clustering_inflight",
    "cow_rolled_back",
    "cow_restored",
    "cow_cdc",
    "cow_metadata",
    "cow_slashes",
    "cow_url_encoded",
    "cow_url_encoded_hive",
    "cow_timestamp_ntz",
    "cow_zone_utc",
]
ALL = [pytest.param(fixture, id=fixture.id) for fixture in few(hudi_fixtures())]


@pytest.mark.parametrize("fixture", ALL)
def test_every_file_of_a_slice_is_in_the_archive(fixture: HudiFixture) -> None:
    answers, table = fixture.answers(), fixture.path()
    assert answers.slices or not answers.snapshot.rows
    for found in answers.slices:
        for name in [*([found.base_file] if found.base_file else []), *found.logs]:
            assert (table / found.partition / name).is_file(), name


@pytest.mark.parametrize("fixture", hudi_fixtures(names=PLAIN), ids=lambda one: one.id)
def test_the_base_files_of_a_copy_on_write_table_hold_the_rows_of_its_snapshot(
    fixture: HudiFixture,
) -> None:
    answers = fixture.answers()
    wanted = answers.snapshot.table()
    rows = []
    for found in answers.slices:
        file = pq.ParquetFile(fixture.path() / found.partition / str(found.base_file))
        rows += encode_table(file.read().select(wanted.schema.names).cast(wanted.schema))
    assert sorted(map(str, rows)) == sorted(map(str, encode_table(wanted)))
    assert rows


def test_a_copy_is_the_tests_own(tmp_path: Path) -> None:
    fixture = hudi_fixtures(names=["mor_upserts"])[0]
    copy = fixture.unpack(tmp_path)
    (copy / ".hoodie" / "hoodie.properties").unlink()
    assert (fixture.path() / ".hoodie" / "hoodie.properties").is_file()


def test_a_name_without_a_table_is_an_error() -> None:
    with pytest.raises(AssertionError, match="mor_upsets"):
        hudi_fixtures(names=["mor_upsets"])
