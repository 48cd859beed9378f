"""Hudi's record index: no entry loses a row, and right ones skip files.

The law: of tables that each release of Hudi wrote by random inserts, upserts, deletes, rollbacks,
clusterings and compactions, a scan for keys gives the rows that a scan without pruning gives, also
where some files of the index are lost.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.storage.routed import open_storage
from bridge.table.hudi.files import metadata_entries
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.timeline.commit_metadata import read_row_counts
from tests.support.hudi_fixtures import BUNDLES, HudiFixture, few, hudi_fixtures
from tests.support.hudi_keys import ask_for_keys, require_all_rows, without_each
from tests.tiers import examples

pytestmark = pytest.mark.usefixtures("patient")

CONDITIONS = examples(6, 10, 300)
NAMES = (
    "cow_record_index",
    "cow_record_index_and_deleted",
    "cow_record_index_compacted",
    "cow_record_index_of_duplicates",
    "cow_record_index_rolled_back",
    "mor_record_index",
)
TABLES = [fixture for name in NAMES for fixture in hudi_fixtures(names=[name])]


@pytest.mark.parametrize("fixture", TABLES, ids=lambda f: f.id)
def test_no_entry_loses_a_row(fixture: HudiFixture, session: bridge.Session) -> None:
    luck = random.Random(fixture.id)
    table = session.table(str(fixture.path()))
    require_all_rows(table, luck, ask_for_keys, CONDITIONS)
    require_all_rows(table, luck, ask_for_keys, CONDITIONS, read_optimized=True)
    for each in fixture.answers().as_of[: examples(1, 2, 9)]:
        require_all_rows(table, luck, ask_for_keys, CONDITIONS, version=each.instant)


@pytest.mark.parametrize("bundle", ["1.0.2", "1.2.0"])
def test_a_lost_log_hides_no_key_of_two_files(
    bundle: str, session: bridge.Session, tmp_path: Path
) -> None:
    """Deletions and rows inserted twice may leave as many entries as a file has rows."""
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_record_index_and_deleted"])
    root = fixture.unpack(tmp_path)
    logs = sorted((root / ".hoodie/metadata/record_index").glob(".record-index-*"))
    assert len(logs) > 4
    for lost, without in without_each(root, logs):
        table = session.table(str(without))
        found = table.scan("id = 3")
        assert found.to_arrow().num_rows == 2
        if "_00000000000000" in lost.name:  # the first log of a group, which holds nothing
            assert found.explain().files_kept == 2
        else:
            (problem,) = [r for r in found.explain().not_used if r.index == "record_index"]
            assert lost.name in problem.detail


@pytest.mark.parametrize("fixture", few(TABLES), ids=lambda f: f.id)
def test_a_lost_file_of_the_index_loses_no_row(
    fixture: HudiFixture, session: bridge.Session, tmp_path: Path
) -> None:
    luck = random.Random(fixture.id)
    root = fixture.unpack(tmp_path)
    files = sorted((root / ".hoodie/metadata/record_index").iterdir())
    some = luck.sample(files, min(len(files), examples(1, 2, 99)))
    for _, without in without_each(root, some):
        require_all_rows(session.table(str(without)), luck, ask_for_keys, CONDITIONS)


def test_commits_tell_how_many_rows_their_files_have() -> None:
    told = 0
    for fixture in few(hudi_fixtures()):
        root = fixture.path()
        view = FileSystemView.open(open_storage(), f"file://{root}")
        paths = {path.name: path for path in root.rglob("*.parquet") if ".hoodie" not in path.parts}
        done = [i for i in view.timeline.completed.values() if "commit" in i.action]
        for uri in view.timeline.uris_of(done):
            rows = read_row_counts(Path(uri.removeprefix("file://")).read_bytes(), uri)
            for name in rows.keys() & paths.keys():
                told += 1
                assert pq.ParquetFile(paths[name]).metadata.num_rows == rows[name], (uri, name)
    assert told > 150


@pytest.mark.parametrize("bundle", BUNDLES)
def test_keys_skip_files_before_an_index_exists(bundle: str, session: bridge.Session) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_record_index"])
    table = session.table(str(fixture.path()))
    every = table.scan().explain().files_total
    assert every >= 4
    for asked, kept in {
        "\"_hoodie_record_key\" = '51'": 1,
        "\"_hoodie_record_key\" IN ('51', '51', '52')": 2,
        "\"_hoodie_record_key\" = 'none'": 0,
        "\"_hoodie_record_key\" = '51' AND price > 0": 1,
        "\"_hoodie_record_key\" = '51' OR price > 0": every,
        "\"_hoodie_record_key\" <> '51'": every,
        '"_hoodie_record_key" IS NULL': every,
        "id = 51": 1 if bundle >= "1" else every,  # 0.15 may have updated it, and not the key
        "id = 20": 0 if bundle >= "1" else every,  # deleted
        "id BETWEEN 51 AND 51": 1 if bundle >= "1" else every,
    }.items():
        report = table.scan(asked).explain()
        if asked.startswith("id BETWEEN"):
            assert report.files_kept in (kept, every), asked
            continue
        assert report.files_kept == kept, asked
        if kept < every:
            assert report.stages[-1].index == "record_index"


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_key_of_two_files_is_read_from_both(bundle: str, session: bridge.Session) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_record_index_of_duplicates"])
    table = session.table(str(fixture.path()))
    rows = table.scan("\"_hoodie_record_key\" = '4'")
    assert rows.to_arrow().num_rows == 2
    assert 2 <= rows.explain().files_kept < rows.explain().files_total


@pytest.mark.parametrize("bundle", ["0.15.0", "1.2.0"])
def test_a_commit_without_metadata_makes_all_unknown(
    bundle: str, session: bridge.Session, tmp_path: Path
) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_record_index"])
    root = fixture.unpack(tmp_path)
    own = root / ".hoodie/metadata/.hoodie"
    own = own if bundle < "1" else own / "timeline"
    last = max(f.name for f in own.iterdir() if f.name.endswith(".deltacommit"))
    (own / last).unlink()
    report = session.table(str(root)).scan("\"_hoodie_record_key\" = '51'").explain()
    assert report.files_kept == report.files_total
    (problem,) = [reason for reason in report.not_used if reason.index == "record_index"]
    assert "without the commit" in problem.detail


def test_more_entries_than_are_read(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_entries, "MOST", 3)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_record_index"])
    report = session.table(str(fixture.unpack(tmp_path))).scan("id = 51").explain()
    assert report.files_kept == report.files_total
    (problem,) = [reason for reason in report.not_used if reason.index == "record_index"]
    assert problem.reason == "LIMIT_EXCEEDED"
