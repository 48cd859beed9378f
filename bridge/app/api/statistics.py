"""What an index knows of a table's files, as an Arrow table: bounds and counts by file and column.

The law: bounds are those that planning uses. A value that is NULL here is not known; an ``exact``
bound is a value of the file, another one may lie beyond all of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import BoundReference, reference_text
from bridge.expression.statistics import ColumnStatistics
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.report import list_leaves
from bridge.indexing.table import newest, open_indexed_table
from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import TRINO, Field, Kind, Type
from bridge.runtime.compose import index_limits, local_index_cache

Form = Literal["long", "wide"]
_LONG = pa.schema(
    [
        ("path", pa.string()),
        ("column", pa.string()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("rows", pa.int64()),
        ("exact", pa.bool_()),
        ("bytes", pa.int64()),
        ("modified", pa.timestamp("us", "UTC")),
    ]
)


def index_statistics(
    config: Config, table: str, form: Form, columns: Sequence[str] | None
) -> pa.Table:
    """See `bridge.app.api.index.TableIndex.statistics`."""
    if form not in ("long", "wide"):
        raise InvalidRequest(f"no form {form!r}", "give long or wide")
    with open_indexed_table(config, table) as (_, _, found, store):
        manifest = newest(store, found, table)
        limits = index_limits(config)
        snapshot = IndexSnapshot.open(manifest, store, local_index_cache(config), limits)
        fields = tuple(Field(c.name, c.type) for c in found.columns)
        leaves = {reference_text(r): r for r in list_leaves(fields) if _has_bounds(r.type)}
        wanted = list(leaves) if columns is None else [_known(c, leaves) for c in columns]
        # One fetch for all columns: fetching each of them alone takes quadratic time.
        snapshot.prefetch([leaves[name].path for name in wanted])
        known = snapshot.statistics(fields, TRINO)
        held = snapshot.column_bytes([leaves[name].path[0] for name in wanted])
        nothing = np.full(snapshot.num_files, -1, np.int64)
        parts = {
            name: _columns(known.column(leaves[name]), leaves[name].type, snapshot.num_files)
            | {"bytes": _known_counts(held.get(name.lower(), nothing))}
            for name in wanted
        }
        modified = _known_counts(snapshot.modified).cast(pa.timestamp("us", "UTC"))
    paths = snapshot.paths.cast(pa.string())
    rows = _known_counts(snapshot.rows)
    if form == "wide":
        arrays = {"path": paths, "rows": rows, "modified": modified}
        for name, part in parts.items():
            arrays |= {f"{name}.{key}": values for key, values in part.items()}
        return pa.table(arrays)
    tables = []
    for name, part in parts.items():
        spelled = pa.repeat(pa.scalar(name), len(paths))
        texts = {key: _text(part[key]) for key in ("min", "max")}
        tables.append(
            pa.table(
                {"path": paths, "column": spelled, "rows": rows, "modified": modified}
                | part
                | texts
            ).select(_LONG.names)
        )
    return pa.concat_tables([_LONG.empty_table(), *tables])


def _has_bounds(type: Type) -> bool:
    return not type.is_nested and arrow_type(type) is not None


def _known(column: str, leaves: dict[str, BoundReference]) -> str:
    for name in leaves:
        if name.lower() == column.lower():
            return name
    raise InvalidRequest(
        f"the index keeps no bounds of {column}", f"it keeps those of {', '.join(leaves)}"
    )


def _columns(found: ColumnStatistics | None, type: Type, files: int) -> dict[str, pa.Array]:
    if found is None:
        nothing = {"min": arrow_type(type), "max": arrow_type(type), "nulls": pa.int64()}
        kinds = {**nothing, "nans": pa.int64(), "exact": pa.bool_()}
        return {key: pa.nulls(files, kind) for key, kind in kinds.items()}
    exact = np.ones(files, np.bool_) if found.exact is None else found.exact
    return {
        "min": _bounds(found.lower, found.lower_known, type),
        "max": _bounds(found.upper, found.upper_known, type),
        "nulls": _known_counts(found.null_count),
        "nans": _known_counts(found.nan_count),
        "exact": pa.array(exact),
    }


def _known_counts(counts: Any) -> pa.Array:
    held = np.ascontiguousarray(counts, np.int64)
    return pa.array(held, mask=held < 0)


def _bounds(bounds: Any, known: Any, type: Type) -> pa.Array:
    """Bounds as planning holds them, in the table's own type."""
    if isinstance(bounds, np.ndarray):
        mask = None if known is None else ~known
        if type.kind is Kind.DECIMAL:
            return _scaled(bounds, mask, type)
        if type.kind is Kind.BOOLEAN:
            return pa.array(bounds.astype(np.bool_), mask=mask)
        if type.is_floating:
            return pa.array(bounds.astype(np.float64), mask=mask).cast(arrow_type(type))
        numbers = np.where(mask, 0, bounds) if mask is not None else bounds
        found = pa.array(np.asarray(numbers, np.int64), mask=mask)
        if type.kind is Kind.DATE:
            found = found.cast(pa.int32())
        return found.cast(arrow_type(type))
    array = bounds if known is None else pc.if_else(pa.array(known), bounds, None)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if not type.is_text:
        return array.cast(arrow_type(type))
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:  # a file may hold text that is no UTF-8
        texts = [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()]
        return pa.array(texts, pa.string())


def _scaled(bounds: Any, mask: Any, type: Type) -> pa.Array:
    """Unscaled numbers as decimals."""
    pairs = np.stack([bounds, bounds >> 63], axis=1).astype(np.int64)
    wide = pa.Array.from_buffers(
        pa.decimal128(38, type.scale), len(bounds), [None, pa.py_buffer(pairs.tobytes())]
    )
    if mask is not None:
        wide = pc.if_else(pa.array(mask), pa.scalar(None, wide.type), wide)
    return wide.cast(arrow_type(type))


def _text(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type):
        return pa.array([None if v is None else v.hex() for v in values.to_pylist()], pa.string())
    return values.cast(pa.string())
