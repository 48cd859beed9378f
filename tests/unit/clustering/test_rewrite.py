"""Rewrites keep every value of every type, the schema and how it is stored; or are rejected."""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.registry import layout
from bridge.clustering.rewriting.rewrite import Effort, GroupResult, GroupTask, rewrite_group
from bridge.formats.checksum import checksum
from bridge.formats.parquet import encoding, rewriting
from bridge.formats.parquet.bloom_types import stored_types
from bridge.index.generations.replacements import FileState
from bridge.kernel.types import BIGINT, DOUBLE, INTEGER, STRING, Field, array, char, struct
from bridge.storage.routed import open_storage

STORAGE = open_storage()


def state_of(path: Path) -> FileState:
    found = STORAGE.stat(f"file://{path}")
    assert found is not None
    return FileState(found.uri, found.size, found.modified, found.etag)


def rewritten(
    tmp_path: Path,
    *files: Path,
    outputs: int = 1,
    by: tuple[str, ...] = ("k",),
    effort: Effort | None = None,
    **changes: Any,
) -> GroupResult:
    task = GroupTask(
        0,
        "",
        tuple(state_of(path) for path in files),
        outputs,
        changes.pop("layout", "linear" if by else "binpack"),
        by,
        f"file://{tmp_path}/.new",
        changes.pop("compression", None),
        changes.pop("row_group_bytes", 1 << 27),
        **changes,
    )
    return rewrite_group(task, STORAGE, layout(task.layout, len(by)), effort)


def opened(state: FileState) -> pq.ParquetFile:
    return pq.ParquetFile(state.path.removeprefix("file://"))


def every_type() -> pa.Table:
    count = 9
    keys = pa.array([5, 3, None, 9, 1, 7, 3, 0, -4], pa.int64())
    mask = [i % 4 == 2 for i in range(count)]

    def column(values: Any, type: pa.DataType) -> pa.Array:
        held = [None if m else v for v, m in zip(values, mask, strict=True)]
        return pa.array(held, type)

    struct = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    when = [dt.datetime(1900 + i, 1, 2, 3, 4, 5, 678901) for i in range(count)]
    return pa.table(
        {
            "k": keys,
            "tiny": column(range(-4, 5), pa.int8()),
            "small": column(range(-4, 5), pa.int16()),
            "int": column(range(-4, 5), pa.int32()),
            "float": column([float("nan"), -0.0, 0.0, 1.5, float("inf"), 2, 3, 4, 5], pa.float32()),
            "double": column([1e300, float("nan"), 0, -0.0, 5, 6, 7, 8, 9], pa.float64()),
            "flag": column([i % 2 == 0 for i in range(count)], pa.bool_()),
            "text": column([f"ä{i}" * i for i in range(count)], pa.string()),
            "binary": column([bytes([i, 255]) for i in range(count)], pa.binary()),
            "fixed": column([bytes([i] * 3) for i in range(count)], pa.binary(3)),
            "small_decimal": column(
                [decimal.Decimal(i) / 4 for i in range(count)], pa.decimal128(9, 2)
            ),
            "wide_decimal": column(
                [decimal.Decimal(10) ** 25 + i for i in range(count)], pa.decimal128(38, 3)
            ),
            "day": column([w.date() for w in when], pa.date32()),
            "millis": column(
                [w.replace(microsecond=5000) for w in when], pa.timestamp("ms", "UTC")
            ),
            "micros": column(when, pa.timestamp("us")),
            "zoned": column(when, pa.timestamp("us", "UTC")),
            "nanos": column(range(count), pa.timestamp("ns")),
            "list": column([[None, i, i + 1][: i % 4] for i in range(count)], pa.list_(pa.int64())),
            "map": column(
                [[("a", i), ("b", None)] for i in range(count)], pa.map_(pa.string(), pa.int32())
            ),
            "struct": column([{"a": i, "b": ["x", None]} for i in range(count)], struct),
            "deep": column([[{"a": i, "b": []}, None] for i in range(count)], pa.list_(struct)),
            "nothing": pa.nulls(count, pa.string()),
        }
    )


def rows_of(tables: list[pa.Table]) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


EFFORTS = {
    "in memory": Effort(),
    "in threads": Effort(threads=3),
    "in temporary files": Effort(memory=0),
    "both": Effort(threads=2, memory=2000),
    "unverified": Effort(verify=False),
}


@pytest.mark.parametrize("effort", EFFORTS.values(), ids=EFFORTS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_type_is_kept(tmp_path: Path, outputs: int, effort: Effort) -> None:
    table = every_type()
    for i in range(3):
        pq.write_table(table, tmp_path / f"f{i}.parquet", row_group_size=4, version="2.6")
    files = sorted(tmp_path.glob("*.parquet"))
    result = rewritten(tmp_path, *files, outputs=outputs, effort=effort)
    assert (result.rejected, result.rows, len(result.new)) == ("", 27, outputs)
    assert bool(result.checksum) == effort.verify
    new = [opened(state) for state in result.new]
    assert rows_of([f.read() for f in new]) == rows_of([table] * 3)
    assert all(f.schema_arrow.equals(table.schema) for f in new)
    keys = pa.concat_tables([f.read() for f in new])["k"].to_pylist()
    assert keys == sorted(k for k in keys if k is not None) + [None] * 3


@pytest.mark.parametrize(
    "options",
    [
        {"use_deprecated_int96_timestamps": True},
        {"store_decimal_as_integer": True},
        {"compression": {"k": "zstd", "v": "none", "t": "gzip", "d": "snappy"}},
        {"compression": "gzip"},
        {"store_schema": False},
    ],
)
def test_values_are_stored_as_they_were(tmp_path: Path, options: dict[str, Any]) -> None:
    schema = pa.schema(
        [
            pa.field("k", pa.int64(), metadata={"PARQUET:field_id": "7"}),
            pa.field("v", pa.string(), False, metadata={"PARQUET:field_id": "3"}),
            pa.field("t", pa.timestamp("ns"), metadata={"PARQUET:field_id": "4"}),
            pa.field("d", pa.decimal128(9, 2), metadata={"PARQUET:field_id": "5"}),
        ]
    )
    data = {
        "k": [2, 1],
        "v": ["b", "a"],
        "t": [dt.datetime(2026, 1, 1), None],
        "d": [decimal.Decimal("1.25"), None],
    }
    with pq.ParquetWriter(tmp_path / "f.parquet", schema, **options) as writer:
        writer.write_table(pa.table(data, schema))
        writer.add_key_value_metadata({"org.apache.spark.version": "3.5.1", "pandas": "{}"})
    result = rewritten(tmp_path, tmp_path / "f.parquet")
    assert result.rejected == ""
    old, new = pq.ParquetFile(tmp_path / "f.parquet"), opened(result.new[0])
    assert new.schema.equals(old.schema)
    assert [f.metadata for f in new.schema_arrow] == [f.metadata for f in old.schema_arrow]
    kept = dict(new.metadata.metadata or {})
    assert kept[b"org.apache.spark.version"] == b"3.5.1" and b"pandas" not in kept
    assert (b"ARROW:schema" in kept) == options.get("store_schema", True)
    for i in range(4):
        pair = [f.metadata.row_group(0).column(i).compression for f in (old, new)]
        assert pair[0] == pair[1]


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_text_of_few_values_and_of_views(tmp_path: Path, store: bool, memory: int) -> None:
    """It is moved as codes, and files keep the types that they had."""
    for i in range(3):
        few = [None if k % 7 == i else f"{i}{'x' * (k % 3)}" for k in range(500)]
        table = pa.table(
            {
                "k": range(i, 500 + i),
                "few": few,
                "view": pa.array(few, pa.string_view()),
                "bytes": pa.array(few).cast(pa.binary_view()),
                "in": pa.array([{"v": v} for v in few]),
                "coded": pa.array(few).dictionary_encode(),
                "many": [f"{k * 7919 % 1000} and more" for k in range(500)],
            }
        )
        pq.write_table(table, tmp_path / f"f{i}.parquet", row_group_size=200, store_schema=store)
    files = sorted(tmp_path.glob("*.parquet"))
    result = rewritten(
        tmp_path, *files, outputs=2, by=("few", "k"), effort=Effort(2, memory), row_group_bytes=2000
    )
    assert (result.rejected, result.rows, len(result.new)) == ("", 1500, 2)
    old, new = [pq.ParquetFile(f) for f in files], [opened(state) for state in result.new]
    assert all(f.schema_arrow.equals(old[0].schema_arrow, True) for f in new)
    assert rows_of([f.read() for f in new]) == rows_of([f.read() for f in old])
    for file in new:
        for i in range(file.metadata.num_row_groups):
            group, rows = file.metadata.row_group(i), file.read_row_group(i, columns=["few"])
            held = [v for v in rows["few"].to_pylist() if v is not None]
            bounds = group.column(1).statistics
            if held:
                assert (bounds.min, bounds.max) == (min(held), max(held))
            assert bounds.null_count == len(rows) - len(held)


@pytest.mark.parametrize("effort", EFFORTS.values(), ids=EFFORTS)
@pytest.mark.parametrize("name", ["kdtree", "hilbert", "zorder"])
def test_layouts_of_several_columns_keep_every_row(
    tmp_path: Path, name: str, effort: Effort
) -> None:
    table = every_type()
    for i in range(5):
        pq.write_table(table.slice(i), tmp_path / f"f{i}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    by = ("text", "wide_decimal", "nothing", "micros")
    result = rewritten(tmp_path, *files, outputs=4, by=by, layout=name, effort=effort)
    assert (result.rejected, result.rows) == ("", 35)
    assert 2 <= len(result.new) <= 4
    new = [opened(state).read() for state in result.new]
    assert rows_of(new) == rows_of([table.slice(i) for i in range(5)])


def hit(path: Path | str, column: str, value: Any) -> bool:
    """Whether DuckDB finds a value in the bloom filter of any row group."""
    probed = duckdb.execute(
        "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, ?, ?)", [str(path), column, value]
    ).fetchall()
    return not all(excluded for (excluded,) in probed)


def stored_as(table: pa.Table) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a table that declares the columns of a file says of them."""
    file = BytesIO()
    pq.write_table(table, file)
    leaves = pq.ParquetFile(file).schema
    paths = ((leaves.column(i).path, leaves.column(i).physical_type) for i in range(len(leaves)))
    return tuple((path, (physical,)) for path, physical in paths)


BLOOMED = ["k", "small", "int", "text", "binary", "small_decimal", "day", "micros"]


@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_bloom_filters_as_asked_and_page_indexes(tmp_path: Path, memory: int) -> None:
    table = every_type().select(BLOOMED)
    few = pa.array([f"often {i % 2}" for i in range(len(table))])
    table = table.append_column("few", few)
    names = [*BLOOMED, "few"]
    for i in range(40):  # dictionaries pay, so that text arrives as codes
        pq.write_table(table, tmp_path / f"f{i}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    result = rewritten(
        tmp_path, *files, outputs=2, effort=Effort(memory=memory), row_group_bytes=3000,
        bloom=tuple(name.upper() for name in names), stored=stored_as(table),
    )  # fmt: skip
    assert (result.rejected, result.rows, len(result.new)) == ("", 360, 2)
    found = [Path(state.path.removeprefix("file://")) for state in result.new]
    assert rows_of([opened(s).read() for s in result.new]) == rows_of([table] * 40)
    for state in result.new:
        metadata = opened(state).metadata
        for group in range(metadata.num_row_groups):
            for i in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(i)
                assert chunk.has_column_index and chunk.has_offset_index
                assert chunk.bloom_filter_offset is not None
    for name in names:
        for value in set(table[name].drop_null().to_pylist()):
            assert any(hit(path, name, value) for path in found), (name, value)
    absent = sum(hit(path, "text", f"no{i}") for i in range(50) for path in found)
    assert absent <= 10


@pytest.mark.parametrize("had", [True, False])
def test_bloom_filters_of_the_old_files_are_kept(tmp_path: Path, had: bool) -> None:
    table = pa.table({"k": range(100), "in": [{"v": i} for i in range(100)]})
    blooms = {"k": {"ndv": 100, "fpp": 0.01}, "in.v": True} if had else None
    for i in range(2):
        pq.write_table(
            table, tmp_path / f"f{i}.parquet", write_page_index=had, bloom_filter_options=blooms
        )
    result = rewritten(tmp_path, *sorted(tmp_path.glob("*.parquet")), stored=stored_as(table))
    (state,) = result.new
    group = opened(state).metadata.row_group(0)
    for i in range(2):
        assert group.column(i).has_column_index  # always
        assert (group.column(i).bloom_filter_offset is not None) == had
    if had:
        path = state.path.removeprefix("file://")
        assert all(hit(path, "k", i) for i in range(100))
        assert sum(hit(path, "k", i) for i in range(1000, 1100)) < 20


def test_no_bloom_filter_where_engines_look_up_other_bytes(tmp_path: Path) -> None:
    """Trino hashes values as the table declares them, and -0.0 and 0.0 are one value."""
    first = pa.table({"k": pa.array([1], pa.int32()), "d": [1.0], "s": [{"n": 1}], "t": ["x"]})
    second = pa.table({"k": pa.array([2], pa.int32()), "d": [-0.0], "s": [{"n": 2}], "t": ["y"]})
    pq.write_table(
        first, tmp_path / "f1.parquet",
        bloom_filter_options={"k": True, "d": True, "s.n": True, "t": True},
    )  # fmt: skip
    pq.write_table(second, tmp_path / "f2.parquet")
    member = struct(Field("n", INTEGER))
    columns = [("k", BIGINT), ("d", DOUBLE), ("s", member), ("t", STRING)]
    stored = stored_types(Field(name, type) for name, type in columns)
    files = sorted(tmp_path.glob("*.parquet"))
    result = rewritten(tmp_path, *files, bloom=("k", "t"), stored=stored)
    (state,) = result.new
    group = opened(state).metadata.row_group(0)
    chunks = [group.column(i) for i in range(4)]
    assert [c.path_in_schema for c in chunks if c.bloom_filter_offset is not None] == ["t"]


def test_stored_types_leave_out_what_is_in_doubt() -> None:
    fields = [
        Field("A", BIGINT), Field("f", DOUBLE), Field("c", char(3)), Field("l", array(BIGINT)),
        Field("s.x", BIGINT), Field("S", struct(Field("X", INTEGER), Field("Y", STRING))),
    ]  # fmt: skip
    found = dict(stored_types(fields))
    assert found.keys() == {"a", "s.y"} and found["a"] == ("INT64",)


def test_bloom_filters_that_arrow_does_not_write_reject_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(
        pa.table({"k": [1], "v": [1]}), tmp_path / "f.parquet", bloom_filter_options={"v": True}
    )
    monkeypatch.setattr(encoding, "_WRITES_BLOOMS", False)
    assert not rewritten(tmp_path, tmp_path / "f.parquet").rejected
    asked = rewritten(tmp_path, tmp_path / "f.parquet", bloom=("k",))
    assert "writes no bloom filters; install a later one" in asked.rejected


@pytest.mark.parametrize("memory", [1 << 30, 0])
@pytest.mark.parametrize("by", [("k",), ()])
def test_files_with_and_without_dictionaries_are_put_together(
    tmp_path: Path, by: tuple[str, ...], memory: int
) -> None:
    tables = []
    for i, coded in enumerate((True, False, True)):
        keys = range(i * 100, i * 100 + 100)
        texts = [None if k % 9 == 0 else f"s{k % 4}" for k in keys]
        tables.append(pa.table({"k": list(keys), "few": texts, "x": [f"{k}" for k in keys]}))
        pq.write_table(tables[-1], tmp_path / f"f{i}.parquet", use_dictionary=coded)
    files = [tmp_path / f"f{i}.parquet" for i in range(3)]
    done = rewritten(tmp_path, *files, outputs=2, by=by, effort=Effort(2, memory))
    assert not done.rejected and len(done.new) == 2
    new = [opened(state).read() for state in done.new]
    assert rows_of(new) == rows_of(tables)
    assert new[0].schema.types == tables[0].schema.types


def test_files_of_different_schemas_are_not_mixed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 5], "a": ["x", "y"]}), tmp_path / "f1.parquet")
    pq.write_table(pa.table({"k": [2, 4]}), tmp_path / "f2.parquet")
    pq.write_table(pa.table({"a": ["z"], "k": [3]}), tmp_path / "f3.parquet")
    pq.write_table(pa.table({"k": [0, 9], "a": ["v", "w"]}), tmp_path / "f4.parquet")
    result = rewritten(tmp_path, *sorted(tmp_path.glob("*.parquet")), by=("a", "k"))
    assert (result.rejected, result.rows, len(result.new)) == ("", 7, 3)
    names = sorted(str(opened(state).schema_arrow.names) for state in result.new)
    assert names == ["['a', 'k']", "['k', 'a']", "['k']"]


DUCKDB = (
    "TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE VARCHAR BLOB "
    "DATE TIME TIMESTAMP TIMESTAMPTZ TIMESTAMP_NS DECIMAL(9,1) DECIMAL(18,1) DECIMAL(38,1) BOOLEAN "
    "INTEGER[] STRUCT(a:INTEGER,b:VARCHAR[]) MAP(VARCHAR,BIGINT)"
).replace(":", " ")


@pytest.mark.parametrize("of", ["integers", "others"])
def test_every_annotation_of_duckdb_is_kept(tmp_path: Path, of: str) -> None:
    """It annotates plain integers, as Trino does; its schemas state a precision for all types."""
    types = re.findall(r"\w+(?:\(.*?\))?(?:\[\])?", DUCKDB)
    chosen = types[:8] if of == "integers" else types[8:]
    parts = ", ".join(f"NULL::{type} AS c{i}" for i, type in enumerate(chosen))
    for number in range(2):
        query = f"SELECT (i * 7 % 10) k, {parts} FROM range(10) r(i)"
        duckdb.sql(f"COPY ({query}) TO '{tmp_path}/f{number}.parquet' (FORMAT parquet)")
    pq.write_table(pq.read_table(tmp_path / "f0.parquet"), tmp_path / "f2.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    result = rewritten(tmp_path, *files)
    assert (result.rejected, result.rows) == ("", 30)
    assert rows_of([opened(state).read() for state in result.new]) == rows_of(
        [pq.read_table(path) for path in files]
    )


def test_compression_and_row_groups_as_asked(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": list(range(50_000))}), tmp_path / "f.parquet")
    size = (tmp_path / "f.parquet").stat().st_size
    result = rewritten(
        tmp_path, tmp_path / "f.parquet", compression="zstd", row_group_bytes=size // 5
    )
    metadata = opened(result.new[0]).metadata
    assert metadata.num_row_groups == 6 and metadata.row_group(0).column(0).compression == "ZSTD"


def test_int96_beyond_nanoseconds_is_rejected(tmp_path: Path) -> None:
    for year in (2026, 3000):
        when = pa.array([dt.datetime(year, 1, 1), None], pa.timestamp("us"))
        table = pa.table({"k": when, "f": [float("nan"), 1.0]})
        pq.write_table(table, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
        result = rewritten(tmp_path, tmp_path / "f.parquet")
        assert ("INT96" in result.rejected) == (result.new == ()) == (year == 3000)


@pytest.mark.parametrize("type", [pa.json_(), pa.uuid()])
def test_annotations_are_kept_or_the_group_is_rejected(tmp_path: Path, type: Any) -> None:
    values = [b"1" * 16] if type == pa.uuid() else ["{}"]
    table = pa.table({"k": pa.array(values, type.storage_type).cast(type)})
    for store in (False, True):
        pq.write_table(table, tmp_path / "f.parquet", store_schema=store)
        result = rewritten(tmp_path, tmp_path / "f.parquet", by=())
        if not result.rejected:
            old, new = pq.ParquetFile(tmp_path / "f.parquet"), opened(result.new[0])
            assert new.schema.equals(old.schema)


def test_a_fault_of_the_writer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}), tmp_path / "f.parquet")
    encode = rewriting.encode_parquet
    faults = {
        "lost": lambda t: t.slice(1),
        "doubled": lambda t: pa.concat_tables([t.slice(1), t.slice(1, 1)]),
        "swapped": lambda t: t.set_column(1, "v", pa.chunked_array([["b", "a", "c"]])),
    }
    for fault in faults.values():
        monkeypatch.setattr(
            rewriting,
            "encode_parquet",
            lambda groups, *rest, fault=fault: encode([fault(t) for t in groups], *rest),
        )
        result = rewritten(tmp_path, tmp_path / "f.parquet")
        assert result.rejected.startswith("VERIFICATION") and result.new == ()
        assert not list((tmp_path / ".new").glob("*"))


@pytest.mark.parametrize("fault", ["gone", "other", "damaged"])
def test_an_old_file_that_cannot_be_read_rejects_the_group(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"k": [1, 2, 3]}), path)
    if fault == "damaged":
        path.write_bytes(path.read_bytes()[:-4] + b"nope")
    before = state_of(path)
    if fault == "gone":
        path.unlink()
    elif fault == "other":
        pq.write_table(pa.table({"k": list(range(1000))}), path)
    task = GroupTask(0, "", (before,), 1, "linear", ("k",), f"file://{tmp_path}/.new", None, 1000)
    result = rewrite_group(task, STORAGE, layout("linear", 1))
    assert result.new == () and result.rejected
    assert result.rejected.startswith("FILE_CHANGED") == (fault != "damaged")


@pytest.mark.rule("32")
def test_32_damaged_pages_are_found_by_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder may be ended by them. This process is not asked to decode."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"k": ["one", "two"] * 500}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[30:60] = b"\xff" * 30
    path.write_bytes(content)
    decoded = pq.ParquetFile

    def forbidden(*given: Any, **options: Any) -> pq.ParquetFile:
        raise AssertionError("decoded here")

    with pytest.raises((OSError, pa.ArrowException)):
        decoded(path).read()
    monkeypatch.setattr(pq, "ParquetFile", forbidden)
    result = rewritten(tmp_path, path)
    assert result.new == () and "f.parquet" in result.rejected
    assert "decoded here" not in result.rejected


def test_checksums_see_values_and_not_their_order() -> None:
    table = every_type()
    mixed = table.take([3, 0, 8, 1, 2, 5, 4, 7, 6])
    assert checksum(table) == checksum(mixed) == checksum(pa.concat_tables([mixed[4:], mixed[:4]]))
    seen = {checksum(table)}
    for i, name in enumerate(table.column_names[:-1]):
        turned = table.set_column(i, name, table[name].take([1, 0, 2, 3, 4, 5, 6, 7, 8]))
        seen.add(checksum(turned))
    assert len(seen) == table.num_columns
    lists = [pa.table({"a": pa.array(v)}) for v in ([[1], [2, 3]], [[1, 2], [3]], [[2], [1, 3]])]
    assert len({checksum(each) for each in lists}) == 3
    sliced = pa.concat_tables([table, table]).combine_chunks().slice(9)
    assert checksum(sliced) == checksum(table)
    assert checksum(pa.table({"u": pa.array([uuid.uuid4().bytes], pa.uuid())})) > 0
