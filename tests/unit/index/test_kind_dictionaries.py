"""Text that files keep in dictionaries says the same to every kind as text that they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.formats.physical_column import PhysicalType
from bridge.index.building.collect import FileTask, Reading, collect_chunk
from bridge.index.kinds.kind import Arrays
from bridge.index.kinds.registry import kind
from bridge.index.kinds.xxh64 import ascending, hash_numbers, least
from bridge.storage.routed import open_storage
from tests.support.lake import Lake

_WORDS = ["", "ä", "Zürich", "a" * 40, "b" * 9, None]
_TEXT = PhysicalType("BYTE_ARRAY", "string")


def _table(shape: pa.DataType, rows: int = 2000) -> pa.Table:
    few = pa.array([_WORDS[i * i % 6] for i in range(rows)], shape)
    many = pa.array([f"row {i}" for i in range(rows)], shape)
    nested = pa.StructArray.from_arrays([few], ["name"], mask=pa.array(np.arange(rows) % 7 == 0))
    return pa.table({"few": few, "many": many, "st": nested, "x": np.arange(rows) / 4})


@pytest.mark.parametrize("shape", [pa.string(), pa.large_string(), pa.binary()], ids=str)
@pytest.mark.parametrize("groups", [2000, 300])
def test_dictionaries_change_nothing(lake: Lake, shape: pa.DataType, groups: int) -> None:
    found: list[Any] = []
    for coded in (True, False):
        name = f"coded-{coded}"
        lake.write(name, _table(shape), use_dictionary=coded, row_group_size=groups)
        storage = open_storage()
        (uri,) = [p for p in storage.list_all(lake.location).paths.to_pylist() if name in p]
        stat = storage.stat(uri)
        assert stat is not None
        asked = [("ndv", "*"), ("values", "x:limit=5000:max_bytes=99999")]
        for column in ("few", "many", "st.name"):
            asked += [("bloom", column), ("values", f"{column}:limit=2500:max_bytes=99999")]
            asked.append(("expression", f"lower({column})"))
        kinds = tuple((kind(n), kind(n).define(text)) for n, text in asked)
        reading = Reading("scan", kinds)
        task = FileTask(0, uri, stat.size, stat.modified, stat.etag)
        collected = collect_chunk([task], storage, reading)
        tables = {name: table.to_pylist() for name, table in collected.payloads.items()}
        for rows in tables.values():
            for row in rows:
                if "values" in row:
                    row["values"] = sorted(row["values"])
        empty = [name for name, rows in tables.items() if not rows]
        assert all("lower(few)" in name or "lower(st.name)" in name for name in empty), empty
        columns = collected.columns.drop_columns(["size"]).to_pylist()
        found.append((tables, columns))
    assert found[0] == found[1]


def test_rows_come_out_of_dictionaries_in_order() -> None:
    words = pa.chunked_array([pa.array(_WORDS * 300), pa.array(["z", None] * 50)])
    arrays = Arrays({0: words.dictionary_encode(), 1: words})
    assert arrays[0].to_pylist() == words.to_pylist()
    assert arrays.counts(0) == arrays.counts(1) == (1900, 350)
    assert set(arrays.distinct(0).to_pylist()) == set(words.to_pylist()) - {None}
    assert sorted(arrays.each_value(0).to_pylist()) == sorted(arrays.distinct(1).to_pylist())
    one, other = (arrays.hashes(leaf, _TEXT) for leaf in (0, 1))
    assert one is not None and other is not None and one.tolist() == other.tolist()
    assert len(one) == 6


@pytest.mark.parametrize("distinct", [1, 5, 1000, 1024, 1025, 9000, 50_000])
def test_the_least_hashes_are_found_without_sorting_all(distinct: int) -> None:
    hashes = hash_numbers(np.arange(50_000) % distinct)
    assert least(hashes, 1024).tolist() == ascending(hashes)[:1024].tolist()
