"""A file's column in the table's type: files are older than the table's schema.

The law: a value is the one that was written, or it is an error that names the file. What a file
lacks is NULL; fields of structs go by name; numbers are widened. A float becomes the double of the
same value (rule 16); Spark reads 0.1 of a float as the double 0.1. An integer becomes its text; a
date or decimal one, and a double a decimal, only where the table's schema was changed so.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.hudi.by_id import ELEMENT, VALUE, FileColumn, column_of
from bridge.kernel.errors import SchemaConflict

_WIDE = Context(prec=400)


class _Differs(Exception):
    """The types do not go together."""


def convert_column(
    array: pa.Array, wanted: pa.DataType, column: str, uri: str, own: FileColumn | None = None
) -> pa.Array:
    """A column in another type.

    Args:
        own: how the file has the column; None: by name.

    Errors:
        SchemaConflict: a value would change, or the types do not go together.
    """
    try:
        return _fit(array, wanted, own or FileColumn(column))
    except (_Differs, InvalidOperation, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        detail = f": {error}" if isinstance(error, pa.ArrowInvalid) else ""
        raise SchemaConflict(
            f"column {column!r} is {wanted} in the table and {array.type} in {uri}{detail}",
            "rewrite the file, or change the type of the column in the table",
        ) from error


def _fit(array: Any, wanted: pa.DataType, own: FileColumn) -> pa.Array:
    t = pa.types
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    have = array.type
    if have == wanted and not own.parts:
        return array
    if t.is_null(have):
        return pa.nulls(len(array), wanted)
    if t.is_struct(wanted) and t.is_struct(have):
        return _struct(array, wanted, own)
    if _is_list(wanted) and _is_list(have):
        array = _whole(array)
        values = _fit(array.values, wanted.value_type, _part(own, ELEMENT))
        offsets = array.offsets.cast(pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=array.is_null())
    if t.is_map(wanted) and t.is_map(have):
        array = _whole(array)
        keys = _fit(array.keys, wanted.key_type, FileColumn("key"))
        items = _fit(array.items, wanted.item_type, _part(own, VALUE))
        mask = array.is_null()
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)
    if t.is_floating(wanted) and (t.is_integer(have) or t.is_floating(have)):
        if t.is_floating(have) and wanted.bit_width < have.bit_width:
            raise _Differs
        # Java rounds a long to the nearest double without a word, and so do the engines.
        return array.cast(wanted, safe=False)
    if t.is_integer(have) and t.is_decimal(wanted):
        # Arrow refuses a decimal without room for every number; only those in the file count.
        return array.cast(pa.decimal256(76, wanted.scale)).cast(wanted)
    if _goes(have, wanted):
        return array.cast(wanted)
    if t.is_string(wanted) and (t.is_integer(have) or (own.was and t.is_date(have))):
        return array.cast(wanted)
    if own.was and t.is_string(wanted) and t.is_decimal(have):
        return pa.array([None if v is None else str(v) for v in array.to_pylist()], wanted)
    if own.was and t.is_float64(have) and t.is_decimal(wanted):
        return _decimals(array, wanted)
    raise _Differs


def _decimals(array: pa.Array, wanted: pa.Decimal128Type) -> pa.Array:
    """Doubles as decimals of their shortest text, rounded half up as in Java."""
    unit = Decimal(1).scaleb(-wanted.scale)
    values = [
        None if v is None else Decimal(repr(v)).quantize(unit, ROUND_HALF_UP, _WIDE)
        for v in array.to_pylist()
    ]
    return pa.array(values, wanted)


def _part(own: FileColumn, name: str) -> FileColumn:
    """How the file has the values of a list or a map. Errors: _Differs: it has others."""
    found = column_of(own.parts, name)
    if found is None:
        raise _Differs
    return found


def _goes(have: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types
    return bool(
        (t.is_integer(have) and t.is_integer(wanted))
        or (t.is_decimal(have) and t.is_decimal(wanted))
        or (_is_bytes(have) and _is_bytes(wanted))
        or (t.is_timestamp(have) and t.is_timestamp(wanted))
        or (t.is_date(have) and t.is_date(wanted))
        or (t.is_time(have) and t.is_time(wanted))
    )


def _is_list(type: pa.DataType) -> bool:
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type))


def _is_bytes(type: pa.DataType) -> bool:
    t = pa.types
    texts = t.is_string(type) or t.is_large_string(type)
    return bool(
        texts or t.is_binary(type) or t.is_large_binary(type) or t.is_fixed_size_binary(type)
    )


def _struct(array: pa.StructArray, wanted: pa.StructType, own: FileColumn) -> pa.Array:
    names = [field.name.lower() for field in array.type]
    children: list[pa.Array] = []
    for field in wanted:
        part = column_of(own.parts, field.name)
        name = None if part is None else part.name.lower()
        if name is not None and names.count(name) > 1:
            raise _Differs
        if part is not None and name in names:
            child = pc.struct_field(array, [names.index(name)])
            children.append(_fit(child, field.type, part))
        else:
            children.append(pa.nulls(len(array), field.type))
    mask = _whole(array.is_null())
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _whole(array: pa.Array) -> pa.Array:
    """Copied, so that it begins at the start of its buffers."""
    return array.take(pa.array(np.arange(len(array))))
