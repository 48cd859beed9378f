"""Rows of files that are read part by part are those of the whole files, in bounded pieces."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.publication.copies import Copies, Rows, Unequal
from bridge.formats.checksum import checksum
from bridge.formats.data_files import Rejected
from bridge.formats.parquet import rewriting
from bridge.formats.registry import data_files
from bridge.index.generations.replacements import FileState
from bridge.storage.child import ChildReader
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileStat, Range
from tests.support import dying_decoder

TYPES = st.sampled_from(
    [pa.int64(), pa.int8(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.decimal128(9, 2),
     pa.timestamp("ns"), pa.list_(pa.string()), pa.struct([("a", pa.int32()), ("b", pa.string())])]
)  # fmt: skip
FEW = ["", "a", "b" * 300, "é"]


def values(draw: Any, type: pa.DataType, count: int) -> pa.Array:
    def one(type: pa.DataType) -> Any:
        number = draw(st.integers(-100, 100))
        if number % 7 == 0:
            return None
        if pa.types.is_list(type):
            return [one(type.value_type) for _ in range(number % 4)]
        if pa.types.is_struct(type):
            return {field.name: one(field.type) for field in type}
        if pa.types.is_string(type):
            return FEW[number % 4]
        if pa.types.is_boolean(type):
            return number > 0
        if pa.types.is_date32(type):
            return dt.date(2020, 1, 1) + dt.timedelta(number)
        if pa.types.is_timestamp(type):
            return dt.datetime(2020, 1, 1) + dt.timedelta(seconds=number)
        if pa.types.is_floating(type):
            return draw(st.sampled_from([float("nan"), -0.0, 0.0, float(number)]))
        return number

    return pa.array([one(type) for _ in range(count)], type)


def rows_of(parts: Any) -> Rows:
    total = Rows()
    for part in parts:
        total += Rows(len(part), checksum(part))
    return total


class Counting(LocalStorage):
    """Remembers the longest range, and changes a file after some reads."""

    def __init__(self, change: int = -1) -> None:
        self.longest, self.reads, self.change = 0, 0, change

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        self.longest = max([self.longest, *(end - begin for begin, end in ranges)])
        self.reads += 1
        if self.reads == self.change:
            path = Path(uri.removeprefix("file://"))
            path.write_bytes(path.read_bytes())
        return super().read_state(uri, ranges)


@settings(max_examples=25)
@given(st.data(), st.lists(TYPES, min_size=1, max_size=4))
def test_parts_hold_the_rows_of_the_whole(data: st.DataObject, types: list[pa.DataType]) -> None:
    count = data.draw(st.integers(0, 60))
    columns = [values(data.draw, type, count) for type in types]
    names = [data.draw(st.sampled_from(["c", "a.b", "c"])) + str(i) for i in range(len(types))]
    table = pa.table(columns, names)
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "f"
        options: dict[str, Any] = {"row_group_size": data.draw(st.integers(1, 40))}
        if data.draw(st.booleans()):
            options["use_deprecated_int96_timestamps"] = True
        pq.write_table(table, path, **options)
        uri, size = f"file://{path}", path.stat().st_size
        files = data_files("parquet")
        try:
            whole = rows_of(files.open(path.read_bytes()).batches())
        except Rejected:
            with pytest.raises(Rejected):
                rows_of(files.stream(LocalStorage(), uri, size, 64))
            return
        assert whole.count == count
        for memory in (64, 1 << 12, 1 << 30):
            assert rows_of(files.stream(LocalStorage(), uri, size, memory)) == whole


def state_of(path: Path) -> FileState:
    stat = LocalStorage().stat(f"file://{path}")
    assert stat is not None
    return FileState.of(stat)


def large(path: Path) -> FileState:
    """20 MB of rows that cannot be compressed."""
    random = np.random.default_rng(7)
    table = pa.table({f"c{i}": random.integers(0, 2**63, 310_000) for i in range(8)})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    assert path.stat().st_size > 19_000_000
    return state_of(path)


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    one, two = large(tmp_path / "one"), large(tmp_path / "two")
    storage = Counting()
    copies = Copies(storage, 8 << 20)
    assert copies.rows([one]) == copies.rows([two])
    assert storage.longest <= 4 << 20 and storage.reads > 10
    with pytest.raises(Unequal, match="changed while it was read"):
        Copies(Counting(9), 8 << 20).rows([one, two])


@settings(max_examples=25)
@given(st.data(), st.lists(st.lists(TYPES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_small_files_have_the_same_rows_together(
    data: st.DataObject, schemas: list[list[pa.DataType]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        for number in range(7):
            types = data.draw(st.sampled_from(schemas))
            count = data.draw(st.integers(0, 9))
            columns = {f"c{i}": values(data.draw, type, count) for i, type in enumerate(types)}
            pq.write_table(pa.table(columns), Path(root) / f"{number}")
        files = [state_of(path) for path in sorted(Path(root).iterdir())]
        alone = Copies(LocalStorage(), 1 << 30).rows(files)
        for together in (2, 64):
            assert Copies(LocalStorage(), 1 << 30, together=together).rows(files) == alone


def test_of_small_files_that_are_read_together_the_bad_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        pq.write_table(pa.table({"s": [f"s{number}"]}), tmp_path / f"{number}")
    sound = [state_of(path) for path in sorted(tmp_path.iterdir())]
    raw = bytearray((tmp_path / "5").read_bytes())
    raw[4:40] = bytes(36)
    (tmp_path / "5").write_bytes(raw)
    files = [state_of(path) for path in sorted(tmp_path.iterdir())]
    copies = Copies(LocalStorage(), 1 << 30, together=64)
    with pytest.raises(Unequal, match="/5 cannot be read"):
        copies.rows(files)
    with pytest.raises(Unequal, match="/5 changed while it was read"):
        copies.rows(sound)
    poison = pa.table({"s": [dying_decoder.POISON.decode()]})
    pq.write_table(poison, tmp_path / "5", compression="none", use_dictionary=False)
    monkeypatch.setattr(rewriting, "_DECODED", ChildReader(dying_decoder.decode))
    files = [state_of(path) for path in sorted(tmp_path.iterdir())]
    assert copies.rows(files) == Copies(LocalStorage(), 1 << 30).rows(files)
    rewriting._DECODED.close()
