"""Etags as numbers: those of Java's ``String.hashCode``, for files that an index describes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bridge.planner.splits.coalesce import SplitSettings, coalesce
from bridge.planner.splits.etags import etag_hashes, hashes
from bridge.table.slices import SliceBatch
from tests.unit.splits.test_coalesce import files_of

TEXT = st.text(st.sampled_from('abc019-W/"é') | st.characters(max_codepoint=300), max_size=40)


class Index:
    """Of an index, what splits ask for."""

    def __init__(self, etags: list[str | None]) -> None:
        self.etags = pa.array(etags, pa.large_string())

    def row_groups(self, ordinal: int) -> Any:
        return None


def java(etag: str | None) -> int:
    text = (etag or "").strip('W/"')
    found = 0
    for letter in text if text.isascii() else "":
        found = (found * 31 + ord(letter)) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


def indexed(etags: list[str | None], ordinals: list[int], sizes: list[int]) -> SliceBatch:
    index: Any = Index(etags)
    return replace(files_of(sizes), ordinals=np.array(ordinals, np.int64), index=index)


@given(st.lists(st.none() | TEXT, max_size=20), st.integers(0, 5))
def test_they_are_javas(etags: list[str | None], skipped: int) -> None:
    found = hashes(pa.array(etags, pa.large_string()).slice(skipped))
    assert found.dtype == np.int32
    assert found.tolist() == [java(etag) for etag in etags[skipped:]]


def test_the_values_of_the_java_test() -> None:
    """The same as in TestObjectHeaders."""
    texts = ["abc", '"abc"', 'W/"abc"', '"d41d8cd98f00b204e9800998ecf8427e-3"', '""', "é", None]
    expected = [96354, 96354, 96354, -2_113_250_021, 0, 0, 0]
    assert hashes(pa.array(texts)).tolist() == expected


def test_only_files_of_the_index_have_one() -> None:
    batch = indexed(['"a"', '"b"', None], [1, -1, 0, 2], [10, 10, 10, 10])
    found = etag_hashes(batch)
    assert found is not None and found.tolist() == [ord("b"), 0, ord("a"), 0]
    for nothing in (
        files_of([10]),
        indexed([None, None], [0, 1], [10, 10]),
        indexed(['"a"'], [-1, -1], [10, 10]),
    ):
        assert etag_hashes(nothing) is None
        assert coalesce(nothing, SplitSettings()).etag_hashes is None


def test_each_piece_of_a_file_has_it() -> None:
    batch = indexed(['"a"', '"b"', '"c"'], [0, 1, 2], [10, 1_000, 10])
    splits = coalesce(batch, SplitSettings(target_bytes=100, open_cost=0))
    assert splits.num_files > 3 and splits.etag_hashes is not None
    told = dict(zip(splits.paths.to_pylist(), splits.etag_hashes.tolist(), strict=True))
    assert told == {f"file:///t/{i}": ord("abc"[i]) for i in range(3)}
    part = splits.slice(1, splits.num_splits)
    assert part.etag_hashes is not None and len(part.etag_hashes) == part.num_files
