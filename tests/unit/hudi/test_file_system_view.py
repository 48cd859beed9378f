"""File slices of made-up histories: what counts, in which order, from either source of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import FileCorrupt, InvalidRequest, ReadVersionNotFound, UnsupportedTable
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from tests.support.hudi_tables import HudiTable

Slices = dict[str, tuple[str | None, list[str]]]
"""Group, after its partition and a slash if it has one, to base file and logs."""
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def view(table: HudiTable) -> FileSystemView:
    return FileSystemView.open(LocalStorage(), table.uri)


def rows(slices: FileSlices) -> Slices:
    found: Slices = {}
    logs = slices.log_paths.to_pylist()
    columns = (
        slices.partition.tolist(),
        slices.file_ids.to_pylist(),
        slices.base_paths.to_pylist(),
    )
    for at, (partition, group, base) in enumerate(zip(*columns, strict=True)):
        path = slices.partitions[partition]
        assert bool(slices.has_base[at]) == bool(base)
        mine = logs[slices.log_offsets[at] : slices.log_offsets[at + 1]]
        assert all(each.rpartition("/")[0] == path for each in [*mine, *([base] if base else [])])
        found[f"{path}/{group}" if path else group] = (
            base.rpartition("/")[2] or None,
            [each.rpartition("/")[2] for each in mine],
        )
    assert list(found) == sorted(found)
    return found


def slices(table: HudiTable, **arguments: Any) -> Slices:
    """The slices by commit metadata, which equal those of a listing of storage."""
    opened = view(table)
    listed = rows(opened.slices(files=FileListing.of(table.listing()), **arguments))
    if opened.commits_suffice():
        assert rows(opened.slices(**arguments)) == listed
    return listed


@VERSIONS
def test_an_empty_table(tmp_path: Path, version: int) -> None:
    assert slices(HudiTable(tmp_path / "t", version)) == {}


@VERSIONS
def test_the_newest_base_file_of_each_group(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    a, b = table.base("p/q", "a", "1"), table.base("r", "b", "1", size=7)
    table.commit("1", [a, b], action="commit")
    newer = table.base("p/q", "a", "2", previous="1")
    table.commit("2", [newer], action="commit")
    assert slices(table) == {"p/q/a": (newer.name, []), "r/b": (b.name, [])}
    assert slices(table, as_of="1") == {"p/q/a": (a.name, []), "r/b": (b.name, [])}
    found = view(table).slices()
    assert found.base_paths.to_pylist() == [newer.path, b.path]
    assert found.base_sizes.tolist() == [100, 7]
    assert found.base_instants.to_pylist() == ["2", "1"]
    assert rows(view(table).slices(partitions={"r"})) == {"r/b": (b.name, [])}


@VERSIONS
def test_without_partitions(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("", "a", "1")
    table.commit("1", [a])
    log = table.log("", "a", "1" if version == 6 else "2", previous="1")
    table.commit("2", [log])
    assert slices(table) == {"a": (a.name, [log.name])}
    assert slices(table, base_only=True) == {"a": (a.name, [])}
    assert view(table).slices().log_paths.to_pylist() == [log.name]
    assert view(table).slices().log_instants.to_pylist() == ["2"]


@VERSIONS
@pytest.mark.parametrize("state", ["requested", "inflight", "nothing"])
def test_files_of_uncommitted_instants_do_not_count(
    tmp_path: Path, version: int, state: str
) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "2")
    table.commit("2", [a])
    for instant in ("3", "5"):
        if state != "nothing":
            table.begin(instant, "deltacommit", inflight=state == "inflight")
        table.base("p", "a", instant)
        table.base("p", "b", instant)
        if version > 6:
            table.log("p", "a", instant)
        table.log("p", "c", instant)
    table.commit("4", [])
    assert slices(table) == {"p/a": (a.name, [])}
    assert slices(table, as_of="9") == {"p/a": (a.name, [])}


@VERSIONS
def test_logs_alone(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    first = table.log("p", "a", "1")
    table.commit("1", [first])
    second = table.log("p", "a", "1" if version == 6 else "2", number=2, previous="1")
    table.commit("2", [second])
    assert slices(table) == {"p/a": (None, [first.name, second.name])}
    assert slices(table, base_only=True) == {}
    found = view(table).slices()
    assert found.base_instants.to_pylist() == ["1"]
    assert found.base_sizes.tolist() == [0]
    assert found.has_base.tolist() == [False]


@VERSIONS
def test_logs_are_merged_in_order_of_instant_version_and_token(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "1")
    table.commit("1", [a])
    name = "1" if version == 6 else "2"
    numbers = [(10, "0-1-2"), (9, "10-1-1"), (9, "2-1-1"), (2, "5-5-5")]
    written = [table.log("p", "a", name, number=n, token=t, previous="1") for n, t in numbers]
    table.commit("2", written)
    changes = table.log("p", "a", name, number=3, suffix=".cdc")
    assert slices(table) == {
        "p/a": (a.name, [written[i].name for i in (3, 1, 2, 0)]),
    }
    assert changes.name not in str(slices(table))


@VERSIONS
def test_a_compaction_while_it_is_pending_and_after(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "1")
    table.commit("1", [a])
    before = table.log("p", "a", "1" if version == 6 else "2", previous="1")
    table.commit("2", [before])
    table.begin("3", "compaction")
    after = table.log("p", "a", "3" if version == 6 else "4", previous="1")
    table.commit("4", [after])
    half = table.base("p", "a", "3", size=1)
    assert slices(table) == {"p/a": (a.name, [before.name, after.name])}
    assert slices(table, base_only=True) == {"p/a": (a.name, [])}
    table.delete(half)
    compacted = table.base("p", "a", "3", previous="1")
    table.begin("3", "compaction")
    table.commit("3", [compacted], action="commit", end="5", operation="COMPACT")
    assert slices(table) == {"p/a": (compacted.name, [after.name])}
    assert slices(table, as_of="2") == {"p/a": (a.name, [before.name])}


@pytest.mark.parametrize("version", [8, 9])
def test_a_log_belongs_to_the_base_file_that_was_requested_before_it_was_completed(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "1")
    table.commit("1", [a])
    # Requested before the compaction, completed after it was requested: not compacted.
    late = table.log("p", "a", "2", previous="1")
    table.commit("2", [late], end="6")
    soon = table.log("p", "a", "3", previous="1")
    table.commit("3", [soon], end="4")
    compacted = table.base("p", "a", "5", previous="1")
    table.commit("5", [compacted], action="commit", end="7", operation="COMPACT")
    assert slices(table) == {"p/a": (compacted.name, [late.name])}
    assert slices(table, completed_by="4") == {"p/a": (a.name, [soon.name])}
    assert slices(table, completed_by="6") == {"p/a": (a.name, [late.name, soon.name])}


@VERSIONS
def test_replaced_groups_are_gone(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("q", "a", "1")
    table.commit("1", [a, b])
    c = table.base("p", "c", "2")
    pending = "replacecommit" if version == 6 else "clustering"
    table.begin("2", pending)
    assert slices(table) == {"p/a": (a.name, []), "q/a": (b.name, [])}
    table.commit("2", [c], action="replacecommit", replaced={"p": ["a"]}, operation="CLUSTER")
    assert slices(table) == {"p/c": (c.name, []), "q/a": (b.name, [])}
    assert slices(table, as_of="1") == {"p/a": (a.name, []), "q/a": (b.name, [])}
    # A partition that was deleted: nothing is written in its place.
    table.commit("3", [], action="replacecommit", replaced={"q": ["a"]})
    assert slices(table) == {"p/c": (c.name, [])}


@VERSIONS
def test_what_was_rolled_back_and_left_behind_does_not_count(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "2")
    table.commit("2", [a])
    table.base("p", "a", "3")
    table.base("p", "b", "1")
    table.complete("4", "rollback", {"commitsRollback": ["1"]})
    table.complete("5", "rollback", {"commitsRollback": ["3"]})
    old = table.base("p", "c", "0")
    table.commit("0", [old])
    table.archive("0")
    assert not view(table).commits_suffice()
    assert slices(table) == {"p/a": (a.name, []), "p/c": (old.name, [])}


@pytest.mark.parametrize("version", [8, 9])
def test_archived_instants_keep_their_completion_times(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    early, late = table.log("p", "a", "1"), table.log("p", "a", "2")
    compacted = table.base("p", "a", "4")
    table.commit("1", [early], end="3")
    table.commit("2", [late], end="5")
    table.commit("4", [compacted], action="commit", end="6")
    table.archive("1", "2", "4")
    table.commit("7", [])
    assert early.name not in str(slices(table))
    assert slices(table) == {"p/a": (compacted.name, [late.name])}


@VERSIONS
def test_commits_do_not_suffice_if_something_is_missing(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "2", previous="1")
    table.commit("2", [a])
    assert not view(table).commits_suffice()
    with pytest.raises(InvalidRequest):
        view(table).slices()
    table.commit("1", [table.base("p", "a", "1")])
    assert view(table).commits_suffice()
    (table.history / "manifest_1").write_bytes(b'{"files": []}')
    assert not view(table).commits_suffice()
    with pytest.raises(InvalidRequest):
        view(table).slices()


@VERSIONS
def test_an_empty_completed_commit_is_an_error(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")])
    name = "2.replacecommit" if version == 6 else "2_3.replacecommit"
    table.state(name)
    with pytest.raises(FileCorrupt, match=name):
        view(table).slices()
    with pytest.raises(FileCorrupt, match=name):
        view(table).slices(files=FileListing.of(table.listing()))


@VERSIONS
def test_versions_whose_files_were_cleaned_are_refused(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    first, other = table.base("p", "a", "1"), table.base("q", "b", "1")
    table.commit("1", [first, other])
    for previous, instant in (("1", "2"), ("2", "4"), ("4", "6")):
        newest = table.base("p", "a", instant, previous=previous)
        table.commit(instant, [newest])
    expected = slices(table, as_of="4")
    table.delete(first)
    deleted = {"p": {"deletePathPatterns": [first.name], "successDeleteFiles": [first.name]}}
    body = {"earliestCommitToRetain": "2", "partitionMetadata": deleted}
    table.complete("5", "clean", body)
    assert slices(table) == {"p/a": (newest.name, []), "q/b": (other.name, [])}
    assert slices(table, as_of="4") == expected
    for instant in ("1", "0"):
        for files in (None, FileListing.of(table.listing())):
            with pytest.raises(ReadVersionNotFound):
                view(table).slices(as_of=instant, files=files)
    # Partitions that the clean did not touch can be read.
    assert rows(view(table).slices(as_of="1", partitions={"q"})) == {"q/b": (other.name, [])}


@VERSIONS
def test_a_partition_that_was_cleaned_up_whole_is_missed(tmp_path: Path, version: int) -> None:
    """Nothing lists it any more."""
    table = HudiTable(tmp_path / "t", version)
    first, other = table.base("p", "a", "1"), table.base("q", "b", "1")
    table.commit("1", [first, other])
    replaced = {"p": ["a"]}
    table.commit("2", [], action="replacecommit", operation="DELETE_PARTITION", replaced=replaced)
    table.delete(first)
    deleted = {"p": {"deletePathPatterns": [first.name], "successDeleteFiles": [first.name]}}
    table.complete("3", "clean", {"earliestCommitToRetain": "2", "partitionMetadata": deleted})
    for files in (None, FileListing.of(table.listing())):
        with pytest.raises(ReadVersionNotFound):
            view(table).slices(as_of="1", files=files)
        assert rows(view(table).slices(files=files)) == {"q/b": (other.name, [])}


@VERSIONS
@pytest.mark.parametrize("whole", [False, True], ids=["group", "partition"])
def test_what_archived_instants_replaced_is_not_missed(
    tmp_path: Path, version: int, whole: bool
) -> None:
    """A clean stays on the timeline longer than the instants whose files it deleted."""
    table = HudiTable(tmp_path / "t", version)
    first, other = table.base("p", "a", "1"), table.base("q", "b", "1")
    table.commit("1", [first, other] if whole else [first, other, table.base("p", "c", "1")])
    replaced = {"p": ["a"]}
    table.commit("2", [], action="replacecommit", operation="DELETE_PARTITION", replaced=replaced)
    table.delete(first)
    deleted = {"p": {"deletePathPatterns": [first.name], "successDeleteFiles": [first.name]}}
    table.complete("3", "clean", {"earliestCommitToRetain": "2", "partitionMetadata": deleted})
    table.commit("4", [table.base("q", "d", "4")])
    table.commit("5", [table.base("q", "e", "5")])
    table.archive("1", "2")
    kept = set() if whole else {"p/c"}
    assert set(slices(table, as_of="4")) == {"q/b", "q/d"} | kept


@VERSIONS
def test_a_pending_clean_may_have_deleted_what_it_plans_to(tmp_path: Path, version: int) -> None:
    from tests.support.hudi_tables import avro_body

    table = HudiTable(tmp_path / "t", version)
    first = table.base("p", "a", "1")
    table.commit("1", [first])
    table.commit("2", [table.base("p", "a", "2", previous="1")])
    table.state("3.clean.requested")
    assert slices(table, as_of="1") == {"p/a": (first.name, [])}
    plan = {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"x/p/{first.name}"}]}}
    table.state("3.clean.requested", avro_body("clean.requested", plan))
    table.state("3.clean.inflight")
    with pytest.raises(ReadVersionNotFound):
        view(table).slices(as_of="1")


@VERSIONS
def test_versions_older_than_the_active_timeline(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    kept = table.base("p", "a", "1")
    table.commit("1", [kept])
    table.complete("1", "savepoint", {"comments": ""})
    table.commit("2", [table.base("p", "a", "2", previous="1")])
    table.commit("5", [table.base("p", "a", "5", previous="2")])
    table.commit("6", [table.base("p", "a", "6", previous="5")])
    table.archive("2")
    assert slices(table, as_of="1") == {"p/a": (kept.name, [])}
    for instant in ("3", "0"):
        with pytest.raises(ReadVersionNotFound):
            slices(table, as_of=instant)
    # Nothing was cleaned after it.
    assert len(slices(table, as_of="5")) == 1
    table.complete("7", "clean", {"earliestCommitToRetain": "", "partitionMetadata": {}})
    table.archive("7", log=2)
    with pytest.raises(ReadVersionNotFound):
        slices(table, as_of="5")
    table.complete("9", "clean", {"earliestCommitToRetain": "5", "partitionMetadata": {}})
    assert len(slices(table, as_of="5")) == 1


@VERSIONS
def test_a_table_that_lost_its_timeline_is_not_empty(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")])
    table.archive("1")
    with pytest.raises(FileCorrupt, match="none on its timeline"):
        slices(table)


@VERSIONS
def test_a_restore_may_leave_nothing_but_savepoints(tmp_path: Path, version: int) -> None:
    """What was archived before counts on, and what was undone does not."""
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("p", "b", "2")
    table.commit("1", [a])
    table.commit("2", [b])
    c = table.base("p", "a", "3", previous="1")
    table.commit("3", [c])
    table.complete("3", "savepoint", {"comments": ""})
    table.commit("4", [table.base("p", "b", "4", previous="2")])
    table.archive("1", "2")
    table.forget("4")
    table.complete("5", "restore", {"instantsToRollback": ["4"]})
    assert slices(table) == {"p/a": (c.name, []), "p/b": (b.name, [])}
    assert slices(table, as_of="3") == slices(table)
    table.commit("6", [table.base("p", "d", "6")])
    assert set(slices(table)) == {"p/a", "p/b", "p/d"}


@VERSIONS
def test_two_base_files_of_one_commit_are_refused(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "1")
    table.commit("1", [a])
    table.base("p", "a", "1", token="0-9-9")
    with pytest.raises(FileCorrupt, match=r"0-1-2.*0-9-9|0-9-9.*0-1-2"):
        view(table).slices(files=FileListing.of(table.listing()))
    assert rows(view(table).slices()) == {"p/a": (a.name, [])}


@VERSIONS
def test_names_of_other_files_are_ignored(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a = table.base("p", "a", "1")
    table.commit("1", [a])
    for name in (
        ".hoodie_partition_metadata",
        f"{a.name}.crc",
        f".{a.name}.crc",
        "part-0000.parquet",
        "_SUCCESS",
        "b_0-1-2_1.orc",
        ".a_1.archive.1_0-1-2",
        ".a_1.log.99999999999999999999_0-1-2",
    ):
        table.stray(f"p/{name}")
    assert slices(table) == {"p/a": (a.name, [])}
    table.stray("p/data.parquet_1_hudiext")
    with pytest.raises(UnsupportedTable, match="hudiext"):
        slices(table)


@VERSIONS
def test_a_refreshed_view_reads_only_what_is_new(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")])
    first = view(table)
    assert len(first.slices()) == 1
    assert first.refresh() is first
    table.commit("2", [table.base("p", "b", "2")])
    # A body of the same size and time is not read again.
    body = next(table.timeline.glob("1*.deltacommit"))
    found = body.stat()
    body.write_bytes(b"x" * found.st_size)
    os.utime(body, ns=(found.st_atime_ns, found.st_mtime_ns))
    second = first.refresh()
    assert second is not first
    assert (len(first.slices()), len(second.slices())) == (1, 2)


@VERSIONS
def test_the_schema_is_that_of_the_newest_write(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, hoodie__table__create__schema='"created"')
    assert view(table).schema() == '"created"'
    table.commit("1", [], schema='"one"')
    table.commit("2", [], schema='"two"')
    table.commit("3", [], action="commit", schema='"three"', operation="COMPACT")
    table.commit("4", [])
    assert view(table).schema() == '"two"'
    assert view(table).schema(as_of="1") == '"one"'
