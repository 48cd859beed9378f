"""Nested columns of files whose parts are other ones than the table's, though of equal types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bridge.formats.hudi.by_id import FileColumn
from bridge.formats.hudi.fit import convert_column
from bridge.kernel.errors import SchemaConflict

RECORD = pa.struct([("y", pa.int32()), ("x", pa.int32())])
GONE = {"x": None}
SWAPPED = {"x": FileColumn("y"), "y": FileColumn("x")}


@pytest.mark.parametrize(
    ("parts", "shown"), [(GONE, {"y": 1, "x": None}), (SWAPPED, {"y": 2, "x": 1})]
)
@pytest.mark.parametrize("outer", ["struct", "element", "value"])
def test_a_part_is_found_by_its_id_where_the_types_are_equal(
    parts: Any, shown: Any, outer: str
) -> None:
    held = {"y": 1, "x": 2}
    match outer:
        case "struct":
            array, own = pa.array([held, None], RECORD), FileColumn("s", parts=parts)
            wanted = [shown, None]
        case "element":
            array = pa.array([[held], None, []], pa.list_(RECORD))
            own = FileColumn("s", parts={"element": FileColumn("element", parts=parts)})
            wanted = [[shown], None, []]
        case _:
            array = pa.array([[("k", held)], None], pa.map_(pa.string(), RECORD))
            own = FileColumn("s", parts={"value": FileColumn("value", parts=parts)})
            wanted = [[("k", shown)], None]
    assert convert_column(array, array.type, "s", "file", own).to_pylist() == wanted


def test_numbers_become_a_decimal_that_has_room_for_them() -> None:
    """Not for all numbers of their type."""
    found = convert_column(pa.array([7, -12345, None]), pa.decimal128(7, 2), "c", "file")
    assert [str(v) for v in found.drop_null().to_pylist()] == ["7.00", "-12345.00"]
    with pytest.raises(SchemaConflict):
        convert_column(pa.array([123456]), pa.decimal128(7, 2), "c", "file")
    found = convert_column(pa.array([7]), pa.decimal128(38, 30), "c", "file")
    assert found.to_pylist() == [Decimal(7)]
