"""Coalescing emits every byte of every file exactly once, whatever the sizes and settings."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.planner.splits.coalesce import SplitSettings, by_reader, coalesce
from bridge.planner.splits.split import SplitBatch
from bridge.storage.port import FileTable
from bridge.table.model import Partition
from bridge.table.slices import ReaderSpec, SliceBatch


def files_of(sizes: list[int]) -> SliceBatch:
    n = len(sizes)
    files = FileTable(
        pa.array([f"file:///t/{i}" for i in range(n)], pa.large_string()),
        np.array(sizes, np.int64),
        np.full(n, 1_700_000_000_000_000, np.int64),
    )
    readers = (ReaderSpec("parquet"),)
    return SliceBatch(files, np.full(n, -1), np.zeros(n, np.int32), PARTITION, readers)


PARTITION = (Partition("", (), "file:///t"),)


def covered(batch: SplitBatch) -> dict[str, list[tuple[int, int]]]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    for path, start, length in zip(
        batch.paths.to_pylist(), batch.start.tolist(), batch.length.tolist(), strict=True
    ):
        ranges.setdefault(path, []).append((start, start + length))
    return ranges


@given(
    sizes=st.lists(st.integers(1, 2_000_000), max_size=200),
    target=st.integers(1_000, 500_000),
    open_cost=st.integers(0, 50_000),
    max_files=st.integers(1, 50),
    parallelism=st.integers(1, 40),
)
def test_every_byte_once(
    sizes: list[int], target: int, open_cost: int, max_files: int, parallelism: int
) -> None:
    settings = SplitSettings(target, open_cost, max_files, parallelism)
    files = files_of(sizes)
    batch = coalesce(files, settings)
    ranges = covered(batch)
    for i, size in enumerate(sizes):
        parts = sorted(ranges[f"file:///t/{i}"])
        assert parts[0][0] == 0
        assert parts[-1][1] == size
        assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    assert len(ranges) == len(sizes)
    per_split = np.diff(batch.first)
    assert (per_split >= 1).all() and (per_split <= max(max_files, 1)).all()
    assert batch.num_splits >= min(parallelism, batch.num_files)
    assert ((batch.weight >= 50) & (batch.weight <= 1000)).all()


def test_small_files_share_splits() -> None:
    batch = coalesce(files_of([4_000] * 39_000), SplitSettings())
    assert batch.num_splits <= 39_000 / 256 + 10


def test_early_splits_are_small() -> None:
    batch = coalesce(files_of([4_000] * 39_000), SplitSettings())
    counts = np.diff(batch.first)
    assert counts[0] < counts[10]


def test_large_file_is_cut_at_row_groups() -> None:
    groups = np.array([4, 100_000, 200_000, 300_000, 400_000], np.int64)
    settings = SplitSettings(target_bytes=150_000)
    batch = coalesce(files_of([500_000]), settings, lambda i: groups)
    assert set(batch.start.tolist()) <= {0, *groups.tolist()}
    assert batch.num_splits == 4
    assert batch.length.sum() == 500_000


@pytest.mark.rule("32")
def test_32_a_size_that_a_commit_may_state_is_cut_into_a_bounded_number_of_pieces() -> None:
    sizes = [2**56, 10, 2**62, 2**62, 2**62]
    batch = coalesce(files_of(sizes), SplitSettings())
    assert batch.num_files <= 4096 * len(sizes)
    for path, parts in covered(batch).items():
        assert parts[0][0] == 0 and parts[-1][1] == sizes[int(path[-1])]
        assert all(a[1] == b[0] for a, b in pairwise(sorted(parts)))


def test_one_file_per_split_when_joining_is_off() -> None:
    batch = coalesce(files_of([10] * 100), SplitSettings(max_files=1))
    assert batch.num_splits == 100


def test_slice_keeps_ranges_apart() -> None:
    batch = coalesce(files_of([10] * 100), SplitSettings(max_files=7, parallelism=2))
    pieces = [batch.slice(i, i + 1) for i in range(batch.num_splits)]
    assert [p for piece in pieces for p in piece.paths.to_pylist()] == batch.paths.to_pylist()
    assert all(piece.first[0] == 0 for piece in pieces)


def test_a_split_has_one_reader() -> None:
    whole = files_of([10] * 9)
    readers = (ReaderSpec("parquet"), ReaderSpec("orc"))
    mixed = replace(whole, readers=readers, reader=np.arange(9, dtype=np.int32) % 2)
    splits = coalesce(by_reader(mixed), SplitSettings(parallelism=1))
    assert splits.reader is not None and splits.num_splits == 2
    assert [set(splits.reader[a:b].tolist()) for a, b in pairwise(splits.first)] == [{0}, {1}]
    assert sorted(covered(splits)) == sorted(covered(coalesce(whole, SplitSettings())))


def test_large_files_that_only_one_reader_can_read_are_not_cut() -> None:
    paths = ["a.csv", "b.csv.gz", "c.csv", "d.csv"]
    sizes = np.array([10_000, 10_000, 10, 10_000], np.int64)
    files = FileTable(pa.array(paths, pa.large_string()), sizes, np.zeros(4, np.int64))
    plain = ReaderSpec("csv", (("serialization.lib", "x"),))
    footer = ReaderSpec("csv", (("skip.footer.line.count", "1"),))
    batch = SliceBatch(
        files,
        np.full(4, -1, np.int64),
        np.zeros(4, np.int32),
        (Partition("", (), "file:///t"),),
        (plain, footer),
        reader=np.array([0, 0, 0, 1], np.int32),
    )
    found = coalesce(batch, SplitSettings(target_bytes=1000, open_cost=1))
    counts = {p: found.paths.to_pylist().count(p) for p in paths}
    assert counts == {"a.csv": 10, "b.csv.gz": 1, "c.csv": 1, "d.csv": 1}
