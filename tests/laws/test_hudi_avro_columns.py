"""Columns of Avro records decoded together equal those decoded record by record, or both fail."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.formats.hudi.avro_columns import columns_of
from bridge.formats.hudi.avro_rows import DAMAGE, record_bounds, row_decoder
from tests.support.hudi_writer import avro_content

_LONG = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)
_INT = st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 70)
_FLOAT = st.floats(width=32, allow_nan=False)
_TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", _INT),
    ("long", _LONG),
    ("float", _FLOAT),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(max_size=90)),
    ("bytes", st.binary(max_size=90)),
    ({"type": "int", "logicalType": "date"}, _INT),
    ({"type": "long", "logicalType": "timestamp-micros"}, _LONG),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda v: v.to_bytes(5, "big", signed=True)),
    ),
]


def _plain(schema: Any) -> Any:
    """Without logical types, so that values are written as they are."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    return schema["type"] if isinstance(schema, dict) else schema


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, bytes]:
    kinds = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=6))
    unions = [draw(st.sampled_from((None, 0, 1))) for _ in kinds]
    fields, values = [], {}
    for number, ((kind, value), union) in enumerate(zip(kinds, unions, strict=True)):
        types = {None: kind, 0: ["null", kind], 1: [kind, "null"]}[union]
        fields.append({"name": f"f{number}", "type": types})
        values[f"f{number}"] = value if union is None else st.none() | value
    schema = {"type": "record", "name": "r", "fields": fields}
    rows = draw(st.lists(st.fixed_dictionaries(values), max_size=6))
    plain = {**schema, "fields": [{**f, "type": _plain(f["type"])} for f in fields]}
    return json.dumps(schema), avro_content(plain, rows)


def together(schema: str, content: bytes) -> Any:
    starts, ends = (np.array(b, np.int64) for b in record_bounds(memoryview(content)))
    return columns_of(schema, row_decoder(schema), memoryview(content), starts, ends)


def one_by_one(schema: str, content: bytes) -> Any:
    decoder = row_decoder(schema)
    view = memoryview(content)
    rows = [decoder.decode(view[b:e]) for b, e in zip(*record_bounds(view), strict=True)]
    return decoder.columns(rows, [name for name, _, _ in decoder.fields])


@settings(max_examples=settings.default.max_examples // 8)
@given(made=contents())
def test_columns_are_those_of_the_records(made: tuple[str, bytes]) -> None:
    found, expected = together(*made), one_by_one(*made)
    if found is None:  # there are no records
        assert all(not len(column) for column in expected.values())
        return
    assert list(found) == list(expected)
    for name, column in found.items():
        column.validate(full=True)
        assert column.equals(expected[name]), name


@settings(max_examples=settings.default.max_examples // 8)
@given(made=contents(), random=st.randoms(use_true_random=False))
def test_damaged_records_are_never_other_values(made: tuple[str, bytes], random: Any) -> None:
    """Bytes of records are changed; where both decoders still read them, they agree."""
    schema, content = made
    damaged = bytearray(content)
    for _ in range(random.randint(1, 3)):
        if len(damaged) > 12:
            damaged[random.randrange(12, len(damaged))] = random.randrange(256)
    try:
        found = together(schema, bytes(damaged))
    except (*DAMAGE, pa.ArrowException):
        return
    if found is None:
        return
    try:
        expected = one_by_one(schema, bytes(damaged))
    except (*DAMAGE, pa.ArrowException, fastavro.schema.SchemaParseException):
        return
    for name, column in found.items():
        assert bits(column).equals(bits(expected[name])), name


def bits(column: pa.Array) -> pa.Array:
    """Floating numbers as their bits, all NaN as one, since NaN equals nothing."""
    if not pa.types.is_floating(column.type):
        return column
    column = pc.if_else(pc.is_nan(column), pa.scalar(np.nan, column.type), column)
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def test_records_with_nested_fields_are_left_to_the_other_decoder() -> None:
    nested = {"type": "array", "items": "int"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": nested}]}
    assert together(json.dumps(schema), avro_content(schema, [{"a": [1]}])) is None
