"""Rules 24 to 26, from what an engine sends to the files that are left out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.engines.trino.translate import translate
from bridge.expression.bind import bind
from bridge.expression.function_catalog import FUNCTIONS
from bridge.expression.nodes import BoundReference
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.kernel.types import FLOAT, TIMESTAMP, TRINO, Field, Type, Value

TEN = 1_714_557_600_000_000


class OneFile:
    """A file whose one column holds values between two, without NULL and NaN."""

    num_files = 1

    def __init__(self, type: Type, low: Value, high: Value) -> None:
        dtype = np.float64 if type.is_floating else np.int64
        none = np.zeros(1, np.int64)
        lower, upper = np.array([low], dtype), np.array([high], dtype)
        rows = np.array([2])
        self._column = ColumnStatistics(
            type, lower, upper, None, None, None, none, none, rows, None
        )

    def column(self, reference: BoundReference) -> ColumnStatistics:
        return self._column

    def may_contain(self, reference: BoundReference, values: tuple[Value, ...]) -> Mask | None:
        return None


def left_out(node: Any, type: Type, low: Value, high: Value) -> bool:
    """Whether the file is left out; nothing may be claimed of all its rows."""
    found = translate(json.dumps({"version": 1, "expression": node}))
    bound = bind(found.expression, [Field("c", type)], [], TRINO)
    answers = prune(bound, OneFile(type, low, high), TRINO)
    assert not answers.always[0]
    return bool(answers.never[0])


def call(name: str, *args: Any, type: str = "boolean") -> Any:
    return {"call": name, "type": type, "args": list(args)}


@pytest.mark.parametrize("digits", [0, 3, 6, 9])
def test_24_a_cast_is_left_out_only_where_it_changes_no_value(digits: int) -> None:
    column = {"column": "c", "type": "timestamp(6)"}
    cast = call("$cast", column, type=f"timestamp({digits})")
    wire = TEN if digits <= 6 else f"{TEN}.000000"
    ten = {"constant": wire, "type": f"timestamp({digits})"}
    # 09:59:59.9997 to .9999 is ten o'clock by the second and by the millisecond.
    equal = left_out(call("$equal", cast, ten), TIMESTAMP, TEN - 300, TEN - 100)
    assert equal is (digits >= 6)
    assert not left_out(call("$less_than", cast, ten), TIMESTAMP, TEN - 2, TEN + 5)


@pytest.mark.parametrize(
    ("pattern", "text"), [(rb"%C:\\dir%", r"C:\dir"), (rb"%\\b", r"a\b"), (rb"\%%", "%")]
)
def test_25_escapes_are_the_engines(pattern: bytes, text: str) -> None:
    like = FUNCTIONS["like"]
    assert like.apply is not None
    assert like.apply(pa.array([text, "other"], pa.large_string()), [pattern]).to_pylist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("zero", ["0.0", "-0.0"])
def test_26_a_list_may_tell_the_zeros_apart(zero: str) -> None:
    column = {"column": "c", "type": "real"}
    constants = [{"constant": v, "type": "real"} for v in ("5.0", zero)]
    among = call("$in", column, call("$array", *constants, type="array(real)"))
    assert not left_out(among, FLOAT, 0.0, 0.0)
    assert not left_out(call("$not", among), FLOAT, 0.0, 0.0)
    assert left_out(call("$not", among), FLOAT, 5.0, 5.0)
    assert left_out(among, FLOAT, 1.0, 2.0)
