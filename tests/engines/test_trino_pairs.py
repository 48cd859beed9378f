"""Types of Parquet files under types of tables in Trino: what the file holds, or an error.

Trino's own hive connector shows the bits of some pairs. Where it is right, the rows are its rows.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.stack import Stack, register
from tests.engines.test_trino_orc import answer, columns, ours, theirs

pytestmark = pytest.mark.full

_INT = pa.array([1, 70_000, -5, 16_777_217, None], pa.int32())
_LONG = pa.array([1, 2**53 + 1, -(2**63), None], pa.int64())
_UINT = pa.array([1, 2**31, 2**32 - 1, None], pa.uint32())
_ULONG = pa.array([1, 2**63, 2**64 - 1, None], pa.uint64())
_WHOLE = pa.array([Decimal(7), Decimal(-9), None], pa.decimal128(18, 0))
_CENTS = pa.array([Decimal("1.25"), Decimal("-9.99"), None], pa.decimal128(25, 2))
_REFUSED = None
_TRINO = {"float": "real", "string": "varchar", "int": "integer"}

PAIRS: list[tuple[str, pa.Array, str, list[Any] | None]] = [
    ("int_float", _INT, "float", [1.0, 70_000.0, -5.0, 16_777_216.0, None]),
    ("int_double", _INT, "double", [1.0, 70_000.0, -5.0, 16_777_217.0, None]),
    ("long_float", _LONG, "float", [1.0, float(2**53), -float(2**63), None]),
    ("long_double", _LONG, "double", [1.0, float(2**53), -float(2**63), None]),
    ("int_string", _INT, "string", ["1", "70000", "-5", "16777217", None]),
    ("uint_bigint", _UINT, "bigint", [1, 2**31, 2**32 - 1, None]),
    ("uint_double", _UINT, "double", [1.0, float(2**31), float(2**32 - 1), None]),
    ("uint_int", _UINT, "int", _REFUSED),
    ("small_uint_int", pa.array([1, None], pa.uint32()), "int", [1, None]),
    ("byte_smallint", pa.array([200, None], pa.uint8()), "smallint", [200, None]),
    ("byte_tinyint", pa.array([200, None], pa.uint8()), "tinyint", _REFUSED),
    ("ulong_bigint", _ULONG, "bigint", _REFUSED),
    ("long_date", pa.array([1], pa.int64()), "date", _REFUSED),
    ("whole_float", _WHOLE, "float", [7.0, -9.0, None]),
    ("whole_date", _WHOLE, "date", _REFUSED),
    ("whole_bigint", _WHOLE, "bigint", [7, -9, None]),
    ("cents_binary", _CENTS, "binary", _REFUSED),
    ("null_double", pa.nulls(2), "double", [None, None]),
]


@pytest.mark.parametrize(("name", "stored", "type", "wanted"), PAIRS, ids=[p[0] for p in PAIRS])
def test_a_pair_is_read_exactly_or_refused(
    stack: Stack, tmp_path: Path, name: str, stored: pa.Array, type: str, wanted: Any
) -> None:
    """Flat, and in a struct, a list and a map."""
    pq.write_table(pa.table({"n": range(len(stored)), **_shapes(stored)}), tmp_path / "f.parquet")
    types = f"n bigint; c {type}; s struct<q:{type}>; l array<{type}>; m map<string,{type}>"
    register(stack, f"pair_{name}", tmp_path, columns(types))
    for value in ("c", "s.q", "l[1]", "element_at(m, 'k')"):
        shown = f"CAST({value} AS double)" if type == "float" else value  # else it is rounded
        sql = f"SELECT {shown} FROM laws.pair_{name} ORDER BY n"
        if wanted is None:
            with pytest.raises(Exception, match=r"TYPE_MISMATCH|column '"):
                stack.query(sql)
        else:
            assert [row[0] for row in ours(stack, sql)] == wanted, value
    # What is refused is refused where its column is asked for.
    count = f"SELECT count(n) FROM laws.pair_{name}"
    assert ours(stack, count) == answer(theirs, stack, count)
    if wanted is not None:
        for value in {v for v in wanted if v is not None}:
            literal = f"CAST('{value}' AS {_TRINO.get(type, type)})"
            sql = f"SELECT count(*) FROM laws.pair_{name} WHERE c = {literal}"
            assert ours(stack, sql) == [[wanted.count(value)]], sql


def _shapes(stored: pa.Array) -> dict[str, pa.Array]:
    offsets = pa.array(range(len(stored) + 1), pa.int32())
    return {
        "c": stored,
        "s": pa.StructArray.from_arrays([stored], ["q"]),
        "l": pa.ListArray.from_arrays(offsets, stored),
        "m": pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(stored)), stored),
    }
