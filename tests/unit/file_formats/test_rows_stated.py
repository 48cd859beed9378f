"""What a file states of its rows is held against the rows that its readers found."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.formats.data_files import Decoded
from bridge.formats.orc.rows import read_rows as read_orc
from bridge.formats.orc.statistics import read as orc_statistics
from bridge.formats.parquet.rewriting import FILES
from bridge.formats.parquet.rows import read_rows
from bridge.index.kinds.registry import kind
from bridge.kernel.errors import FileCorrupt
from bridge.kernel.types import BIGINT
from bridge.segments.views.facts import FactFile, open_facts
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from tests.support.footers import chunks, get, put_together, set_to, take_apart
from tests.support.lake import Lake, age

I64 = 6
"""Thrift's."""
ROWS = 24
Rows = list[tuple[Any, ...]]


def _whole() -> bytes:
    """Two row groups of pages of four rows."""
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"a": list(range(ROWS)), "b": [i * 10 for i in range(ROWS)]}),
        sink,
        row_group_size=ROWS // 2,
        use_dictionary=False,
        compression="none",
        data_page_size=1,
        write_batch_size=4,
    )
    return sink.getvalue()


def _cut(number: int, value: int) -> bytes:
    """The file, of whose first chunk of ``b`` a field of its metadata has another value."""
    data, footer = take_apart(_whole())
    set_to(get(chunks(footer)[1], 3), number, I64, value)
    return put_together(data, footer)


@cache
def _short() -> list[bytes]:
    """Chunks cut at the end of a page, of which Arrow reads less without an error."""
    return [content for size in range(1, _size()) if _lacks_rows(content := _cut(7, size))]


def _lacks_rows(content: bytes) -> bool:
    try:
        return bool(pq.read_table(pa.BufferReader(content), columns=["b"]).num_rows < ROWS)
    except (pa.ArrowException, OSError):
        return False


def _size() -> int:
    _, footer = take_apart(_whole())
    return int(get(get(chunks(footer)[1], 3), 7))


def _of(table: pa.Table, names: list[str]) -> Rows:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _api(content: bytes, names: list[str], path: Path) -> Rows:
    found = []
    for columns, rows in read_rows(pa.BufferReader(content), "f.parquet", names, names):
        assert {len(column) for column in columns.values()} == {rows}
        found += list(zip(*(columns[name].to_pylist() for name in names), strict=True))
    return found


def _decoded(content: bytes, names: list[str], path: Path) -> Rows:
    return _together([content], names)


def _of_several(content: bytes, names: list[str], path: Path) -> Rows:
    return _together([content, content], names)[: len(_together([content], names))]


def _together(contents: list[bytes], names: list[str]) -> Rows:
    *tables, about = FILES.decode(contents, True)
    assert isinstance(about, Decoded)
    if about.failed:
        raise FileCorrupt(about.failed[0], "")
    return _of(pa.concat_tables(tables), names)


def _batches(content: bytes, names: list[str], path: Path) -> Rows:
    return _of(pa.concat_tables(FILES.open(content).batches()), names)


def _stream(content: bytes, names: list[str], path: Path) -> Rows:
    path.write_bytes(content)
    parts = FILES.stream(open_storage(), f"file://{path}", len(content), 1)
    return _of(pa.concat_tables(parts), names)


def _facts(content: bytes, names: list[str], path: Path) -> Rows:
    path.write_bytes(content)
    columns = tuple(Column(name, BIGINT) for name in names)
    written = path.stat().st_mtime_ns // 1000
    fact = FactFile(f"file://{path}", len(content), written, None, "parquet", columns)
    opened = open_facts(open_storage(), fact, columns)
    return _of(pa.Table.from_batches(opened.batches(), opened.schema), names)


@pytest.mark.rule("35")
@pytest.mark.parametrize("read", [_api, _decoded, _of_several, _batches, _stream, _facts])
def test_a_chunk_that_ends_early_is_all_there_or_an_error(
    read: Callable[[bytes, list[str], Path], Rows], tmp_path: Path
) -> None:
    whole = [(i, i * 10) for i in range(ROWS)]
    damaged = [*_short(), *(_cut(7, size) for size in range(1, _size(), 11))]  # of its bytes
    damaged += [_cut(5, values) for values in range(0, ROWS // 2, 3)]  # of its values
    refused = 0
    for content in damaged:
        for names in (["a", "b"], ["b"]):
            try:
                found = read(content, names, tmp_path / "f.parquet")
            except (FileCorrupt, pa.ArrowException, OSError):
                refused += 1
            else:
                assert found == (whole if len(names) == 2 else [(b,) for _, b in whole])
    assert refused > len(damaged)
    assert read(_whole(), ["a", "b"], tmp_path / "f.parquet") == whole


def test_the_sum_of_row_groups_is_held_against_the_file() -> None:
    data, footer = take_apart(_whole())
    set_to(footer, 3, I64, ROWS + 1)
    for names in (["a"], []):
        with pytest.raises(FileCorrupt):
            list(read_rows(pa.BufferReader(put_together(data, footer)), "f.parquet", names, names))


def test_an_index_is_not_built_on_some_of_the_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number, content in enumerate(_short()):
        path = lake.write(f"{number}.parquet", {"b": [1]})
        path.write_bytes(content)
        age(path)
    report = lake.build(settings=lambda held: held.adding([kind("bloom").define("b")]))
    assert 1 < len(report.failed) == len(_short())


def test_stripes_are_held_against_the_rows_of_an_orc_file(tmp_path: Path) -> None:
    sink = io.BytesIO()
    po.write_table(pa.table({"a": list(range(77))}), sink, compression="uncompressed")
    before, _, after = sink.getvalue().rpartition(b"\x30\x4d")  # numberOfRows = 77
    damaged = before + b"\x30\x4e" + after
    assert po.ORCFile(pa.BufferReader(damaged)).nrows == 78
    (tmp_path / "f.orc").write_bytes(damaged)
    with pytest.raises(FileCorrupt):
        list(read_orc(pa.BufferReader(damaged), "f.orc", ["a"], ["a"]))
    with pytest.raises(FileCorrupt):
        orc_statistics(open_storage(), f"file://{tmp_path}/f.orc", len(damaged))
