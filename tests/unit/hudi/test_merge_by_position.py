"""Merging by position: any history against a list, and bitmaps that are damaged.

Single cases are in ``tests/support/hudi_merge_cases.py``, for both mergers.
"""

from __future__ import annotations

import base64
import random
import tracemalloc
from pathlib import Path

import pyroaring
import pytest

from bridge.formats.hudi.log_format import Header
from bridge.kernel.errors import BridgeError, FileCorrupt
from bridge.table.hudi.merging.merge_rules import MergeRules
from tests.support.hudi_writer import avro_block
from tests.tiers import examples
from tests.unit.hudi.test_merge import AVRO, COMMIT, EVENT, KEY, Slice, deletes

pytestmark = pytest.mark.rule("51")
BASE_AT = "0"


def places(*found: int, of: str = BASE_AT) -> dict[str, str]:
    """Entries of a block's header, with which it tells places in a base file."""
    bitmap = base64.b64encode(pyroaring.BitMap64(found).serialize()).decode()
    return {"record_positions": bitmap, "base_file_instant_time_of_record_positions": of}


def header(**named: str) -> dict[int, str]:
    return {Header[name.upper()]: text for name, text in named.items()}


def rows(instant: str, *found: tuple[str, str, int], **more: str) -> bytes:
    held = [{KEY: key, "v": v, "ts": ts} for key, v, ts in found]
    return avro_block(instant, AVRO, held, **more)


@pytest.fixture
def slice(tmp_path: Path) -> Slice:
    (tmp_path / "t").mkdir()
    return Slice(tmp_path / "t", base=f"f-0_0-0-0_{BASE_AT}.parquet")


def values(slice: Slice, rules: MergeRules = COMMIT) -> list[str]:
    return sorted(slice.read(rules).column("v").to_pylist())


@pytest.mark.parametrize("bad", ["AQA=", "!", base64.b64encode(b"\xff" * 40).decode()])
def test_positions_that_cannot_be_read_are_an_error(slice: Slice, bad: str) -> None:
    slice.with_base(("a", "one", 1))
    slice.log(rows("1", ("a", "x", 5), **{**places(0), "record_positions": bad}))
    with pytest.raises(FileCorrupt, match="positions cannot be read"):
        slice.read(EVENT)
    slice.logs.clear()
    slice.log(rows("1", ("a", "x", 5), **places(0, 1)))
    with pytest.raises(FileCorrupt, match="1 records and positions of 2"):
        slice.read(EVENT)


@pytest.mark.rule("32")
def test_32_positions_are_held_against_the_rows_of_the_base_file(slice: Slice) -> None:
    """Some bytes of header may state billions of positions, as runs."""
    slice.with_base(("a", "one", 1))
    every = pyroaring.BitMap64(range(1 << 20))
    every.run_optimize()
    content = every.serialize()
    assert len(content) < 400
    told = {**places(0), "record_positions": base64.b64encode(content).decode()}
    slice.log(rows("1", ("a", "x", 5), **told))
    tracemalloc.start()
    try:
        with pytest.raises(FileCorrupt, match="more than the rows of the base file"):
            slice.read(EVENT)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(examples(20, 100, 1000)))
def test_positions_change_what_a_table_by_position_has(slice: Slice, seed: int) -> None:
    """Against a list: row by row, however often a key is in the base file."""
    luck = random.Random(seed)
    count = luck.choice([1, 6, 300, 9000])
    base = [(f"k{luck.randrange(count)}", f"b{i}", 1) for i in range(count)]
    want: list[str | None] = [v for _, v, _ in base]
    slice.with_base(*base)
    for instant in "123":
        chosen = sorted(luck.sample(range(count), luck.randint(1, count)))
        keys = [base[i][0] for i in chosen]
        deleted = luck.random() < 0.3
        for i in chosen:
            want[i] = None if deleted else f"{instant}-{i}"
        if deleted:
            gone = [(key, None) for key in keys]
            slice.log(deletes(instant, *gone, header=header(**places(*chosen))))
        else:
            new = [(k, f"{instant}-{i}", 1) for k, i in zip(keys, chosen, strict=True)]
            slice.log(rows(instant, *new, **places(*chosen)))
    assert values(slice) == sorted(v for v in want if v is not None)


def test_any_damage_to_a_bitmap_is_an_error_or_the_same_rows(slice: Slice) -> None:
    slice.with_base(*((f"k{i}", f"b{i}", 1) for i in range(6)))
    whole = pyroaring.BitMap64([1, 4]).serialize()
    for at in range(8 * len(whole)):
        bent = bytearray(whole)
        bent[at // 8] ^= 1 << at % 8
        slice.logs.clear()
        told = {**places(1, 4), "record_positions": base64.b64encode(bent).decode()}
        slice.log(rows("1", ("k1", "x", 1), ("k4", "y", 1), **told))
        try:
            assert values(slice) == ["b0", "b2", "b3", "b5", "x", "y"]
        except BridgeError:
            continue


def test_a_block_that_replaces_what_is_not_there_is_an_error(slice: Slice) -> None:
    """As of a compaction of logs. Hudi leaves its rows out."""
    slice.with_base(("a", "one", 1))
    slice.log(rows("1", ("a", "x", 5), compacted_block_times="7"))
    with pytest.raises(FileCorrupt, match="no block that it compacts"):
        slice.read(COMMIT)
