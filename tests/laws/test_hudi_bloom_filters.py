"""Hudi's bloom filters of keys: no filter loses a row, and they skip files.

The law: of tables that each release of Hudi wrote by inserts, upserts, deletes, clusterings and
compactions, a scan for keys gives the rows that a scan without pruning gives.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.formats.hudi.bloom_filters import BloomFilter
from bridge.table.hudi.files import bloom_index
from tests.support.hudi_fixtures import BUNDLES, HudiFixture, few, hudi_fixtures
from tests.support.hudi_keys import ask_for_keys, lacks, require_all_rows, without_each
from tests.tiers import examples

pytestmark = pytest.mark.usefixtures("patient")

CONDITIONS = examples(6, 10, 300)
NAMES = ("cow_bloom_filters", "mor_bloom_filters")
TABLES = [fixture for name in NAMES for fixture in hudi_fixtures(names=[name])]
KEY = '"_hoodie_record_key"'


@pytest.mark.parametrize("fixture", TABLES, ids=lambda f: f.id)
def test_no_filter_loses_a_row(fixture: HudiFixture, session: bridge.Session) -> None:
    luck = random.Random(fixture.id)
    table = session.table(str(fixture.path()))
    assert require_all_rows(table, luck, ask_for_keys, CONDITIONS)
    require_all_rows(table, luck, ask_for_keys, CONDITIONS, read_optimized=True)
    for each in fixture.answers().as_of[: examples(1, 2, 9)]:
        require_all_rows(table, luck, ask_for_keys, CONDITIONS, version=each.instant)


@pytest.mark.parametrize("fixture", few(TABLES), ids=lambda f: f.id)
def test_a_lost_file_of_the_index_loses_no_row(
    fixture: HudiFixture, session: bridge.Session, tmp_path: Path
) -> None:
    luck = random.Random(fixture.id)
    root = fixture.unpack(tmp_path)
    files = sorted((root / ".hoodie/metadata/bloom_filters").iterdir())
    some = luck.sample(files, min(len(files), examples(1, 2, 99)))
    for _, without in without_each(root, some):
        require_all_rows(session.table(str(without)), luck, ask_for_keys, CONDITIONS)


@pytest.mark.parametrize("fixture", TABLES, ids=lambda f: f.id)
def test_a_file_has_a_filter_of_all_its_keys(fixture: HudiFixture) -> None:
    paths = [p for p in fixture.path().rglob("*.parquet") if ".hoodie" not in p.parts]
    assert len(paths) > 4
    for path in paths:
        file = pq.ParquetFile(path)
        filter = BloomFilter.parse(file.metadata.metadata[b"org.apache.hudi.bloomfilter"])
        keys = file.read(["_hoodie_record_key"]).column(0).to_pylist()
        assert not any(lacks(filter, key) for key in keys)
        assert lacks(filter, "none")


@pytest.mark.parametrize("bundle", BUNDLES)
def test_keys_skip_files_before_an_index_exists(bundle: str, session: bridge.Session) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_bloom_filters"])
    table = session.table(str(fixture.path()))
    every = table.scan().explain().files_total
    assert every >= 4
    many = ", ".join(f"'{n}'" for n in range(bloom_index._MOST_VALUES + 1))
    for asked, kept in {
        f"{KEY} = 'k004'": 1,
        f"{KEY} IN ('k004', 'k051')": 2,
        f"{KEY} = 'none'": 0,
        f"{KEY} = 'none' AND price > 0": 0,
        f"{KEY} = 'none' OR price > 0": every,
        f"{KEY} <> 'none'": every,
        f"{KEY} IN ({many})": every,
        f"{KEY} = ''": every,  # an empty text has no hash
        "name = 'k004'": 1 if bundle >= "1" else every,  # 0.15 may have updated it, and not the key
        "id = 4": every,
    }.items():
        report = table.scan(asked).explain()
        assert report.files_kept == kept, asked
        if kept < every:
            assert report.stages[-1].index == "bloom_filters"


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_slice_with_logs_is_read(bundle: str, session: bridge.Session) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["mor_bloom_filters"])
    logs = sum(bool(each.logs) for each in fixture.answers().slices)
    assert logs
    table = session.table(str(fixture.path()))
    assert table.scan(f"{KEY} = 'none'").explain().files_kept == logs
    scan = table.scan(f"{KEY} = '17'")
    assert scan.to_arrow().num_rows == 1


def test_more_filters_than_are_read(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bloom_index, "_MOST_BYTES", 400)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_bloom_filters"])
    report = session.table(str(fixture.unpack(tmp_path))).scan(f"{KEY} = 'none'").explain()
    assert report.files_kept == report.files_total
    (problem,) = [reason for reason in report.not_used if reason.index == "bloom_filters"]
    assert problem.reason == "LIMIT_EXCEEDED"
