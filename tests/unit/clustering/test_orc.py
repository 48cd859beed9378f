"""ORC files are rewritten with every value, type and property, or rejected by name."""

from __future__ import annotations

import datetime as dt
import io
import random
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.orc as po
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.checksum import checksum
from bridge.clustering.orc_tail import OrcTail
from bridge.clustering.registry import layout
from bridge.clustering.rewrite import GroupResult, GroupTask, rewrite_group
from tests.unit.clustering.test_rewrite import STORAGE, every_type, rows_of, state_of


def rewritten(
    tmp_path: Path, *files: Path, outputs: int = 1, by: tuple[str, ...] = ("k",), **changes: Any
) -> GroupResult:
    task = GroupTask(
        0,
        "",
        tuple(state_of(path) for path in files),
        outputs,
        "linear" if by else "binpack",
        by,
        f"file://{tmp_path}/.new",
        changes.pop("compression", None),
        1 << 26,
        "orc",
        changes.pop("places", ()),
    )
    return rewrite_group(task, STORAGE, layout(task.layout, len(by)))


def new_files(result: GroupResult) -> list[Path]:
    assert result.rejected == ""
    return [Path(state.path.removeprefix("file://")) for state in result.new]


def plain() -> pa.Table:
    """Columns of every type that ORC has, with times that every engine reads."""
    table = every_type()
    since_1970 = [dt.datetime(1970 + i, 1, 2, 3, 4, 5, 678901) for i in range(table.num_rows)]
    dropped = table.drop_columns(["millis", "micros", "zoned", "fixed"])
    return dropped.append_column("moment", pa.array(since_1970, pa.timestamp("ns"))).append_column(
        "ancient",
        pa.array([-800_000 + i for i in range(table.num_rows)], pa.int32()).cast("date32"),
    )


def described(
    path: Path,
    table: pa.Table,
    kinds: dict[str, tuple[int, int]] | None = None,
    metadata: dict[bytes, bytes] | None = None,
    **options: Any,
) -> None:
    """A file whose text columns are declared as ``(kind, length)``, as Java's writer declares."""
    sink = io.BytesIO()
    po.write_table(table, sink, **options)
    tail = OrcTail(sink.getvalue())
    raw = tail.raw_types
    for name, (kind, length) in (kinds or {}).items():
        number = tail.types[0].children[tail.types[0].names.index(name)]
        raw[number] = bytes([8, kind, 32, length])
    path.write_bytes(tail.described_as(cast(OrcTail, _Declared(raw)), metadata or {}))


class _Declared:
    """Types in place of a file's own."""

    calendar = 2

    def __init__(self, raw_types: list[bytes]) -> None:
        self.raw_types = raw_types


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_type_is_kept(tmp_path: Path, compression: str, outputs: int) -> None:
    table = plain()
    for i in range(3):
        po.write_table(table, tmp_path / f"f{i}.orc", compression=compression)
    result = rewritten(tmp_path, *sorted(tmp_path.glob("*.orc")), outputs=outputs)
    assert (result.rejected, result.rows, len(result.new)) == ("", 27, outputs)
    found = [po.ORCFile(path) for path in new_files(result)]
    ancient = table.column_names.index("ancient")
    read = [f.read() for f in found]
    days = pa.concat_tables(read)["ancient"].cast("int32").to_pylist()
    assert sorted(days) == sorted(table["ancient"].cast("int32").to_pylist() * 3)
    assert rows_of([t.remove_column(ancient) for t in read]) == rows_of(
        [table.remove_column(ancient)] * 3
    )
    assert {f.compression for f in found} == {compression.upper()}
    keys = pa.concat_tables(read)["k"].to_pylist()
    assert keys == sorted(k for k in keys if k is not None) + [None] * 3


def test_lengths_calendar_and_properties_are_kept(tmp_path: Path) -> None:
    table = pa.table({"k": [3, 1], "v": ["äbc", None], "c": ["x   ", "yy  "], "s": ["a", "b"]})
    kinds = {"v": (16, 3), "c": (17, 4)}
    properties = {b"org.apache.spark.version": b"3.5.1", b"presto_query_id": b"20260101_1"}
    for i, query in enumerate((b"1", b"2")):
        properties[b"presto_query_id"] = query
        described(tmp_path / f"f{i}.orc", table, kinds, properties, compression="zlib")
    result = rewritten(tmp_path, *sorted(tmp_path.glob("*.orc")))
    (path,) = new_files(result)  # what tells of one file alone does not keep files apart
    tail = OrcTail(path.read_bytes())
    assert [t.kind for t in tail.types] == ["struct", "bigint", "varchar", "char", "string"]
    assert tail.raw_types == OrcTail((tmp_path / "f0.orc").read_bytes()).raw_types
    assert tail.calendar == 2
    assert tail.user_metadata == {b"org.apache.spark.version": b"3.5.1"}
    assert rows_of([po.ORCFile(path).read()]) == rows_of([table, table])


def test_field_ids_are_kept_at_every_depth(tmp_path: Path) -> None:
    def id(number: int) -> dict[str, str]:
        return {"iceberg.id": str(number), "iceberg.required": "false"}

    inner = pa.struct([pa.field("a", pa.int32(), metadata=id(3))])
    schema = pa.schema(
        [pa.field("k", pa.int64(), metadata=id(1)), pa.field("st", inner, metadata=id(2))]
    )
    po.write_table(pa.table({"k": [2, 1], "st": [{"a": 5}, None]}, schema), tmp_path / "f.orc")
    (path,) = new_files(rewritten(tmp_path, tmp_path / "f.orc"))
    old, new = (OrcTail(p.read_bytes()) for p in (tmp_path / "f.orc", path))
    assert new.raw_types == old.raw_types and b"iceberg.id" in b"".join(new.raw_types)


def test_files_of_different_schemas_are_not_mixed(tmp_path: Path) -> None:
    po.write_table(pa.table({"k": [1, 5], "a": ["x", "y"]}), tmp_path / "f1.orc")
    po.write_table(pa.table({"k": [2, 4]}), tmp_path / "f2.orc")
    described(tmp_path / "f3.orc", pa.table({"k": [2], "a": ["w"]}), {"a": (16, 9)})
    result = rewritten(tmp_path, *sorted(tmp_path.glob("*.orc")), by=("a", "k"))
    assert (result.rejected, result.rows, len(result.new)) == ("", 5, 3)


def test_columns_without_names_are_found_by_place(tmp_path: Path) -> None:
    table = pa.table({"_col0": ["c", "a", "b"], "_col1": [1, 3, 2]})
    po.write_table(table, tmp_path / "f.orc")
    for by, place in (("text", 0), ("number", 1)):
        result = rewritten(tmp_path, tmp_path / "f.orc", by=(by,), places=(place,))
        (path,) = new_files(result)
        held = po.ORCFile(path).read()[f"_col{place}"].to_pylist()
        assert held == sorted(held)


def test_compression_as_asked(tmp_path: Path) -> None:
    po.write_table(pa.table({"k": list(range(5000))}), tmp_path / "f.orc", compression="zlib")
    (path,) = new_files(rewritten(tmp_path, tmp_path / "f.orc", compression="zstd"))
    assert po.ORCFile(path).compression == "ZSTD"
    refused = rewritten(tmp_path, tmp_path / "f.orc", compression="brotli")
    assert refused.rejected == "UNSUPPORTED: ORC files are not written with brotli compression"


def _zoned(zone: bytes) -> bytes:
    """A file whose writer was in a zone of three letters."""
    sink = io.BytesIO()
    po.write_table(pa.table({"k": [1], "t": pa.array([0], pa.timestamp("ns"))}), sink)
    return sink.getvalue().replace(b"GMT", zone)


def _acid() -> pa.Table:
    names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
    return pa.table({**{name: [0] for name in names}, "row": [{"k": 1}]})


def _table(values: Any, type: pa.DataType) -> pa.Table:
    return pa.table({"k": [1] * len(values), "t": pa.array(values, type)})


HALF = -500_000_000
NS = pa.timestamp("ns")
REFUSED: dict[str, tuple[Any, str]] = {
    "another zone": (_zoned(b"EST"), "t is a timestamp, and its writer's time zone is 'EST'"),
    "an instant": (_table([0], pa.timestamp("ns", "UTC")), "t is a timestamp with local time zone"),
    "a fraction before 1970": (_table([-1], NS), "t has a timestamp before 1970"),
    "one in a list": (_table([[5, None, HALF]], pa.list_(NS)), "t has a timestamp before 1970"),
    "one in a struct": (_table([{"a": HALF}], pa.struct([("a", NS)])), "t.a has a timestamp"),
    "one in a map": (_table([[("a", HALF)]], pa.map_(pa.string(), NS)), "t has a timestamp"),
    "an ACID table": (_acid(), "it is a file of an ACID table"),
    "no ORC": (b"nothing of the kind", "FILE_CORRUPT"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_kept_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, reason = REFUSED[case]
    path = tmp_path / "f.orc"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        po.write_table(content, path)
    result = rewritten(tmp_path, path, by=())
    assert result.new == () and reason in result.rejected
    assert not list((tmp_path / ".new").glob("*"))


def test_whole_seconds_before_1970_are_kept(tmp_path: Path) -> None:
    table = _table([-5_000_000_000, -(10**18), None, 1], NS)
    po.write_table(table, tmp_path / "f.orc")
    (path,) = new_files(rewritten(tmp_path, tmp_path / "f.orc"))
    assert checksum(po.ORCFile(path).read()) == checksum(table)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["uncompressed", "zlib", "zstd"]))
def test_a_damaged_file_rejects_the_group_and_ends_nothing(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random, compression: str
) -> None:
    where = tmp_path_factory.mktemp("damaged")
    sink = io.BytesIO()
    po.write_table(plain(), sink, compression=compression)
    content = bytearray(sink.getvalue())
    for _ in range(rng.randint(1, 4)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path = where / "f.orc"
    path.write_bytes(bytes(content[: rng.choice([len(content), rng.randrange(len(content))])]))
    if not path.stat().st_size:
        return
    result = rewritten(where, path, by=())
    assert result.rejected or result.rows == po.ORCFile(path).nrows
    assert bool(result.rejected) != bool(list((where / ".new").glob("*")))
