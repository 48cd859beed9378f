"""New Parquet files are encoded by their own rows: dictionaries, row groups, page indexes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.rewriting.rewrite import Effort
from bridge.formats.data_files import Writing
from bridge.formats.parquet import encoding
from bridge.formats.parquet.rewriting import FILES
from tests.support.page_index import page_bounds
from tests.tiers import examples
from tests.unit.clustering.test_rewrite import every_type, rewritten

EXAMPLES = examples(25, 60, 2000)


def encoded(table: pa.Table, like: pa.Table | None = None, **options: Any) -> pq.ParquetFile:
    """A new file of some rows, encoded like an old file of others."""
    old = BytesIO()
    pq.write_table(table.slice(0, 3) if like is None else like, old, **options)
    opened = FILES.open(old.getvalue())
    return pq.ParquetFile(pa.BufferReader(FILES.encode(grouped(table), opened, Writing())))


def grouped(table: pa.Table) -> list[pa.Table]:
    """The rows of each row group of a new file."""
    cuts = FILES.cuts(len(table), Writing(), 1.0)
    return [table.slice(begin, end - begin) for begin, end in pairwise(cuts)]


def coded(file: pq.ParquetFile) -> list[str]:
    """The columns that have a dictionary, in every row group."""
    found = []
    for group in (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)):
        chunks = [group.column(i) for i in range(group.num_columns)]
        found.append([chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page])
    assert all(each == found[0] for each in found)
    return found[0]


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
def test_dictionaries_pay_on_the_rows_that_are_written(old: bool, codec: str) -> None:
    """The old file is too small for any, or has them everywhere."""
    n = 60_000
    mixed = [(i * 7919) % n for i in range(n)]
    table = pa.table(
        {
            "number": [m % 500 for m in mixed],
            "unique": mixed,
            "sorted": pa.array([i // 40 for i in range(n)], pa.int32()),
            "rising": pa.array(range(n), pa.int32()),
            "real": [m % 500 / 7 for m in mixed],
            "text": [f"port {m % 200}" for m in mixed],
            "name": [f"{m:020}" for m in mixed],
            "long": [f"{m % 30_000:0200}" for m in mixed],
            "in": [{"few": m % 9, "all": m, "list": [m % 5, m % 3]} for m in mixed],
            "nothing": pa.nulls(n, pa.int64()),
            "flag": [m % 2 == 0 for m in mixed],
        }
    )
    file = encoded(table, use_dictionary=old, compression=codec)
    wanted = {"number", "sorted", "real", "text", "in.few", "in.list.list.element", "nothing"}
    assert set(coded(file)) == wanted
    assert file.read().equals(table)


def test_row_groups_end_at_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_GROUP_ROWS", 1000)
    table = pa.table({"k": range(3001)})
    metadata = encoded(table).metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert groups == [751, 751, 751, 748]  # none is a small rest
    assert encoded(table.slice(0, 0), table).read().num_rows == 0


EFFORTS = [Effort(), Effort(threads=3), Effort(memory=0), Effort(threads=2, memory=2000)]


@pytest.mark.parametrize("by", [("k",), ("few", "k"), ()])
def test_the_same_rows_give_the_same_bytes(tmp_path: Path, by: tuple[str, ...]) -> None:
    for i in range(6):
        table = every_type().append_column("few", pa.array([f"{i % 2}{k % 2}" for k in range(9)]))
        table = pa.concat_tables([table] * (i + 1))
        pq.write_table(table, tmp_path / f"f{i}.parquet", use_dictionary=i != 2, version="2.6")
    files = sorted(tmp_path.glob("*.parquet"))
    found = set()
    for effort in EFFORTS:
        result = rewritten(tmp_path, *files, outputs=2, by=by, effort=effort, row_group_bytes=4000)
        assert not result.rejected
        paths = [Path(state.path.removeprefix("file://")) for state in result.new]
        found.add(tuple(path.read_bytes() for path in paths))
    assert len(found) == 1


def test_parts_do_not_matter() -> None:
    table = pa.concat_tables([every_type()] * 9)
    parts = pa.concat_tables([table.slice(0, 1), table.slice(1, 20), table.slice(21)])
    some = parts.column("text").dictionary_encode()
    codes = parts.set_column(parts.column_names.index("text"), "text", some)
    old = BytesIO()
    pq.write_table(table, old)
    like = FILES.open(old.getvalue())
    made = {FILES.encode(grouped(each), like, Writing()) for each in (table, parts, codes)}
    assert len(made) == 1


def test_duckdb_reads_what_was_written(tmp_path: Path) -> None:
    table = pa.concat_tables([every_type()] * 30)
    old, new = tmp_path / "old", tmp_path / "new"
    pq.write_table(table, old)
    new.write_bytes(FILES.encode(grouped(table), FILES.open(old.read_bytes()), Writing()))
    found = [duckdb.sql(f"SELECT * FROM read_parquet('{path}')") for path in (old, new)]
    assert found[0].types == found[1].types
    assert sorted(map(repr, found[0].fetchall())) == sorted(map(repr, found[1].fetchall()))


def big(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def unpacked(form: str) -> Callable[[bytes], Any]:
    return lambda raw: struct.unpack(form, raw)[0]


INTS = st.integers(-9, 9)
TYPES: dict[str, tuple[pa.DataType, Any, Callable[[bytes], Any]]] = {
    "int8": (pa.int8(), INTS, unpacked("<i")),
    "int32": (pa.int32(), INTS, unpacked("<i")),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), unpacked("<q")),
    "uint32": (pa.uint32(), st.sampled_from([0, 7, 2**31, 2**32 - 1]), unpacked("<I")),
    "uint64": (pa.uint64(), st.sampled_from([0, 7, 2**63, 2**64 - 1]), unpacked("<Q")),
    "float": (pa.float32(), st.floats(width=32, allow_infinity=False), unpacked("<f")),
    "double": (pa.float64(), st.floats(), unpacked("<d")),
    "text": (pa.string(), st.text(max_size=5), bytes),
    "long": (pa.string(), st.sampled_from(["", "a" * 5000, "b" * 70]), bytes),
    "binary": (pa.binary(), st.binary(max_size=3), bytes),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3), bytes),
    "day": (pa.date32(), INTS, unpacked("<i")),
    "nanos": (pa.timestamp("ns"), INTS, unpacked("<q")),
    "decimal": (pa.decimal128(9, 2), INTS.map(Decimal), big),
    "wide": (pa.decimal128(38, 2), INTS.map(Decimal), big),
}
"""Arrow type, drawn values, and how bounds are stored."""


def stored(value: Any, type: pa.DataType) -> Any:
    if isinstance(value, str):
        return value.encode()
    return int(value) * 100 if pa.types.is_decimal(type) else value


@settings(max_examples=EXAMPLES)
@given(st.data(), st.integers(1, 40), st.booleans())
def test_page_indexes_say_what_the_pages_hold(
    data: st.DataObject, rows: int, sorted_rows: bool
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4))
    columns = []
    for name in chosen:
        values = TYPES[name][1]
        drawn = data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        if sorted_rows:
            drawn = sorted((v for v in drawn if v is not None), key=repr)
            drawn += [None] * (rows - len(drawn))
        columns.append(drawn)
    names = [f"c{i}" for i in range(len(chosen))]
    types = [TYPES[name][0] for name in chosen]
    table = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names)
    old = BytesIO()
    pq.write_table(table, old, use_dictionary=data.draw(st.booleans()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(encoding, "_GROUP_ROWS", data.draw(st.integers(5, 40)))
        patched.setattr(encoding, "_PAGE_ROWS", data.draw(st.integers(1, 9)))
        content = FILES.encode(grouped(table), FILES.open(old.getvalue()), Writing())
    metadata = pq.ParquetFile(pa.BufferReader(content)).metadata
    firsts = [0]
    for i in range(metadata.num_row_groups):
        firsts.append(firsts[-1] + metadata.row_group(i).num_rows)
    pages = 0
    for page in page_bounds(content):
        pages += 1
        begin, end = (firsts[page.group] + row for row in page.rows)
        held = columns[page.leaf][begin:end]
        there = [stored(v, types[page.leaf]) for v in held if v is not None]
        assert 0 < len(held) <= 9
        if page.bounds is None:
            # No index rather than one that says something wrong.
            assert chosen[page.leaf] in ("float", "double", "long")
            continue
        assert page.nulls in (None, len(held) - len(there))
        assert page.all_null == (not there)
        if there:
            least, greatest = map(TYPES[chosen[page.leaf]][2], page.bounds)
            numbers = [v for v in there if v == v]
            assert least <= min(numbers) and max(numbers) <= greatest
            if chosen[page.leaf] != "long":
                assert (least, greatest) == (min(numbers), max(numbers))
    assert pages >= len(chosen) * rows / 9
