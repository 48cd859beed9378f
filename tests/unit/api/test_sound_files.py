"""Files that other writers made well and that a library here does not take as they are."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import random
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.formats.lines.lines import line_blocks
from bridge.formats.orc.format import FORMAT
from bridge.kernel.errors import FileAmbiguous, FileUnreadable
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.infer import merge_schemas
from bridge.table.segments.headers import first_line
from tests.support.footers import BINARY, LIST, chunks, get, put_together, set_to, take_apart
from tests.tiers import examples


def table_of(directory: Path, **kinds: Any) -> bridge.Table:
    """The table of a directory, with an index."""
    for path in directory.iterdir():
        os.utime(path, (10**9, 10**9))
    table = bridge.connect().table(f"{directory}/")
    built = table.index.build(**kinds)
    assert not built.failed, built.failed
    return bridge.connect().table(f"{directory}/")


def kept(table: bridge.Table, where: str) -> set[str]:
    found = table.scan(where).explain().paths.to_pylist()
    return {path.rpartition("/")[2] for path in found}


@pytest.mark.parametrize(
    "type", [pa.decimal32(7, 2), pa.decimal64(14, 2), pa.decimal256(30, 2)], ids=str
)
def test_value_lists_of_every_width_of_decimals(tmp_path: Path, type: pa.DataType) -> None:
    for i in range(3):
        values = pa.array([Decimal(i), Decimal(i + 5), None], type)
        table = pa.table({"d": values, "s": [f"x{i}", "y", None]})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    found = table_of(tmp_path, values=["d", "s"], bloom=["d"])
    assert kept(found, "d = 6") == kept(found, "s = 'x1'") == {"1.parquet"}
    assert found.scan("d = 6").to_arrow()["d"].to_pylist() == [Decimal(6)]


@pytest.mark.parametrize("type", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("statistics", [True, False])
def test_views_of_texts_are_indexed_as_texts(
    tmp_path: Path, type: pa.DataType, statistics: bool
) -> None:
    for i in range(3):
        values = pa.array([f"x{i}", f"x{i + 5}", None]).cast(type)
        inner = pa.StructArray.from_arrays([values], ["f"])
        table = pa.table({"v": values, "st": inner, "n": [i, i, i]})
        pq.write_table(table, tmp_path / f"{i}.parquet", write_statistics=statistics)
    found = table_of(tmp_path, values=["n"], bloom=["v", "st.f"], ndv="v")
    value = "'x6'" if type == pa.string_view() else "X'7836'"
    assert kept(found, f"v = {value}") == kept(found, f"st.f = {value}") == {"1.parquet"}
    assert kept(found, f"v < {value}") == {"0.parquet", "1.parquet", "2.parquet"}
    assert kept(found, "n = 2") == {"2.parquet"}
    assert found.scan(f"v = {value}").to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.duration("ns"), [7, None, -5]),
        (pa.list_(pa.float32(), 2), [[1.5, 2], None, [3, None]]),
        (pa.list_(pa.list_(pa.duration("s"), 1)), [[[1]], [None], None]),
        (pa.struct([("e", pa.list_(pa.int64(), 1))]), [{"e": [1]}, None, {"e": None}]),
    ],
    ids=str,
)
def test_types_that_only_arrow_knows_are_what_they_are_stored_as(
    tmp_path: Path, type: pa.DataType, values: list[Any]
) -> None:
    for i, named in enumerate((True, False)):
        table = pa.table({"n": [i] * 3, "c": pa.array(values, type)})
        pq.write_table(table, tmp_path / f"{i}.parquet", store_schema=named)
    plain = pq.read_table(tmp_path / "1.parquet")["c"].to_pylist()
    found = table_of(tmp_path, bloom="c" if type == pa.duration("ns") else "n")
    assert found.scan().to_arrow()["c"].to_pylist() == plain * 2
    assert found.scan("n = 0 AND c IS NULL").to_arrow().num_rows == 1
    if type == pa.duration("ns"):
        assert kept(found, "c = 7") == {"0.parquet", "1.parquet"}
        assert kept(found, "c = 6") == kept(found, "c > 7") == set()


def test_extension_types_are_what_they_are_stored_as(tmp_path: Path) -> None:
    for i in range(2):
        text = pa.array(["{}", str(i)], pa.json_())
        table = pa.table(
            {
                "j": text,
                "n": pa.StructArray.from_arrays([text], ["q"]),
                "u": pa.array([bytes([i] * 16)] * 2, pa.uuid()),
                "b": pa.array([1, 0], pa.int8()).cast(pa.bool8()),
                "l": pa.array([["1"], None]).cast(pa.list_(pa.json_())),
            }
        )
        pq.write_table(table, tmp_path / f"{i}.parquet")
    found = table_of(tmp_path, values=["j"], bloom=["j", "n.q"])
    assert kept(found, "j = '1'") == kept(found, "n.q = '1'") == {"1.parquet"}
    (row,) = found.scan("j = '1'").to_arrow().to_pylist()
    assert row == {"j": "1", "n": {"q": "1"}, "u": b"\1" * 16, "b": 0, "l": None}


def test_what_one_list_cannot_take_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the file either: the next build tries again."""
    from bridge.index.building import value_scan
    from bridge.index.kinds import values

    real = values.canonical

    def lacking(stored: Any, found: Any, **more: Any) -> Any:
        if stored.logical == "int":
            raise pa.ArrowNotImplementedError("no kernel matches input types")
        return real(stored, found, **more)

    monkeypatch.setattr(values, "canonical", lacking)
    # In this process, where the values' type is patched.
    here = lambda storage, *asked, ahead: value_scan.gather_parquet(storage, *asked)  # noqa: E731
    monkeypatch.setattr(value_scan.DEEP, "read", here)
    for i in range(2):
        pq.write_table(pa.table({"k": [i], "s": [f"x{i}"]}), tmp_path / f"{i}.parquet")
        os.utime(tmp_path / f"{i}.parquet", (10**9, 10**9))
    table = bridge.connect().table(f"{tmp_path}/")
    built = table.index.build(values=["k", "s"])
    assert all(f["reason"].startswith("FILE_UNREADABLE") for f in built.failed) and built.failed
    assert kept(table, "s = 'x1'") == {"1.parquet"} == kept(table, "k = 1")
    monkeypatch.undo()
    assert not table.index.build(values=["k", "s"]).failed


def test_a_column_without_values_goes_with_every_type(tmp_path: Path) -> None:
    """A law: of files with some parts NULL throughout, the schema is that of the others."""
    rng = random.Random(7)
    leaves = [pa.int64(), pa.string(), pa.decimal128(9, 2), pa.date32(), pa.binary()]

    def draw(depth: int) -> pa.DataType:
        if not depth or rng.random() < 0.4:
            return rng.choice(leaves)
        part = [draw(depth - 1), draw(depth - 1)]
        return rng.choice(
            [
                pa.list_(part[0]),
                pa.map_(pa.string(), part[0]),
                pa.struct([("a", part[0]), ("b", part[1])]),
            ]
        )

    def emptied(type: pa.DataType) -> pa.DataType:
        if rng.random() < 0.3:
            return pa.null()
        if pa.types.is_struct(type):
            return pa.struct([f.with_type(emptied(f.type)) for f in type])
        if pa.types.is_map(type):
            return pa.map_(type.key_type, emptied(type.item_type))
        return pa.list_(emptied(type.value_type)) if pa.types.is_list(type) else type

    for _ in range(examples(50, 300, 5000)):
        whole = pa.schema([("c", draw(3))])
        less = pa.schema([("c", emptied(whole.field("c").type))])
        files = [("f", less), ("g", whole)]
        rng.shuffle(files)
        assert merge_schemas(files) == merge_schemas([("g", whole)])


def test_a_column_without_values_is_read_beside_others(tmp_path: Path) -> None:
    none = pa.struct([("q", pa.null()), ("r", pa.int64())])
    some = pa.struct([("q", pa.list_(pa.int64())), ("r", pa.int64())])
    first = {"id": [1], "x": pa.nulls(1), "st": pa.array([{"q": None, "r": 1}], none)}
    second = {"id": [2], "x": [7], "st": pa.array([{"q": [1], "r": 1}], some)}
    pq.write_table(pa.table(first), tmp_path / "a.parquet")
    alone = bridge.connect().table(f"{tmp_path}/").scan().to_arrow()
    assert alone.to_pylist() == [{"id": 1, "x": None, "st": {"r": 1}}]
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    found = table_of(tmp_path, bloom=["x"])
    rows = [{"id": 1, "x": None, "st": {"q": None, "r": 1}}, second | {"id": 2, "x": 7}]
    rows[1] = {"id": 2, "x": 7, "st": {"q": [1], "r": 1}}
    for where, wanted in ((None, rows), ("x = 7", rows[1:]), ("x IS NULL", rows[:1])):
        assert sorted(found.scan(where).to_arrow().to_pylist(), key=str) == wanted


def test_a_footer_with_empty_paths(tmp_path: Path) -> None:
    for i in range(2):
        sink = BytesIO()
        pq.write_table(pa.table({"id": [2 * i, 2 * i + 1], "s": [f"x{i}", None]}), sink)
        data, footer = take_apart(sink.getvalue())
        for chunk in chunks(footer):
            set_to(get(chunk, 3), 3, LIST, (BINARY, []))
        (tmp_path / f"{i}.parquet").write_bytes(put_together(data, footer))
    found = table_of(tmp_path, values=["s"])
    assert kept(found, "id = 3") == kept(found, "s = 'x1'") == {"1.parquet"}
    assert found.scan("id = 3").to_arrow().to_pylist() == [{"id": 3, "s": None}]


def test_orc_times_beyond_nanoseconds_are_told_of_and_cost_no_other_column(
    tmp_path: Path,
) -> None:
    for i, year in enumerate((9999, 2024)):
        when = pa.array([dt.datetime(year, 12, 31), None], pa.timestamp("us"))
        po.write_table(pa.table({"at": when, "k": [i, i]}), tmp_path / f"{i}.orc")
    found = table_of(tmp_path, values=["k"])
    assert kept(found, "k = 0") == {"0.orc"}
    assert found.scan("k = 0", ["k"]).to_arrow()["k"].to_pylist() == [0, 0]
    with pytest.raises(FileUnreadable, match=r"0\.orc cannot be read here: .*out of range"):
        found.scan("k = 0").to_arrow()


def test_orc_whose_magic_is_at_its_head_alone(tmp_path: Path) -> None:
    sink = BytesIO()
    po.write_table(pa.table({"k": [1, 2]}), sink)
    raw = sink.getvalue()
    script = raw[-1 - raw[-1] : -1].removesuffix(b"\x82\xf4\x03\x03ORC")
    old = raw[: -1 - raw[-1]] + script + bytes([len(script)])
    (tmp_path / "a.orc").write_bytes(old)
    assert table_of(tmp_path).scan("k = 2").to_arrow()["k"].to_pylist() == [2]
    recognise = FORMAT.recognise
    assert recognise is not None
    assert not any(recognise(raw[:512], raw[5:n][-64:]) for n in range(6, len(raw)))


def test_gzip_members_are_one_text_wherever_they_are_cut(tmp_path: Path) -> None:
    rng, storage = random.Random(3), LocalStorage()
    text = b"id,name\n" + b"".join(b"%d,n%d\n" % (i, i) for i in range(200))
    path = tmp_path / "a.csv.gz"
    for _ in range(examples(20, 100, 2000)):
        cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randrange(4)))
        ends = [0, *cuts, len(text)]
        raw = b"".join(gzip.compress(text[a:b]) for a, b in pairwise(ends))
        path.write_bytes(raw)
        assert first_line(storage, f"file://{path}", len(raw)) == "id,name"
        assert b"".join(line_blocks(storage, f"file://{path}", len(raw), 0)) == text
    path.write_bytes(raw + b"junk")
    with pytest.raises(FileAmbiguous):
        list(line_blocks(storage, f"file://{path}", len(raw) + 4, 0))
