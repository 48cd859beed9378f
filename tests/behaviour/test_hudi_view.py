"""The file slices of tables that Spark wrote are those of Hudi's own file system view."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bridge.kernel.errors import BridgeError, ReadVersionNotFound
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.incremental import changes_between
from tests.support.hudi_fixtures import HudiFixture, Slice, few, hudi_fixtures

TABLES = pytest.mark.parametrize(
    "fixture", [pytest.param(one, id=one.id) for one in few(hudi_fixtures())]
)
Row = tuple[str, str, str, str | None, tuple[str, ...]]


def open_view(fixture: HudiFixture) -> FileSystemView:
    return FileSystemView.open(LocalStorage(), f"file://{fixture.path()}")


def listing(root: Path) -> FileListing:
    """Every data directory of a table, as a listing of storage has it."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and ".hoodie" not in inside.parts:
            partition = "" if inside.parent == Path() else inside.parent.as_posix()
            found.setdefault(partition, []).append((path.name, path.stat().st_size))
    return FileListing.of(found)


def rows(slices: FileSlices) -> list[Row]:
    logs = [path.rpartition("/")[2] for path in slices.log_paths.to_pylist()]
    offsets = slices.log_offsets.tolist()
    columns = zip(
        slices.partition.tolist(),
        slices.file_ids.to_pylist(),
        slices.base_instants.to_pylist(),
        slices.base_paths.to_pylist(),
        offsets[:-1],
        offsets[1:],
        strict=True,
    )
    return [
        (
            slices.partitions[partition],
            group,
            instant,
            base.rpartition("/")[2] or None,
            tuple(logs[begin:end]),
        )
        for partition, group, instant, base, begin, end in columns
    ]


def _without_changes(logs: tuple[str, ...]) -> tuple[str, ...]:
    """Hudi's view has the files for CDC queries too; its readers leave them out."""
    return tuple(log for log in logs if not log.endswith(".cdc"))


def own_rows(slices: Iterable[Slice]) -> list[Row]:
    return sorted(
        (s.partition, s.file_id, s.base_instant, s.base_file, _without_changes(s.logs))
        for s in slices
    )


def _named(log: str) -> str:
    """The instant in the name of a log."""
    return log.split("_")[1].split(".")[0]


@TABLES
def test_slices_are_those_of_hudis_own_view(fixture: HudiFixture) -> None:
    view = open_view(fixture)
    expected = own_rows(fixture.answers().slices)
    assert sorted(rows(view.slices(files=listing(fixture.path())))) == expected


@TABLES
def test_both_sources_give_the_same_slices(fixture: HudiFixture) -> None:
    view = open_view(fixture)
    if not view.commits_suffice():
        pytest.skip("some of its commits were archived")
    listed, committed = view.slices(files=listing(fixture.path())), view.slices()
    assert committed.base_sizes.tolist() == listed.base_sizes.tolist()
    if view.config.completes:
        assert rows(committed) == rows(listed)
        assert committed.log_sizes.tolist() == listed.log_sizes.tolist()
        return
    # Before version 8 names of logs do not tell those of failed writes and rollbacks apart.
    assert [row[:4] for row in rows(committed)] == [row[:4] for row in rows(listed)]
    sizes = [
        dict(zip(s.log_paths.to_pylist(), s.log_sizes.tolist(), strict=True))
        for s in (committed, listed)
    ]
    assert sizes[0].items() <= sizes[1].items()


@TABLES
def test_the_timeline_is_hudis(fixture: HudiFixture) -> None:
    view = open_view(fixture)
    expected = [
        (i.requested, i.action, i.state, i.completed if view.config.completes else None)
        for i in fixture.answers().timeline
    ]
    found = [(i.requested, i.action, i.state.name, i.completion) for i in view.timeline.instants]
    assert found == expected


@TABLES
def test_versions_that_spark_reads_are_there(fixture: HudiFixture) -> None:
    view = open_view(fixture)
    files = listing(fixture.path())
    for as_of in fixture.answers().as_of:
        try:
            slices = view.slices(as_of=as_of.instant, files=files)
        except BridgeError:
            assert as_of.answer.error is not None
            continue
        if as_of.answer.slices is not None:
            # Hudi's view has the later logs of a slice too; its readers leave out their blocks.
            expected = [
                (*row[:4], tuple(log for log in row[4] if _named(log) <= as_of.instant))
                for row in own_rows(as_of.answer.slices)
            ]
            assert sorted(rows(slices)) == expected
        elif as_of.answer.error is None and view.config.has_meta_fields:
            groups = {row[4].split("_")[0] for row in as_of.answer.rows}
            assert groups <= set(slices.file_ids.to_pylist())


@TABLES
def test_changes_hold_the_rows_that_spark_returns(fixture: HudiFixture) -> None:
    view = open_view(fixture)
    files = listing(fixture.path())
    for asked in fixture.answers().incremental:
        if asked.answer.error is not None or not view.config.has_meta_fields:
            continue
        # To the bundle of 1.0.2, the start belongs to the window.
        start = asked.begin[:-1] if fixture.bundle == "1.0.2" else asked.begin
        try:
            found = changes_between(view, start, asked.end, files=files)
        except ReadVersionNotFound:
            assert view.timeline.of("clean")
            continue
        groups = set(found.slices.file_ids.to_pylist())
        for row in asked.answer.rows:
            commit, name = row[0], row[4]
            assert commit in found.instants
            assert name.split("_")[0] in groups
