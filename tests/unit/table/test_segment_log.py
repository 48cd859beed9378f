"""The log of a table of segments: commits, conflicts and damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.kernel.errors import (
    ReadVersionNotFound,
    SegmentConflict,
    SegmentLogCorrupt,
    StorageFailure,
    TableExists,
    TableNotFound,
)
from bridge.kernel.types import BIGINT, decimal
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileTable
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import (
    FileReader,
    FileSet,
    IndexDefinition,
    LogFile,
    Segment,
    SegmentColumn,
    SegmentManifest,
    Status,
    TableDefinition,
    ViewFiles,
    ViewRecord,
    order,
    parse_manifest,
)

DEFINITION = TableDefinition("u", (SegmentColumn(0, "a", BIGINT),), "csv", (("csv.header", "a"),))


@pytest.fixture
def log(tmp_path: Path) -> SegmentLog:
    made = SegmentLog(LocalStorage(), f"file://{tmp_path}/t")
    made.create(DEFINITION)
    return made


def version_file(log: SegmentLog, number: int) -> Path:
    return Path(f"{log.root.removeprefix('file://')}/_segments/versions/{number:020}.json")


def files(*names: str) -> FileTable:
    return FileTable(
        pa.array([f"file:///{n}" for n in names], pa.large_string()),
        np.arange(len(names)) + 1,
        np.arange(len(names)) + 1000,
    )


def segment(log: SegmentLog, id: str, *names: str) -> Segment:
    readers = (FileReader("csv", (), ("a",)),)
    return Segment(id, Status.SUCCESS, 1, 2, ("file:///d",), readers, log.put_files(files(*names)))


def test_a_manifest_is_read_as_it_was_written() -> None:
    held = FileSet(LogFile("_segments/files/x", 3, "00"), 2, 7)
    index = IndexDefinition("b", "bloom", ("a",), (("fpp", "0.1"),), False, True)
    view = ViewRecord("v", "1", ("a",), ("a",), (("SORT_SCOPE", "x"),), False, True, True,
                          (index,))  # fmt: skip
    column = SegmentColumn(3, "p", decimal(10, 2), "a price")
    definition = TableDefinition("u", (column,), "csv", (), (index,), (view,), 7, 9, "words")
    made = Segment("0.1", Status.COMPACTED, 1, 2, ("file:///a",), (FileReader("csv", (("k", "v"),),
                   ("a", "b")), FileReader("orc")), held, (ViewFiles("v", "1", held, "s", "r"),),
                   ("0", "1"), "0.2")  # fmt: skip
    manifest = SegmentManifest(5, "c", 99, "ADD", definition, (made,))
    assert parse_manifest(manifest.to_bytes(), "x") == manifest
    assert made.format == "csv, orc"
    assert sorted(["10", "0.1", "2", "0"], key=order) == ["0", "0.1", "2", "10"]


def test_a_damaged_newest_version_is_an_error_and_no_older_one_is_taken(log: SegmentLog) -> None:
    log.commit("ADD", lambda held: held.with_segments(segment(log, "0", "a")))
    path = version_file(log, 2)
    whole = path.read_bytes()
    body = json.loads(whole)
    for damaged in (
        b"",
        whole[:-20],
        whole.replace(b"file:///d", b"file:///e"),
        json.dumps({**body, "format": "other"}).encode(),
        json.dumps({**body, "version": 1}).encode(),
        json.dumps({k: v for k, v in body.items() if k != "segments"}).encode(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(SegmentLogCorrupt):
            log.latest()
        with pytest.raises(SegmentLogCorrupt):
            log.commit("ADD", lambda held: replace(held, segments=()))
    path.write_bytes(whole)
    assert log.latest().segment("0") is not None
    path.rename(version_file(log, 3))
    with pytest.raises(SegmentLogCorrupt, match="says it is version 2"):
        log.latest()


def test_a_damaged_list_of_files_is_an_error(log: SegmentLog) -> None:
    made = segment(log, "0", "b", "a")
    log.commit("ADD", lambda held: held.with_segments(made))
    assert log.read_files(made.files).files.paths.to_pylist() == ["file:///a", "file:///b"]
    fresh = replace(made.files, blob=replace(made.files.blob, sha256="0" * 64))
    with pytest.raises(SegmentLogCorrupt, match="checksum"):
        log.read_files(fresh)
    other = segment(log, "1", "c")
    Path(f"{log.root.removeprefix('file://')}/{other.files.blob.name}").unlink()
    with pytest.raises(SegmentLogCorrupt, match="is gone"):
        log.read_files(other.files)
    with pytest.raises(SegmentLogCorrupt, match="deleted before it was committed"):
        log.commit("ADD", lambda held: held.with_segments(other))
    assert log.latest().segments == (made,)


def test_a_change_is_made_again_on_what_another_committed(log: SegmentLog) -> None:
    rival = SegmentLog(LocalStorage(), log.root)
    asked: list[int] = []

    def change(held: SegmentManifest) -> SegmentManifest:
        if not asked:
            rival.commit("ADD", lambda now: now.with_segments(segment(rival, "0", "a")))
        asked.append(held.version)
        return held.with_segments(segment(log, str(len(held.segments)), "b"))

    assert [s.id for s in log.commit("ADD", change).segments] == ["0", "1"]
    assert asked == [1, 2]


def test_others_that_always_win_end_in_a_conflict(log: SegmentLog, monkeypatch: Any) -> None:
    monkeypatch.setattr("bridge.table.segments.log.time.sleep", lambda seconds: None)
    rival = SegmentLog(LocalStorage(), log.root)
    number = iter(range(1000))

    def change(held: SegmentManifest) -> SegmentManifest:
        rival.commit("SET", lambda now: replace(now, operation=str(next(number)), segments=()))
        return held.with_segments(segment(log, "0", "a"))

    with pytest.raises(SegmentConflict):
        log.commit("ADD", change)


class LosesAnswers(LocalStorage):
    """Writes versions, and says that it could not."""

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        super().put_if_absent(uri, content)
        raise StorageFailure("no answer", "")


def test_a_commit_whose_answer_was_lost_counts(log: SegmentLog) -> None:
    deaf = SegmentLog(LosesAnswers(), log.root)
    committed = deaf.commit("ADD", lambda held: held.with_segments(segment(log, "0", "a")))
    assert committed.version == 2
    assert log.latest() == committed


def test_a_table_is_made_once_and_again_after_it_was_dropped(log: SegmentLog) -> None:
    with pytest.raises(TableExists):
        log.create(DEFINITION)
    log.commit("DROP", lambda held: replace(held, dropped=True))
    with pytest.raises(TableNotFound):
        log.latest()
    assert log.create(replace(DEFINITION, id="w")).version == 3
    assert log.latest().definition.id == "w"


def test_no_version_at_all_is_an_error(tmp_path: Path) -> None:
    log = SegmentLog(LocalStorage(), f"file://{tmp_path}")
    assert log.newest() is None
    with pytest.raises(SegmentLogCorrupt):
        log.latest()


def test_cleaning_keeps_what_kept_versions_name(log: SegmentLog) -> None:
    for id in ("0", "1"):
        log.commit("ADD", lambda held, id=id: held.with_segments(segment(log, id, id)))  # type: ignore[misc]
    log.commit("DELETE", lambda held: replace(held, segments=held.segments[1:]))
    log.put_files(files("garbage"))
    assert log.clean(keep=1, older_than=3600) == 0
    assert log.clean(keep=2, older_than=0) == 3  # versions 1 and 2, and the garbage
    assert log.versions() == [3, 4]
    assert log.clean(keep=1, older_than=0) == 2  # version 3, and the files of segment 0
    assert len(log.read_files(log.latest().segments[0].files).files) == 1
    with pytest.raises(ReadVersionNotFound, match="kept are"):
        log.manifest(3)


def test_cleaning_at_once_spares_what_a_running_command_is_about_to_commit(log: SegmentLog) -> None:
    """It commits after the cleaner has looked for new versions."""
    log.commit("ADD", lambda held: held.with_segments(segment(log, "0", "gone")))
    log.commit("DELETE", lambda held: replace(held, segments=()))
    made = segment(log, "1", "new")
    cleaner = SegmentLog(log.storage, log.root)
    looks: list[list[int]] = []

    def versions() -> list[int]:
        looks.append(log.versions())
        if len(looks) == 2:
            log.commit("ADD", lambda held: held.with_segments(made))
        return looks[-1]

    cleaner.versions = versions  # type: ignore[method-assign]
    assert cleaner.clean(keep=1, older_than=0, running=3600) == 3  # two versions, and one's files
    held = SegmentLog(log.storage, log.root).latest().segments
    assert [s.id for s in held] == ["1"]
    assert log.storage.stat(f"{log.root}/{held[0].files.blob.name}") is not None
