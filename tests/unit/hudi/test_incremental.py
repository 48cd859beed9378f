"""What changed in a range of the timeline: which groups are read, and whose rows count."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from bridge.kernel.errors import BridgeError, FileCorrupt, InvalidRequest, ReadVersionNotFound
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.incremental import changes_between
from bridge.table.hudi.timeline.archived_timeline import load_history
from tests.support.hudi_tables import HudiTable
from tests.support.hudi_writer import avro_block

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def changes(
    table: HudiTable, start: str, end: str | None = None
) -> tuple[list[str], list[str], set[str]]:
    """Base files, logs, and instants."""
    view = FileSystemView.open(LocalStorage(), table.uri)
    found = changes_between(view, start, end, files=FileListing.of(table.listing()))
    if view.commits_suffice():
        same = changes_between(view, start, end)
        assert same.instants == found.instants
        assert same.slices.base_paths.to_pylist() == found.slices.base_paths.to_pylist()
        # Before version 8 names of logs do not tell when they were written.
        logs = set(same.slices.log_paths.to_pylist())
        assert logs == set(found.slices.log_paths.to_pylist()) or view.config.version < 8
        assert logs <= set(found.slices.log_paths.to_pylist())
        found = same
    slices = found.slices
    bases = [path for path in slices.base_paths.to_pylist() if path]
    return bases, slices.log_paths.to_pylist(), set(found.instants)


@VERSIONS
def test_only_groups_that_were_written_to(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("p", "b", "1")
    table.commit("1", [a, b])
    newer = table.base("p", "a", "2", previous="1")
    table.commit("2", [newer])
    log = table.log("p", "b", "1" if version == 6 else "3", previous="1")
    table.commit("3", [log])
    assert changes(table, "1") == ([newer.path, b.path], [log.path], {"2", "3"})
    assert changes(table, "1", "2") == ([newer.path], [], {"2"})
    assert changes(table, "2") == ([b.path], [log.path], {"3"})
    assert changes(table, "0", "1") == ([a.path, b.path], [], {"1"})
    assert changes(table, "3") == ([], [], set())
    assert changes(table, "5", "4") == ([], [], set())


@pytest.mark.parametrize("version", [8, 9])
def test_completion_times_bound_the_range(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    late, soon = table.base("p", "a", "1"), table.base("p", "b", "2")
    table.commit("1", [late], end="9")
    table.commit("2", [soon], end="3")
    assert changes(table, "3") == ([late.path], [], {"1"})
    assert changes(table, "1", "3") == ([soon.path], [], {"2"})
    assert changes(table, "1", "9") == ([late.path, soon.path], [], {"1", "2"})


@VERSIONS
def test_compaction_changes_no_rows_and_clustering_moves_them(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("p", "b", "1")
    table.commit("1", [a, b])
    log = table.log("p", "a", "1" if version == 6 else "2", previous="1")
    table.commit("2", [log])
    compacted = table.base("p", "a", "3", previous="1")
    table.commit("3", [compacted], action="commit", operation="COMPACT")
    assert changes(table, "2") == ([], [], {"3"})
    assert changes(table, "1") == ([compacted.path], [], {"2", "3"})
    c = table.base("p", "c", "4")
    replaced = {"p": ["a"]}
    table.commit("4", [c], action="replacecommit", operation="CLUSTER", replaced=replaced)
    assert changes(table, "1") == ([c.path], [], {"2", "3", "4"})
    assert changes(table, "1", "2") == ([a.path], [log.path], {"2"})


@VERSIONS
def test_archived_commits_count(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("p", "b", "2")
    table.commit("1", [a])
    table.commit("2", [b])
    c = table.base("q", "c", "3")
    replaced = {"p": ["z"]}
    table.commit("3", [c], action="replacecommit", replaced=replaced)
    table.complete("4", "rollback", {"commitsRollback": ["0"]})
    before = changes(table, "1")
    table.commit("5", [])
    table.archive("1", "2", "3", "4")
    assert before == ([b.path, c.path], [], {"2", "3"})
    assert changes(table, "1") == ([b.path, c.path], [], {"2", "3", "5"})
    assert changes(table, "3") == ([], [], {"5"})
    view = FileSystemView.open(LocalStorage(), table.uri)
    history = load_history(LocalStorage(), view.config)
    assert sorted(history.completions) == ["1", "2", "3"]
    assert history.rolled_back == {"0"}
    assert [i.commit().replaced for i in history.writes("2", "3")] == [replaced]


@pytest.mark.rule("32")
def test_32_an_archived_entry_that_would_become_more_than_it_is_is_damage(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 6)
    table.commit("2", [])
    one = {"type": "record", "name": "one", "fields": [{"name": "a", "type": ["null", "long"]}]}
    objects = {"type": "array", "items": one}
    fields = [("commitTime", "string"), ("actionType", "string"), ("more", objects)]
    schema = {"type": "record", "name": "e", "fields": [{"name": n, "type": t} for n, t in fields]}
    entry = {"commitTime": "1", "actionType": "commit", "more": [{"a": None}] * (1 << 21)}
    path = table.history / ".commits_.archive.1_1-0-1"
    path.write_bytes(avro_block("1", schema, [entry]))
    with pytest.raises(FileCorrupt, match=f"bytes state {1 << 21} values"):
        changes(table, "0")


@VERSIONS
def test_a_damaged_archive_is_an_error(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")])
    table.commit("2", [])
    table.archive("1")
    pattern = ".commits*" if version == 6 else "*.parquet"
    (path,) = table.history.glob(pattern)
    whole = path.read_bytes()
    for at in range(0, len(whole) - 40, 61):
        path.write_bytes(bytes([*whole[:at], whole[at] ^ 0x55, *whole[at + 1 :]]))
        with contextlib.suppress(BridgeError):
            assert "2" in changes(table, "0")[2]
    path.write_bytes(b"")
    if version > 6:
        with pytest.raises(FileCorrupt, match=path.name):
            changes(table, "0")


@VERSIONS
def test_a_version_whose_files_were_cleaned_is_refused_if_they_are_needed(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable(tmp_path / "t", version)
    a, b = table.base("p", "a", "1"), table.base("p", "b", "2")
    table.commit("1", [a])
    table.commit("2", [b])
    table.commit("3", [table.base("p", "a", "3", previous="1")])
    table.delete(a)
    deleted = {"p": {"deletePathPatterns": [a.name], "successDeleteFiles": []}}
    body = {"earliestCommitToRetain": "3", "partitionMetadata": deleted}
    table.complete("4", "clean", body)
    assert changes(table, "1", "2") == ([b.path], [], {"2"})
    with pytest.raises(ReadVersionNotFound):
        changes(table, "0", "1")


def test_rows_without_commit_times_cannot_be_told(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8, hoodie__populate__meta__fields="false")
    table.commit("1", [])
    with pytest.raises(InvalidRequest, match="without meta fields"):
        changes(table, "0")
