"""A file's column in the table's own type, as engines read files that are not all alike.

The law: a value is the one that the engine reads, or the scan fails. What a file lacks is NULL;
what is narrower is widened; fields of structs are found by name without regard to case. An integer
is rounded to a floating-point number, as engines cast it. Any other conversion that would change a
value (text to number, a number that does not fit) is an error that
names the file and both types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import Field, Kind, Type

_DIGITS = 20
"""Of any integer of 64 bits."""
_PER_MICRO = {"s": 1_000_000, "ms": 1_000}


class _Differs(Exception):
    """The types do not go together, or a value does not fit."""


def conform(array: pa.Array, target: Type, engine: str, column: str, uri: str) -> pa.Array:
    """A column of a file in the table's type.

    Args:
        engine: whose rounding of nanoseconds applies: Trino rounds to the nearest microsecond,
            Hive and Spark cut.

    Errors:
        SchemaConflict: the file's values are not of the table's type.
    """
    try:
        return _conform(array, target, engine)
    except (_Differs, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if target.kind is Kind.UNKNOWN:
            raise SchemaConflict(
                f"column {column!r} is {array.type} in {uri}: Hive has no such type, or the files "
                "that were inspected have no value of it",
                "leave it out: name the columns that are wanted",
            ) from error
        detail = f": {error}" if isinstance(error, pa.ArrowInvalid) else ""
        raise SchemaConflict(
            f"column {column!r} is {target} in the table and {array.type} in {uri}{detail}",
            "rewrite the file, or change the type of the column in the table",
        ) from error


def _conform(array: pa.Array, target: Type, engine: str) -> pa.Array:
    wanted = arrow_type(target)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    if target.is_text:
        return _text(array, target)
    if array.type == wanted and not _has_decimal(target):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    match target.kind:
        case Kind.BINARY if _is_bytes(array.type):
            return array.cast(pa.binary())
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ if pa.types.is_timestamp(array.type):
            return _micros(array, engine).cast(wanted)
        case Kind.DATE if pa.types.is_date64(array.type):
            return array.cast(wanted)
        case Kind.DECIMAL if pa.types.is_decimal(array.type):
            array = array.cast(wanted)
            array.validate(full=True)  # a file may hold more digits than it declares
            return array
        case Kind.DECIMAL if _is_integer(array.type):
            # by way of a type for all integers: else one that fits may be refused
            every = pa.decimal256(_DIGITS + target.scale, target.scale)
            return array.cast(every).cast(wanted)
        case Kind.DOUBLE if pa.types.is_floating(array.type):
            return array.cast(wanted)
        case Kind.FLOAT if pa.types.is_float16(array.type):
            return array.cast(wanted)
        case Kind.DOUBLE | Kind.FLOAT if _is_integer(array.type):
            return array.cast(wanted, safe=False)
        case Kind.STRUCT if pa.types.is_struct(array.type):
            return _struct(array, target.fields, engine)
        case Kind.ARRAY if _is_list(array.type):
            return _list(array, target.fields[0].type, wanted, engine)
        case Kind.MAP if pa.types.is_map(array.type):
            return _map(array, target, wanted, engine)
    if target.is_integer and _is_integer(array.type):
        return array.cast(wanted)
    raise _Differs


def _has_decimal(type: Type) -> bool:
    return type.kind is Kind.DECIMAL or any(_has_decimal(field.type) for field in type.fields)


def _is_integer(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type))


def _is_list(type: pa.DataType) -> bool:
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type))


def _is_bytes(type: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_binary(type)
        or t.is_large_binary(type)
        or t.is_binary_view(type)
        or t.is_fixed_size_binary(type)
        or t.is_string(type)
        or t.is_large_string(type)
        or t.is_string_view(type)
    )


def _text(array: pa.Array, target: Type) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string())
    if target.kind is Kind.STRING and _is_integer(array.type):
        return array.cast(pa.string())  # Hudi widens a column of numbers so; there is one text
    if not _is_bytes(array.type):
        raise _Differs
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    text = array if array.type == pa.string() else array.cast(pa.string())
    if target.kind is Kind.STRING:
        return text
    # Both are cut to their length; a char's padding is the same wherever it was written.
    if (pc.max(pc.utf8_length(text)).as_py() or 0) > target.length:
        text = pc.utf8_slice_codeunits(text, 0, target.length)
    if target.kind is Kind.CHAR:
        text = pc.utf8_rpad(text, target.length, " ")
    return text


def _micros(array: pa.Array, engine: str) -> pa.Array:
    """Microseconds, whatever the zone is called: the number counts from the epoch in UTC."""
    unit, number = array.type.unit, array.cast(pa.int64())
    if unit == "us":
        return number
    if unit != "ns":
        return pc.multiply_checked(number, _PER_MICRO[unit])
    null = number.is_null()
    values = number.fill_null(0).to_numpy()
    if engine == "trino":
        whole, rest = np.divmod(values, 1000)
        values = whole + (rest >= 500)
    else:
        values = values // 1000
    return pa.array(values, mask=null.to_numpy(zero_copy_only=False))


def _struct(array: pa.StructArray, fields: Sequence[Field], engine: str) -> pa.Array:
    places: dict[str, list[int]] = {}
    for i in range(array.type.num_fields):
        places.setdefault(array.type.field(i).name.lower(), []).append(i)
    children: list[Any] = []
    for field in fields:
        found = places.get(field.name.lower(), [])
        if len(found) > 1:
            raise _Differs
        if found:
            child = pc.struct_field(array, found)
            children.append(_conform(child, field.type, engine))
        else:
            children.append(pa.nulls(len(array), arrow_type(field.type)))
    shape = [pa.field(f.name, arrow_type(f.type)) for f in fields]
    return pa.StructArray.from_arrays(children, fields=shape, mask=_whole(array.is_null()))


def _whole(array: pa.Array) -> pa.Array:
    """Copied, so that it begins at the start of its buffers."""
    return array.take(pa.array(np.arange(len(array))))


def _list(array: Any, element: Type, wanted: pa.DataType, engine: str) -> pa.Array:
    array = _whole(array)
    values = _conform(array.values, element, engine)
    offsets = array.offsets.cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=array.is_null())


def _map(array: Any, target: Type, wanted: pa.DataType, engine: str) -> pa.Array:
    array = _whole(array)
    keys = _conform(array.keys, target.fields[0].type, engine)
    items = _conform(array.items, target.fields[1].type, engine)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=array.is_null())
