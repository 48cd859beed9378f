"""A file's column in the table's type: files are older than the table's schema.

The law: a value is the one that was written, or it is an error that names the file. What a file
lacks is NULL; fields of structs go by name; numbers are widened. A number never becomes a text. A
float becomes the double of the same value (rule 16); Spark reads 0.1 of a float as the double 0.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.errors import SchemaConflict


class _Differs(Exception):
    """The types do not go together."""


def fit(array: pa.Array, wanted: pa.DataType, column: str, uri: str) -> pa.Array:
    """A column in another type.

    Errors:
        SchemaConflict: a value would change, or the types do not go together.
    """
    try:
        return _fit(array, wanted)
    except (_Differs, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        detail = f": {error}" if isinstance(error, pa.ArrowInvalid) else ""
        raise SchemaConflict(
            f"column {column!r} is {wanted} in the table and {array.type} in {uri}{detail}",
            "rewrite the file, or change the type of the column in the table",
        ) from error


def _fit(array: Any, wanted: pa.DataType) -> pa.Array:
    t = pa.types
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    have = array.type
    if have == wanted:
        return array
    if t.is_null(have):
        return pa.nulls(len(array), wanted)
    if t.is_struct(wanted) and t.is_struct(have):
        return _struct(array, wanted)
    if _is_list(wanted) and _is_list(have):
        array = _whole(array)
        values = _fit(array.values, wanted.value_type)
        offsets = array.offsets.cast(pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=array.is_null())
    if t.is_map(wanted) and t.is_map(have):
        array = _whole(array)
        keys, items = _fit(array.keys, wanted.key_type), _fit(array.items, wanted.item_type)
        mask = array.is_null()
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)
    if t.is_floating(wanted) and (t.is_integer(have) or t.is_floating(have)):
        if t.is_floating(have) and wanted.bit_width < have.bit_width:
            raise _Differs
        # Java rounds a long to the nearest double without a word, and so do the engines.
        return array.cast(wanted, safe=False)
    if _goes(have, wanted):
        return array.cast(wanted)
    raise _Differs


def _goes(have: pa.DataType, wanted: pa.DataType) -> bool:
    t = pa.types
    return bool(
        (t.is_integer(have) and (t.is_integer(wanted) or t.is_decimal(wanted)))
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


def _struct(array: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    names = [field.name.lower() for field in array.type]
    children: list[pa.Array] = []
    for field in wanted:
        if names.count(field.name.lower()) > 1:
            raise _Differs
        if field.name.lower() in names:
            child = pc.struct_field(array, [names.index(field.name.lower())])
            children.append(_fit(child, field.type))
        else:
            children.append(pa.nulls(len(array), field.type))
    mask = _whole(array.is_null())
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _whole(array: pa.Array) -> pa.Array:
    """Copied, so that it begins at the start of its buffers."""
    return array.take(pa.array(np.arange(len(array))))
