"""The active timeline: which names count, and in which state."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.table_config import load_table_config
from bridge.table.hudi.timeline.commit_metadata import (
    read_clean,
    read_clean_plan,
    read_commit,
    read_rollback,
)
from bridge.table.hudi.timeline.instant import State, parse_instant
from bridge.table.hudi.timeline.timeline import HudiTimeline, load_timeline
from tests.support.hudi_tables import HudiTable, avro_body


def load(table: HudiTable) -> HudiTimeline:
    storage = LocalStorage()
    return load_timeline(storage, load_table_config(storage, table.uri))


@pytest.mark.parametrize(
    ("name", "layout", "action", "state", "completion"),
    [
        ("1.commit", 1, "commit", State.COMPLETED, None),
        ("1.inflight", 1, "commit", State.INFLIGHT, None),
        ("1.commit.requested", 1, "commit", State.REQUESTED, None),
        ("1.compaction.inflight", 1, "compaction", State.INFLIGHT, None),
        ("1.replacecommit.requested", 1, "replacecommit", State.REQUESTED, None),
        ("1_2.commit", 2, "commit", State.COMPLETED, "2"),
        ("1.commit", 2, "commit", State.COMPLETED, ""),
        ("1.clustering.inflight", 2, "clustering", State.INFLIGHT, None),
        ("1_2.savepoint", 2, "savepoint", State.COMPLETED, "2"),
        ("1_2.schemacommit", 2, "schemacommit", State.COMPLETED, "2"),
    ],
)
def test_names(name: str, layout: int, action: str, state: State, completion: str | None) -> None:
    found = parse_instant(name, layout)
    assert found is not None
    assert (found.requested, found.action, found.state) == ("1", action, state)
    assert found.completion == completion


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("hoodie.properties", 1),
        (".1.commit.crc", 1),
        ("1.commit.crc", 1),
        ("1.commit.tmp", 2),
        ("1.commit.inflight", 1),
        ("1.unknown", 2),
        ("1.unknown.requested", 2),
        ("1_2.commit", 1),
        ("1_2.clustering", 2),
        ("1.clustering.requested", 1),
        ("1.compaction", 1),
        ("1", 1),
        ("1_2_3.commit", 2),
        ("_version_", 2),
        ("1.Commit", 2),
        ("\u0661.commit", 2),
    ],
)
def test_names_that_hudi_ignores(name: str, layout: int) -> None:
    assert parse_instant(name, layout) is None


def test_the_latest_state_of_each_action_counts(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 6)
    table.commit("1", [])
    table.begin("2", "compaction")
    table.complete("2", "commit", {"partitionToWriteStats": {}})
    table.begin("3", "compaction")
    table.begin("4", "deltacommit", inflight=False)
    table.state("1.savepoint", b"x")
    found = load(table)
    states = [(i.requested, i.action, i.state) for i in found.instants]
    assert states == [
        ("1", "deltacommit", State.COMPLETED),
        ("1", "savepoint", State.COMPLETED),
        ("2", "commit", State.COMPLETED),
        ("3", "compaction", State.INFLIGHT),
        ("4", "deltacommit", State.REQUESTED),
    ]
    assert sorted(found.completed) == ["1", "2"]
    assert [i.requested for i in found.pending] == ["3", "4"]
    assert found.savepoints == {"1"}
    assert found.last is not None
    assert found.last.requested == "2"
    # A commit with a savepoint may be left behind by archival.
    assert found.first_active == "2"
    assert not found.is_archived("1")
    assert found.is_archived("0")


def test_a_completed_clustering_is_a_replacecommit(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8)
    table.begin("1", "clustering")
    assert [i.action for i in load(table).pending] == ["clustering"]
    table.complete("1", "replacecommit", {"partitionToWriteStats": {}})
    assert [i.action for i in load(table).instants] == ["replacecommit"]


def test_completion_times_order_what_instants_do_not(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 9)
    table.commit("1", [], end="9")
    table.commit("2", [], end="3")
    found = load(table)
    assert found.last is not None
    assert found.last.requested == "2"
    assert found.last_completion == "9"


def test_an_unfinished_upgrade_is_refused(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8)
    table.state("1.commit", b"{}")
    with pytest.raises(UnsupportedTable, match=r"1\.commit has no completion time"):
        load(table)


def test_an_empty_timeline(tmp_path: Path) -> None:
    found = load(HudiTable(tmp_path / "t", 9))
    assert found.instants == ()
    assert found.last is None
    assert not found.is_archived("1")


@pytest.mark.parametrize("version", [6, 8])
def test_a_completed_body_that_was_cut_is_an_error_at_every_byte(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "t", version)
    path = table.commit("1", [table.base("p", "a", "1"), table.log("p", "b", "1")], schema="{}")
    whole = path.read_bytes()
    assert len(read_commit(whole, path.name).names) == 2
    for length in range(len(whole)):
        with pytest.raises(FileCorrupt, match=path.name):
            read_commit(whole[:length], path.name)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b'{"partitionToWriteStats": {"p": [{"path": "q/a_1_1.parquet", "fileSizeInBytes": 1}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/a", "fileSizeInBytes": null}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/d/a", "fileSizeInBytes": 1}]}}',
        b'{"partitionToWriteStats": []}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/a", "fileSizeInBytes": 1e400}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/a", "fileSizeInBytes": 1e19}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/a", "fileSizeInBytes": -1}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/\\ud800", "fileSizeInBytes": 1}]}}',
        b'{"partitionToWriteStats": {}, "extraMetadata": {"schema": 5}}',
        b'{"partitionToWriteStats": {}, "extraMetadata": []}',
        b'{"partitionToWriteStats": {}, "operationType": 5}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": [["a"]]}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": [5.0]}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": "a"}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": {"a": "b"}}}',
        b"\xff\xfe",
        b"Obj\x01",
    ],
)
def test_bodies_that_say_something_else_are_errors(body: bytes) -> None:
    with pytest.raises(FileCorrupt, match=r"1\.commit"):
        read_commit(body, "1.commit")


@pytest.mark.parametrize(
    "body",
    [
        b'{"partitionMetadata": {}, "earliestCommitToRetain": 5}',
        b'{"partitionMetadata": {"p": {"successDeleteFiles": ["\\ud800"]}}}',
        b'{"partitionMetadata": {"p": {"successDeleteFiles": "a.parquet"}}}',
        b'{"partitionMetadata": {"p": {"successDeleteFiles": [], "deletePathPatterns": "a"}}}',
        b'{"earliestInstantToRetain": {"timestamp": 5}}',
        b'{"filesToBeDeletedPerPartition": {"p": "a.parquet"}}',
        b'{"filePathsToBeDeletedPerPartition": {"p": [{"filePath": "\\ud800"}]}}',
    ],
)
def test_cleans_that_say_something_else_are_errors(body: bytes) -> None:
    read = read_clean if b"partitionMetadata" in body else read_clean_plan
    with pytest.raises(FileCorrupt, match=r"1\.clean"):
        read(body, "1.clean")


@pytest.mark.parametrize(
    "body",
    [
        b'{"commitsRollback": "20240101"}',
        b'{"instantsToRollback": "20240101", "hoodieRestoreMetadata": {}}',
        b'{"hoodieRestoreMetadata": {"1": [{"commitsRollback": "20240101"}]}}',
    ],
)
def test_rollbacks_that_say_something_else_are_errors(body: bytes) -> None:
    with pytest.raises(FileCorrupt, match=r"1\.rollback"):
        read_rollback(body, "1.rollback")


def test_handles_that_wrote_no_file_have_no_path() -> None:
    body = (
        b'{"partitionToWriteStats": {"p": [{"path": null, "fileSizeInBytes": 0}], "q": ['
        b'{"path": "q/a_1_1.parquet", "fileSizeInBytes": 5, "prevCommit": "null"}]}}'
    )
    found = read_commit(body, "1.commit")
    assert (found.partitions, found.counts, found.names) == (["q"], [1], ["a_1_1.parquet"])
    assert found.sizes == [5]
    assert found.previous == frozenset()


def test_bodies_of_other_actions() -> None:
    clean = avro_body(
        "clean",
        {
            "earliestCommitToRetain": "7",
            "partitionMetadata": {
                "p": {"deletePathPatterns": ["a"], "successDeleteFiles": ["file:/t/p/b", "a"]}
            },
        },
    )
    found = read_clean(clean, "8.clean")
    assert found.retained_from == "7"
    assert found.deleted == {"p": {"a", "b"}}
    plan = avro_body(
        "clean.requested",
        {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": "file:/t/p/c"}]}},
    )
    assert read_clean_plan(plan, "9.clean.requested").deleted == {"p": {"c"}}
    rollback = avro_body("rollback", {"commitsRollback": ["3"]})
    assert read_rollback(rollback, "4.rollback").instants == {"3"}
    restore = avro_body(
        "restore",
        {
            "instantsToRollback": ["5"],
            "hoodieRestoreMetadata": {"6": [{"commitsRollback": ["6"]}]},
        },
    )
    assert read_rollback(restore, "7.restore").instants == {"5", "6"}
