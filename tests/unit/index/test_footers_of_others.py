"""Healthy footers that this machine's writers do not write: read as what they are."""

from __future__ import annotations

import base64
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from bridge.expression.parsing.text import parse_where
from bridge.formats.parquet.statistics import FooterReader
from bridge.index.kinds.request import RequestedIndexes
from bridge.kernel.errors import FileCorrupt
from bridge.kernel.types import INTEGER
from bridge.table.model import Column
from tests.support import footers
from tests.support.footers import BINARY, I32, I64, LIST, STRUCT, Struct
from tests.support.lake import Lake, age, kept

_TABLE = pa.table({"i": [1, None, 3], "s": ["x", "y", None], "l": [[1], [], None]})
_KNOWN = {"i": (1, 3, 1), "s": (b"x", b"y", 1), "l": (None, None, None)}


def _read(file: bytes) -> dict[str, tuple[Any, Any, int | None]]:
    found = FooterReader().read(file, len(file), "file:///t/f")
    return {leaf.column.path[0]: (leaf.lower, leaf.upper, leaf.nulls) for leaf in found.leaves}


def _write(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_TABLE, sink, **options)
    return sink.getvalue()


@pytest.mark.rule("32")
def test_an_index_is_not_made_of_values_that_the_library_cuts(tmp_path: Path) -> None:
    """300 in a column of 8 bits is NULL in Hive, 44 or 300 in Spark, and 44 in pyarrow."""
    lake = Lake(tmp_path, (Column("c", INTEGER),))
    for value in (300, 7):
        path = lake.write(f"{value}", pa.table({"c": pa.array([value], pa.int32())}))
        data, footer = footers.take_apart(path.read_bytes())
        footers.set_to(footers.elements(footer)[1], 6, I32, 15)  # INT_8
        path.write_bytes(footers.put_together(data, footer))
        age(path)
    asked = RequestedIndexes((("values", "c"), ("bloom", "c")))
    lake.build(settings=lambda held: asked.check(lake.table()).change(held))

    def asks(where: str) -> list[str]:
        files = kept(lake.planner(), parse_where(where)[0])
        return sorted(uri.rpartition("/")[2] for uri in files)

    for where in ("c = 300", "c = 44", "c IS NULL", "c <> 5"):
        assert "300" in asks(where), where
    assert asks("c = 7") == ["300", "7"] and asks("c > 8") == ["300"]


def _leaves_count_their_children(footer: Struct) -> None:  # parquet-cpp once did
    for element in footers.elements(footer):
        if element[0][0] == 1:
            footers.set_to(element, 5, I32, 0)


def _the_same_file_by_an_empty_path(footer: Struct) -> None:
    for chunk in footers.chunks(footer):
        footers.set_to(chunk, 1, BINARY, b"")


def _no_bloom_filter_is_minus_one(footer: Struct) -> None:
    for chunk in footers.chunks(footer):
        footers.set_to(footers.get(chunk, 3), 14, I64, -1)
        footers.set_to(footers.get(chunk, 3), 15, I32, -1)


def _a_group_of_negative_size(footer: Struct) -> None:
    for group in footers.groups(footer):
        footers.set_to(group, 2, I64, -5)


def _fields_of_a_later_standard(footer: Struct) -> None:
    strange = [[1, BINARY, b"q"], [2, LIST, (STRUCT, [[[1, I64, -7]], []])]]
    structs = [footer, *footers.elements(footer), *footers.groups(footer)]
    for chunk in footers.chunks(footer):
        statistics = footers.get(footers.get(chunk, 3), 12)
        structs += [chunk, footers.get(chunk, 3), statistics]
    for struct in structs:
        footers.set_to(struct, struct[-1][0] + 12, STRUCT, strange)


@pytest.mark.parametrize(
    "change",
    [
        _leaves_count_their_children,
        _the_same_file_by_an_empty_path,
        _no_bloom_filter_is_minus_one,
        _a_group_of_negative_size,
        _fields_of_a_later_standard,
    ],
)
def test_nothing_is_lost(change: Callable[[Struct], None]) -> None:
    whole = _write(bloom_filter_options={"i": True})
    assert _read(whole) == _KNOWN
    data, footer = footers.take_apart(whole)
    assert footers.put_together(data, footer) == whole
    change(footer)
    assert _read(footers.put_together(data, footer)) == _KNOWN


@pytest.mark.parametrize("page_index", [False, True])
def test_a_negative_count_of_null_is_none(page_index: bool) -> None:
    data, footer = footers.take_apart(_write(write_page_index=page_index))
    for chunk in footers.chunks(footer):
        footers.set_to(footers.get(footers.get(chunk, 3), 12), 3, I64, -1)
    expected = {name: (lower, upper, None) for name, (lower, upper, _) in _KNOWN.items()}
    assert _read(footers.put_together(data, footer)) == expected


def test_a_column_in_another_file_is_not_read() -> None:
    data, footer = footers.take_apart(_write())
    footers.set_to(footers.chunks(footer)[0], 1, BINARY, b"other.parquet")
    with pytest.raises(FileCorrupt, match=r"a column lies in another file: b'other.parquet'"):
        _read(footers.put_together(data, footer))


def test_megabytes_of_keys_are_not_kept_for_each_file() -> None:
    data, footer = footers.take_apart(_write())
    reader = FooterReader()
    tracemalloc.start()
    try:
        for i in range(40):
            pair: Struct = [[1, BINARY, b"key"], [2, BINARY, bytes([i]) * 2**20]]
            footers.set_to(footer, 5, LIST, (STRUCT, [pair]))
            file = footers.put_together(data, footer)
            assert len(reader.read(file, len(file), "file:///t/f").leaves) == 3
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20 * 2**20


class _Keys(pe.KmsClient):  # type: ignore[misc]
    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64decode(key)


def test_a_signed_footer_tells_of_columns_that_are_not_encrypted(tmp_path: Path) -> None:
    settings = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"key": ["s"]}, plaintext_footer=True
    )
    factory = pe.CryptoFactory(lambda _: _Keys())
    keys = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    path = tmp_path / "f.parquet"
    with pq.ParquetWriter(path, _TABLE.schema, encryption_properties=keys) as writer:
        writer.write_table(_TABLE)
    file = path.read_bytes()
    assert file.endswith(b"PAR1")
    assert _read(file) == _KNOWN | {"s": (None, None, None)}
    data, footer = footers.take_apart(_write())
    with pytest.raises(FileCorrupt, match="28 bytes stand behind its end"):
        _read(footers.put_together(data, footer, bytes(28)))
