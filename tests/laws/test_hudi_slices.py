"""File slices of random Hudi histories hold exactly the items that were written.

A model writer inserts, updates, compacts, clusters, overwrites, cleans, crashes and rolls back.
What each file holds is known, so what a snapshot must hold is counted item by item.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import ReadVersionNotFound
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.incremental import HudiChanges, changes_between
from bridge.table.hudi.timeline.instants import instant_at
from bridge.table.model import TableName
from tests.support.hudi_history import History, Item

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def by_group(slices: FileSlices) -> dict[tuple[str, str], tuple[str, list[str]]]:
    logs = slices.log_paths.to_pylist()
    offsets = slices.log_offsets.tolist()
    ends = (offsets[:-1], offsets[1:])
    texts = (slices.file_ids.to_pylist(), slices.base_paths.to_pylist())
    return {
        (slices.partitions[p], group): (base, logs[begin:end])
        for p, group, base, begin, end in zip(slices.partition.tolist(), *texts, *ends, strict=True)
    }


def held(history: History, slices: FileSlices, as_of: str | None = None) -> list[Item]:
    """The items in all files of the slices. Readers leave out blocks of later instants in logs."""
    found = [item for path in slices.base_paths.to_pylist() if path for item in history.held[path]]
    logs = [item for path in slices.log_paths.to_pylist() for item in history.held[path]]
    committed = history.wrote
    found += [i for i in logs if i in committed and (as_of is None or i[0] <= as_of)]
    return sorted(found)


def sizes_are_right(history: History, slices: FileSlices) -> bool:
    files = zip(slices.base_paths.to_pylist(), slices.base_sizes.tolist(), strict=True)
    logs = zip(slices.log_paths.to_pylist(), slices.log_sizes.tolist(), strict=True)
    sizes = history.table.sizes
    return all(sizes[path] == size for path, size in [*files, *logs] if path)


@VERSIONS
@settings(max_examples=settings.default.max_examples // 10)
@given(random=st.randoms(use_true_random=False), merge_on_read=st.booleans())
def test_snapshots_hold_what_was_written(version: int, random: Random, merge_on_read: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        history = History(Path(directory) / "t", version, random, merge_on_read)
        history.run(random.randint(1, 12))
        early = FileSystemView.open(LocalStorage(), history.table.uri)
        early.slices()
        history.run(random.randint(0, 30))
        if random.random() < 0.3:
            history.finish()
        view = early.refresh()
        assert view.commits_suffice()
        listing = FileListing.of(history.table.listing())
        by_commits, by_listing = view.slices(), view.slices(files=listing)
        assert held(history, by_commits) == history.items()
        assert held(history, by_listing) == history.items()
        assert by_group(by_commits) == history.slices()
        assert sizes_are_right(history, by_commits)
        assert sizes_are_right(history, by_listing)
        listed = by_group(by_listing)
        if version >= 8:
            assert listed == history.slices()
        for group, (base, logs) in history.slices().items():
            # Before version 8 names of logs do not tell those of failed writes apart.
            assert listed[group][0] == base
            assert set(logs) <= set(listed[group][1])


@VERSIONS
@settings(max_examples=settings.default.max_examples // 10)
@given(random=st.randoms(use_true_random=False), merge_on_read=st.booleans())
def test_older_versions_hold_what_was_written_by_then(
    version: int, random: Random, merge_on_read: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        history = History(Path(directory) / "t", version, random, merge_on_read)
        history.run(random.randint(1, 30))
        view = FileSystemView.open(LocalStorage(), history.table.uri)
        listing = FileListing.of(history.table.listing())
        chosen = random.sample(history.versions, min(4, len(history.versions)))
        for requested, completed in chosen:
            open_write = history.open_write(end=requested)
            try:
                assert instant_at(TableName("d", "t"), view, requested) == requested
                assert not open_write
            except ReadVersionNotFound as error:
                assert open_write and f" {open_write} is " in error.message
            for files in (None, listing):
                try:
                    slices = view.slices(as_of=requested, files=files)
                except ReadVersionNotFound:
                    assert any(history.table.timeline.glob("*.clean"))
                else:
                    assert held(history, slices, requested) == history.items(as_of=requested)
                    assert sizes_are_right(history, slices)
                if version < 8:
                    continue
                try:
                    slices = view.slices(completed_by=completed, files=files)
                except ReadVersionNotFound:
                    assert any(history.table.timeline.glob("*.clean"))
                else:
                    expected = history.items(completed_by=completed)
                    assert held(history, slices) == expected


def changed(
    history: History, view: FileSystemView, start: str, end: str | None, files: FileListing
) -> HudiChanges | None:
    """What changed in a range; None if its end is too old, or a write of it is pending."""
    by = "completion" if view.config.completes else "request"
    open_write = history.open_write(start, end, by)
    try:
        found = changes_between(view, start, end, files=files)
    except ReadVersionNotFound as error:
        assert f" {open_write} is " in error.message if open_write else end is not None
        assert ("is not closed" in error.message) == bool(open_write)
        return None
    assert not open_write, open_write
    return found


def parts(
    found: HudiChanges,
) -> tuple[frozenset[str], dict[tuple[str, str], tuple[str, list[str]]]]:
    return found.instants, by_group(found.slices)


@VERSIONS
@settings(max_examples=settings.default.max_examples // 10)
@given(random=st.randoms(use_true_random=False), merge_on_read=st.booleans())
def test_archival_changes_nothing(version: int, random: Random, merge_on_read: bool) -> None:
    """Neither the newest snapshot, nor what changed in a range, nor where ranges meet."""
    with tempfile.TemporaryDirectory() as directory:
        # Before version 8 Hudi takes a file that a rollback left for committed once it is archived.
        history = History(Path(directory) / "t", version, random, merge_on_read, tidy=version < 8)
        history.run(random.randint(2, 40))
        files = FileListing.of(history.table.listing())
        before = FileSystemView.open(LocalStorage(), history.table.uri)
        newest = by_group(before.slices(files=files))
        times = sorted(end if version >= 8 else at for at, end in history.versions)
        points = ["", *random.sample(times, min(3, len(times)))]
        ranges = [(a, b) for a in points for b in (*points[1:], None)]
        told = [changed(history, before, *each, files) for each in ranges]
        history.archive()
        view = FileSystemView.open(LocalStorage(), history.table.uri)
        slices = view.slices(files=files)
        assert by_group(slices) == newest
        assert held(history, slices) == history.items()
        for each, known in zip(ranges, told, strict=True):
            found = changed(history, view, *each, files)
            if found is not None and known is not None:
                assert parts(found) == parts(known), each
            if found is not None and each[1] is not None:
                rest = changed(history, view, each[1], None, files)
                whole = changed(history, view, min(each[0], each[1]), None, files)
                if rest is not None and whole is not None:
                    assert found.instants | rest.instants == whole.instants, each


@VERSIONS
@settings(max_examples=settings.default.max_examples // 10)
@given(random=st.randoms(use_true_random=False), merge_on_read=st.booleans())
def test_a_consumer_gets_every_change_once(
    version: int, random: Random, merge_on_read: bool
) -> None:
    """Range after range, whatever is pending at their borders, and what is archived meanwhile."""
    with tempfile.TemporaryDirectory() as directory:
        history = History(
            Path(directory) / "t", version, random, merge_on_read, tidy=True, restores=False
        )
        last, consumed = "", list[str]()
        for _ in range(random.randint(1, 8)):
            history.run(random.randint(0, 8))
            if random.random() < 0.3:
                history.archive()
            points = sorted(done if version >= 8 else at for at, done in history.versions)
            later = [point for point in points if point > last]
            ends = [None, None, *random.sample(later, min(1, len(later))), history.now]
            last = poll(history, last, random.choice(ends), consumed)
        history.finish()
        poll(history, last, None, consumed)
        wrote = {instant for instant, _ in history.wrote}  # compactions and clusterings did not
        assert sorted(i for i in consumed if i in wrote) == sorted(wrote)


def poll(history: History, last: str, end: str | None, consumed: list[str]) -> str:
    """Where the next range begins."""
    view = FileSystemView.open(LocalStorage(), history.table.uri)
    completes = view.config.completes
    found = changed(history, view, last, end, FileListing.of(history.table.listing()))
    if found is None:
        return last
    consumed += found.instants
    bounds = {"completed_by" if completes else "as_of": end}
    expected = [item for item in history.items(**bounds) if item[0] in found.instants]
    inside = held(history, found.slices, None if completes else end)
    assert [item for item in inside if item[0] in found.instants] == expected
    return end or view.last_completion or max(view.timeline.completed, default="")
