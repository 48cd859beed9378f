"""Times whose unit in files is not the table's: values are those that the table's schema says."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.formats.hudi.by_id import FileColumn
from bridge.formats.hudi.parquet_table import parquet_table
from bridge.formats.hudi.times import millis_of, of_file, repair_times, times_of
from bridge.kernel.errors import SchemaConflict
from bridge.storage.child import storage_in_memory
from tests.support.hudi_times import DAY, TimesTable, logical, record


def test_the_times_of_a_schema() -> None:
    millis, local = logical("timestamp-millis"), logical("local-timestamp-micros")
    inner = record(x=millis, y="long") | {"name": "inner"}
    schema = record(
        A=millis,
        b=logical("timestamp-micros"),
        c=local,
        d=inner,
        e={"type": "array", "items": ["null", logical("local-timestamp-millis")]},
        f={"type": "map", "values": "inner"},
        g={"type": "array", "items": "long"},
    )
    assert times_of(json.dumps(schema)) == {
        "a": "ms",
        "c": "local-us",
        "d": {"x": "ms"},
        "e": {"element": "local-ms"},
        "f": {"value": {"x": "ms"}},
    }
    assert times_of(json.dumps(record(b=logical("timestamp-micros"), n="long"))) == {}
    assert times_of("timestamp-millis, but no schema") == {}


_TEXT = "%Y-%m-%d %H:%M:%S"
MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("have", "told", "found"),
    [
        (UTC_MICROS, "ms", pa.timestamp("ms", "UTC")),
        (UTC_MICROS, "local-ms", pa.timestamp("ms", "UTC")),
        (MICROS, "local-ms", pa.timestamp("ms")),
        (UTC_MICROS, "local-us", UTC_MICROS),
        (pa.timestamp("ms", "UTC"), "ms", pa.timestamp("ms", "UTC")),
        (pa.int64(), "local-ms", pa.timestamp("ms")),
        (pa.int64(), "local-us", pa.timestamp("us")),
        (pa.int64(), "ms", pa.int64()),
        (pa.int32(), "local-ms", pa.int32()),
        (pa.int16(), {"x": "ms"}, pa.int16()),
    ],
)
@pytest.mark.parametrize("outer", ["alone", "struct", "list", "map", "deep"])
def test_units(have: pa.DataType, told: Any, found: pa.DataType, outer: str) -> None:
    def nested(type: pa.DataType) -> pa.DataType:
        match outer:
            case "struct":
                return pa.struct([("n", pa.string()), ("X", type)])
            case "list":
                return pa.list_(type)
            case "map":
                return pa.map_(pa.string(), type)
            case "deep":
                return pa.list_(pa.struct([("X", pa.map_(pa.string(), type))]))
        return type

    values: list[Any] = {
        "struct": [{"n": "a", "X": 7}, None, {"n": None, "X": None}],
        "list": [[7, None], None, []],
        "map": [[("k", 7)], None, []],
        "deep": [[{"X": [("k", 7)]}, None], None],
    }.get(outer, [7, None])
    path = {"struct": {"x": told}, "list": {"element": told}, "map": {"value": told}}
    path |= {"deep": {"element": {"x": {"value": told}}}}
    array = _of_numbers(values, have, nested)
    got = repair_times(array, path.get(outer, told), "c", "file")
    assert got.equals(_of_numbers(values, found, nested))
    sliced = repair_times(array.slice(1), path.get(outer, told), "c", "file")
    assert sliced.equals(got.slice(1))


def _of_numbers(values: list[Any], leaf: pa.DataType, nested: Any) -> pa.Array:
    number = pa.int64() if pa.types.is_timestamp(leaf) else leaf
    return pa.array(values, nested(number)).cast(nested(leaf))


def _parquet_table(file: Path, schema: pa.Schema, by_id: Any, times: Any) -> pa.Table:
    content = file.read_bytes()
    return parquet_table(storage_in_memory(content), "file", len(content), schema, by_id, times)


def test_times_that_may_be_right_are_not_guessed() -> None:
    """INT96 comes as microseconds without a zone, and is what it says."""
    with pytest.raises(SchemaConflict, match="milliseconds"):
        repair_times(pa.array([1], MICROS), "ms", "c", "file")


def test_times_that_the_catalogue_has_as_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    """Hudi's sync with Hive has bigint for a local time, a plain number in files."""
    told = {"t": "local-ms", "s": {"x": "local-us", "y": "local-us"}, "l": {"element": "local-ms"}}
    inner = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    columns = {"t": pa.array([7]), "s": pa.array([{"x": 8, "y": 9}], inner), "l": pa.array([[1]])}
    pq.write_table(pa.table(columns), tmp_path / "f")
    wanted = pa.schema(
        [
            ("t", pa.int64()),
            ("s", pa.struct([("x", pa.int64()), ("y", MICROS)])),
            ("l", pa.list_(pa.int64())),
        ]
    )
    found = _parquet_table(tmp_path / "f", wanted, {}, told)
    assert found.schema == wanted
    assert found.cast(pa.schema([(n, c.type) for n, c in columns.items()])).to_pydict() == {
        "t": [7],
        "s": [{"x": 8, "y": 9}],
        "l": [[1]],
    }


RENAMED = {"y": FileColumn("x")}
SWAPPED = {"y": FileColumn("x"), "x": FileColumn("y")}


@pytest.mark.parametrize("outer", ["struct", "element", "value"])
@pytest.mark.parametrize("parts", [RENAMED, SWAPPED])
def test_parts_that_were_renamed_are_not_guessed(outer: str, parts: Any, tmp_path: Path) -> None:
    """The file's microseconds may be the table's milliseconds, or another field's microseconds."""

    def nested(unit: str) -> tuple[pa.DataType, Any]:
        type: pa.DataType = pa.struct([("x", pa.timestamp(unit, "UTC")), ("z", pa.string())])
        value: Any = {"x": 7000, "z": "z"}
        match outer:
            case "element":
                return pa.list_(type), [[value]]
            case "value":
                return pa.map_(pa.string(), type), [[("k", value)]]
        return type, [value]

    told: Any = {"y": "ms"}
    own = FileColumn("s", parts=parts)
    if outer != "struct":
        told, own = {outer: told}, FileColumn("s", parts={outer: FileColumn(outer, parts=parts)})
    times = of_file({"s": told}, {"s": own})
    wanted, _ = nested("us")
    as_table = pa.schema([("s", _named(wanted, "y"))])

    def read(unit: str) -> pa.Table:
        type, values = nested(unit)
        pq.write_table(pa.table({"s": pa.array(values, type)}), tmp_path / unit)
        return _parquet_table(tmp_path / unit, as_table, {"s": own}, times)

    with pytest.raises(SchemaConflict, match="milliseconds"):
        read("us")
    assert "1970, 1, 1, 0, 0, 7" in repr(read("ms").to_pylist())


def _named(type: Any, name: str) -> Any:
    """The same type, with the first field of its struct under another name."""
    if pa.types.is_list(type):
        return pa.list_(_named(type.value_type, name))
    if pa.types.is_map(type):
        return pa.map_(pa.string(), _named(type.item_type, name))
    return pa.struct([(name, MICROS), type.field(1)])


def test_fields_that_are_milliseconds() -> None:
    told = {"a": "ms", "b": "local-us", "s": {"x": "local-ms"}}
    assert millis_of(told, ["A", "b", "c", "s.X", "s", "a.x"]) == {"A", "s.X"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("unit", ["us", "ms"])
def test_milliseconds_that_files_call_microseconds(kind: str, unit: str, tmp_path: Path) -> None:
    story = TimesTable(tmp_path / "t", kind)
    for day in range(6):
        story.base(unit if day % 2 else "ms", day)
    if kind == "MERGE_ON_READ":
        story.log("micros" if unit == "us" else "millis", 1, 3, timedelta(40))
        story.log("millis", 2, 4, timedelta(50))
    late = DAY + timedelta(30)
    with bridge.connect() as session:
        table = session.table(str(story.hudi.root))
        for indexed in (False, True):
            if indexed:
                table.index.build(bloom=["t"], values=["n"])
            story.check(table, f"t >= TIMESTAMP '{late:{_TEXT}}'", lambda t, n: t >= late)
            for noon in (DAY + timedelta(day, 7200) for day in range(6)):
                at = f"t = TIMESTAMP '{noon:{_TEXT}}'"
                story.check(table, at, lambda t, n, noon=noon: t == noon)
            story.check(table, "t < TIMESTAMP '2000-01-01 00:00:00'", lambda t, n: t.year < 2000)
            story.check(table, "n = 7", lambda t, n: n == 7)
        assert story.check(table, "n > 90", lambda t, n: False) == 0


def test_times_in_doubt_leave_the_bloom_filters_of_other_columns(tmp_path: Path) -> None:
    story = TimesTable(tmp_path / "t", "COPY_ON_WRITE")
    for day in range(4):
        story.base("us" if day % 2 else "ms", day)
    with bridge.connect() as session:
        table = session.table(str(story.hudi.root))
        table.index.build(bloom=["k", "t"])
        assert table.scan("k = '3-4x'").files().num_rows == 0
        late = DAY + timedelta(30)
        assert story.check(table, f"t >= TIMESTAMP '{late:{_TEXT}}'", lambda t, n: t >= late) > 0
