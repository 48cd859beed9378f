"""Merging by position: the row at each position has the block's key, and a deletion meets its row.

The cases are those of ``TestPositions.java``.
"""

from __future__ import annotations

import base64
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyroaring
import pytest

from bridge.formats.hudi.log_format import Header
from bridge.kernel.errors import BridgeError, FileCorrupt, UnsupportedTable
from bridge.table.hudi.merging.merge_rules import MergeRules, merge_rules
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


def test_of_two_rows_with_a_key_the_one_at_the_position_changes(slice: Slice) -> None:
    slice.with_base(("a", "one", 1), ("a", "two", 1))
    slice.log(rows("1", ("a", "x", 5), **places(1)))
    assert values(slice) == ["one", "x"]
    slice.log(deletes("2", ("a", None), header=header(**places(0))))
    assert values(slice) == ["x"]


def test_one_block_without_positions_makes_keys_decide(slice: Slice) -> None:
    slice.with_base(("a", "one", 1), ("a", "two", 1), ("b", "b", 1))
    slice.log(rows("1", ("a", "x", 5), **places(1)), rows("2", ("b", "y", 5)))
    assert values(slice) == ["two", "x", "y"]


@pytest.mark.parametrize("mode", [COMMIT, EVENT])
def test_two_changed_rows_of_a_key_are_not_told_apart_by_key(
    slice: Slice, mode: MergeRules
) -> None:
    """Hudi keeps one of them, by the order of a hash table."""
    slice.with_base(*((f"k{i % 17}", f"b{i}", 1) for i in range(20)))
    slice.log(rows("1", ("k0", "x", 7), ("k0", "y", 5), **places(0, 17)))
    assert {"x", "y"} <= set(values(slice, mode))
    slice.log(rows("2", ("k9", "z", 5)))
    with pytest.raises(UnsupportedTable, match="several rows with the key 'k0'"):
        slice.read(mode)


def test_positions_in_another_base_file_do_not_count(slice: Slice) -> None:
    slice.with_base(("a", "one", 1), ("a", "two", 1))
    slice.log(rows("1", ("a", "x", 5), **places(7, of="00")))
    assert values(slice) == ["two", "x"]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("place", [1, 2, 1 << 33])
def test_a_row_that_is_not_at_its_position_is_an_error(
    slice: Slice, place: int, mixed: bool
) -> None:
    slice.with_base(("a", "one", 1), ("b", "two", 1))
    more = [rows("2", ("b", "y", 1))] if mixed else []
    slice.log(rows("1", ("a", "x", 5), **places(place)), *more)
    with pytest.raises(FileCorrupt, match=rf"the row 'a' at position {place} "):
        slice.read(EVENT)


def test_a_deletion_that_meets_no_row_is_an_error(slice: Slice) -> None:
    slice.with_base(("a", "one", 1), ("b", "two", 1))
    slice.log(deletes("1", ("key:a", None), header=header(**places(0))))
    with pytest.raises(FileCorrupt, match="holds 'a'"):
        slice.read(EVENT)


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


AVRO_ID = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "id", "type": "string"}, {"name": "v", "type": "string"}],
}
IDS = pa.schema([("id", pa.string()), ("v", pa.string())])


def virtual(generator: str) -> MergeRules:
    """The rules of a table without meta columns, whose key is one field."""
    return merge_rules(
        {
            "hoodie.table.version": "9",
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.populate.meta.fields": "false",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.keygenerator.class": generator,
        }
    )


def ids(slice: Slice, rules: MergeRules) -> list[str]:
    return sorted(slice.read(rules, schema=IDS).column("id").to_pylist())


@pytest.mark.parametrize("told", [{}, places(1)])
@pytest.mark.parametrize("key", ["2", "id:2"])
@pytest.mark.parametrize("generator", ["org.apache.hudi.keygen.ComplexKeyGenerator", "COMPLEX", ""])
def test_a_deletion_may_name_the_field_of_its_key(
    slice: Slice, generator: str, key: str, told: dict[str, str]
) -> None:
    slice.with_base(table=pa.table({"id": ["1", "2"], "v": ["b", "b"]}))
    slice.log(deletes("1", (key, None), header=header(**told)))
    assert ids(slice, virtual(generator)) == ["1"]


@pytest.mark.parametrize(
    "generator", ["a.SimpleKeyGenerator", "SIMPLE", "CUSTOM_AVRO", "b.NonpartitionedKeyGenerator"]
)
def test_a_generator_that_spells_bare_keys_is_taken_at_its_word(
    slice: Slice, generator: str
) -> None:
    slice.with_base(table=pa.table({"id": ["id:2", "2"], "v": ["b", "b"]}))
    slice.log(deletes("1", ("id:2", None)))
    assert ids(slice, virtual(generator)) == ["2"]


@pytest.mark.parametrize("in_base", [False, True])
def test_a_key_that_may_be_spelled_in_two_ways_is_refused(slice: Slice, in_base: bool) -> None:
    odd = "id:2" if in_base else "3"
    slice.with_base(table=pa.table({"id": [odd, "2"], "v": ["b", "b"]}))
    row: dict[str, Any] = {"id": "4" if in_base else "id:2", "v": "x"}
    slice.log(avro_block("1", AVRO_ID, [row]), deletes("2", ("id:2", None)))
    with pytest.raises(UnsupportedTable, match="not sure which rows"):
        slice.read(virtual("COMPLEX"), schema=IDS)


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
