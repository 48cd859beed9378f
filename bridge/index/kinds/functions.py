"""Functions of a column, computed on a file's values for indexes on functions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.function_catalog import FUNCTIONS, engines_agree
from bridge.expression.nodes import (
    BoundCall,
    BoundReference,
    Call,
    Literal,
    Reference,
    reference_text,
)
from bridge.expression.parsing.text import parse_call
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.kinds.canonical import canonical
from bridge.index.kinds.kind import FileFacts
from bridge.index.kinds.plain import BITS, maps_one_to_one
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.types import Kind as TypeKind
from bridge.kernel.types import Semantics, Type

_DAY = 86_400_000_000
NUMBER = PhysicalType("INT64", "int", 64)
_TEXT = PhysicalType("BYTE_ARRAY", "string")
_HELD = tuple(n for n, f in FUNCTIONS.items() if f.apply is not None and n != "like")
"""Functions that an index can hold. LIKE is excluded: value lists of the column answer it."""


def parse_definition(text: str) -> Call:
    """Parses a function given by a user. Errors: InvalidConfiguration."""
    call = parse_call(text)
    if call is None or not _is_held(call):
        raise InvalidConfiguration(
            f"{text!r} is no function of a column that engines compute alike",
            f"there are {', '.join(_HELD)}",
        )
    return call


@lru_cache(256)
def parse_stored(text: str) -> Call:
    """Parses the function of a stored definition. Errors: InvalidConfiguration."""
    call = parse_call(text)
    if call is None:
        raise InvalidConfiguration(f"{text!r} is no function of a column", "drop the index")
    return call


def is_call(reference: BoundReference, text: str) -> bool:
    return isinstance(reference, BoundCall) and reference_text(reference) == text


def _is_held(call: Call) -> bool:
    inner, *rest = call.arguments
    constants = [a.value for a in rest if isinstance(a, Literal)]
    if call.function not in _HELD or not FUNCTIONS[call.function].constants(constants):
        return False
    return not isinstance(inner, Call) or _is_held(inner)


def column_of(call: Call) -> tuple[str, ...]:
    inner = call.arguments[0]
    assert isinstance(inner, Reference)
    return column_of(inner) if isinstance(inner, Call) else inner.path


def is_defined_for(call: Call, stored: PhysicalType) -> bool:
    """Whether the innermost function is defined for the stored type."""
    while isinstance(call.arguments[0], Call):
        call = call.arguments[0]
    takes = FUNCTIONS[call.function].takes
    if TypeKind.STRING in takes:
        return stored.holds == "bytes"
    if TypeKind.TIMESTAMP in takes:
        zoned = stored.logical == "timestamp" and stored.physical == "INT64" and stored.unit != "ns"
        return zoned or (stored.logical == "date" and TypeKind.DATE in takes)
    return stored.logical == "int"


def leaf_of(call: Call, file: FileFacts) -> int | None:
    """The leaf that a function is computed on; None if the file has no suitable one."""
    leaf = file.leaf(column_of(call))
    return leaf if leaf is not None and is_defined_for(call, file.leaves[leaf].type) else None


def compute(
    call: Call, column: PhysicalColumn, values: pa.Array, legacy: bool
) -> tuple[Any, PhysicalType] | None:
    """Evaluates a call on values of a file; see `evaluate`."""
    plain = canonical(column.type, pa.chunked_array([values]), legacy=legacy)
    return None if plain is None else evaluate(call, column.type, plain)


def longest_text(column: PhysicalColumn, values: pa.Array) -> int:
    """The length in bytes of the longest text; 0 if there is none."""
    if column.type.holds != "bytes":
        return 0
    return pc.max(pc.binary_length(values.cast(pa.large_binary()))).as_py() or 0


def evaluate(
    call: Call | BoundCall, stored: PhysicalType, values: Any
) -> tuple[Any, PhysicalType] | None:
    """Evaluates a call on distinct canonical values.

    Text may contain nulls. Dates are in days and timestamps in microseconds, in arguments and
    results.

    Returns:
        The results and their type; None if engines may differ on a value.
    """
    inner = call.arguments[0]
    if isinstance(inner, Call | BoundCall):
        found = evaluate(inner, stored, values)
        if found is None:
            return None
        values, given = found
        if stored.logical != "int":  # integers keep their column's width at every depth
            stored = given
    function = FUNCTIONS[call.function]
    assert function.apply is not None
    constants = [a.value for a in call.arguments if isinstance(a, Literal)]
    if not function.constants(constants):
        return None
    if TypeKind.STRING in function.takes:
        if stored.holds != "bytes":
            return None
        try:
            texts = values.cast(pa.large_string())
        except pa.ArrowInvalid:  # no UTF-8
            return None
        changed = function.apply(texts, constants)
        if changed is not None and pa.types.is_boolean(changed.type):
            if changed.null_count:
                return None
            return changed.cast(pa.int64()).to_numpy(), NUMBER
        return None if changed is None else (changed.cast(pa.large_binary()), _TEXT)
    if not isinstance(values, np.ndarray):
        return None
    if not function.dates:
        if stored.logical != "int":
            return None
        numbers = function.apply(values, constants)
        return None if numbers is None or not _fits(numbers, stored) else (numbers, NUMBER)
    days = stored.logical == "date"
    if not days and stored.logical != "timestamp":
        return None
    if len(values) and days and np.abs(values).max() > 10**7:
        return None
    micros = values * _DAY if days else values
    if not engines_agree(True, micros):
        return None
    numbers = function.apply(micros, constants)
    if call.function != "date_trunc":
        return numbers, NUMBER
    return (numbers // _DAY if days else numbers), stored


def _fits(numbers: npt.NDArray[np.int64], stored: PhysicalType) -> bool:
    """Whether results fit the column's width. On overflow Hive wraps and Trino fails."""
    if not len(numbers):
        return True
    limit = 2 ** (stored.width - 1)
    return bool(numbers.min() >= -limit and numbers.max() < limit)


def reads_alike(stored: PhysicalType, target: Type, semantics: Semantics) -> bool:
    if stored.logical == "int" and stored.width > BITS.get(target.kind, 0):
        return False
    return maps_one_to_one(stored, target, semantics)
