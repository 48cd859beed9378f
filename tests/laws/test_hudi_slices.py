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

from bridge.errors import ReadVersionNotFound
from bridge.storage.local import LocalStorage
from bridge.table.hudi.file_slices import FileSlices
from bridge.table.hudi.file_system_view import FileListing, FileSystemView
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
        view = early.refreshed()
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
