"""The law of a rewrite: the new files hold exactly the rows of the old ones, of any types, in
whatever files, groups and memory, and other readers find them there.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.rewriting.rewrite import Effort
from tests.tiers import examples
from tests.unit.clustering.test_rewrite import opened, rewritten, rows_of

Read = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]
EXAMPLES = examples(20, 60, 2000)
NUMBER = st.integers(0, 100)
FEW = st.sampled_from(["", "a", "ä" * 90, "b"])
TYPES: dict[pa.DataType, Any] = {
    pa.bool_(): st.booleans(),
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), NUMBER),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): FEW,
    pa.large_string(): FEW,
    pa.string_view(): FEW,
    pa.dictionary(pa.int32(), pa.string()): FEW,
    pa.binary(): st.binary(max_size=3),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(9, 2): st.decimals(-99, 99, places=2),
    pa.decimal128(38, 5): st.decimals(-99, 99, places=5),
    pa.decimal256(50, 1): st.decimals(-99, 99, places=1),
    pa.date32(): NUMBER,
    pa.time32("ms"): NUMBER,
    pa.time64("ns"): NUMBER,
    pa.timestamp("ms", "UTC"): NUMBER,
    pa.timestamp("us"): st.integers(-(2**55), 2**55),
    pa.timestamp("ns"): st.integers(-(2**62), 2**62),
    pa.duration("us"): NUMBER,
    pa.list_(pa.string()): st.lists(st.none() | FEW, max_size=3),
    pa.large_list(pa.uint64()): st.lists(st.integers(0, 2**64 - 1), max_size=3),
    pa.list_(pa.int16(), 2): st.lists(NUMBER, min_size=2, max_size=2),
    pa.map_(pa.string(), pa.timestamp("ns")): st.lists(
        st.tuples(FEW, NUMBER), max_size=2, unique_by=lambda pair: pair[0]
    ),
    pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.struct([("c", pa.binary(2))])))]): (
        st.fixed_dictionaries(
            {
                "a": st.none() | NUMBER,
                "b": st.none() | st.lists(st.just(None) | st.just({"c": b"xy"}), max_size=2),
            }
        )
    ),
}
OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "row_group_size": st.integers(1, 20),
        "use_dictionary": st.booleans(),
        "write_page_checksum": st.booleans(),
        "write_page_index": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "store_schema": st.booleans(),
    }
)
asked: Counter[str] = Counter()


def by_duckdb(path: str) -> Read:
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [path])
    return tuple(str(column[1]) for column in found.description or ()), found.fetchall()


def by_polars(path: str) -> Read:
    found = polars.read_parquet(path)
    return tuple(map(str, found.dtypes)), found.rows()


READERS = {"duckdb": by_duckdb, "polars": by_polars}


def drawn(draw: Any, type: pa.DataType, count: int) -> pa.Array:
    inner = type.value_type if pa.types.is_dictionary(type) else type
    values = draw(st.lists(st.none() | TYPES[type], min_size=count, max_size=count))
    found = pa.array(values, inner)
    return found.dictionary_encode() if inner != type else found


@settings(max_examples=EXAMPLES)
@given(st.data(), st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=5), OPTIONS)
def test_new_files_hold_the_rows_of_the_old_ones(
    data: st.DataObject, types: list[pa.DataType], options: dict[str, Any]
) -> None:
    names = [f"c{i}" for i in range(len(types))]
    with tempfile.TemporaryDirectory() as root:
        files = []
        for number in range(data.draw(st.integers(1, 4))):
            count = data.draw(st.integers(0, 12))
            columns = [drawn(data.draw, type, count) for type in types]
            key = pa.array(data.draw(st.lists(NUMBER, min_size=count, max_size=count)), pa.int64())
            files.append(Path(root) / f"f{number}.parquet")
            pq.write_table(pa.table([key, *columns], ["k", *names]), files[-1], **options)
        old = [pq.ParquetFile(file) for file in files]
        effort = Effort(data.draw(st.integers(1, 2)), data.draw(st.sampled_from([0, 500, 1 << 30])))
        result = rewritten(
            Path(root), *files, outputs=data.draw(st.integers(1, 3)), effort=effort,
            row_group_bytes=data.draw(st.sampled_from([1, 400, 1 << 27])),
        )  # fmt: skip
        assert (result.rejected, result.aside) == ("", ())
        new = [opened(state) for state in result.new]
        assert rows_of([file.read() for file in new]) == rows_of([file.read() for file in old])
        for file in new:
            assert file.schema_arrow.equals(old[0].schema_arrow)
            assert str(file.schema).split("\n")[2:] == str(old[0].schema).split("\n")[2:]
        if result.rows:
            paths = [[str(f) for f in files], [s.path.removeprefix("file://") for s in result.new]]
            for name, read in READERS.items():
                try:
                    before = list(map(read, paths[0]))
                except Exception:  # the reader does not know one of the types
                    continue
                after = list(map(read, paths[1]))
                asked[name] += 1
                assert {types for types, _ in after} == {types for types, _ in before}
                both = [
                    sorted(repr(r) for _, rows in each for r in rows) for each in (before, after)
                ]
                assert both[0] == both[1], name


def test_other_readers_were_asked() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert all(asked[name] > EXAMPLES // 5 for name in READERS), asked


def test_fastparquet_reads_the_rows(tmp_path: Path) -> None:
    """Flat types alone: it makes pandas types of values, so random columns fail of themselves."""
    count = 1000
    table = pa.table(
        {
            "k": pa.array(range(count), pa.int64()),
            "i": pa.array([None if i % 7 == 0 else i % 50 for i in range(count)], pa.int32()),
            "f": pa.array([i / 3 for i in range(count)], pa.float64()),
            "s": pa.array([None if i % 5 == 0 else f"word {i % 20}" for i in range(count)]),
            "d": pa.array([i % 400 for i in range(count)], pa.int32()).cast(pa.date32()),
            "t": pa.array([i * 10**9 for i in range(count)], pa.timestamp("us")),
            "b": pa.array([i % 3 == 0 for i in range(count)]),
        }
    )
    files = [tmp_path / f"f{i}.parquet" for i in range(4)]
    for i, file in enumerate(files):
        pq.write_table(table.slice(i * 250, 250), file)
    result = rewritten(tmp_path, *files, outputs=1)
    (new,) = (s.path.removeprefix("file://") for s in result.new)
    found = fastparquet.ParquetFile(new).to_pandas().sort_values("k").reset_index(drop=True)
    before = [fastparquet.ParquetFile(str(file)).to_pandas() for file in files]
    expected = pandas.concat(before, ignore_index=True)
    pandas.testing.assert_frame_equal(found, expected)
