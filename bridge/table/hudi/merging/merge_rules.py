"""Which of two versions of a row counts: by Hudi's merge modes, and as Hudi 0.x does.

A table names its mode, or a payload class that stands for one. The rules of Hudi 0.x, which made
most tables of version 6, differ where rows come late: the release counts that made the table, as
its properties show. What runs a class of the user's, or updates some columns only, is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.hudi.log_records import OrderingValue, Wrapped
from bridge.kernel.errors import UnsupportedTable
from bridge.table.hudi.merging.merge_mode import (
    MergeMode,
    fields_of,
    merge_mode,
    merge_strategy,
    ordering_fields,
    partial_update,
    payload_class,
    text_of,
)

RECORD_KEY = "_hoodie_record_key"
_PROPERTY = "hoodie.record.merge.property."
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"
_BARE = frozenset(
    {"simple", "nonpartition", "nonpartitioned", "timestamp", "timestampbased", "custom"}
)
_HINT = "compact the table and read its base files, or read it with the engine"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """All that decides the merge of a table's rows.

    Attributes:
        legacy: as Hudi 0.x does: logs among each other always by the ordering field, and a deleted
            key always over the base file.
        ordering_fields: empty: the later version counts. A dot leads into a struct.
        key_fields: ``(RECORD_KEY,)``, or the table's own columns if it has no meta columns.
        may_name_key: deletions may spell a key of one field ``id:2`` or ``2``: the table's key
            generator does one or the other by its release and settings.
        delete_marker: column and text; a row with the text there is a deletion.
        millis: ordering fields that are milliseconds; deletions may tell them as plain numbers.
    """

    mode: MergeMode
    legacy: bool = False
    ordering_fields: tuple[str, ...] = ()
    key_fields: tuple[str, ...] = (RECORD_KEY,)
    delete_marker: tuple[str, str] | None = None
    millis: frozenset[str] = frozenset()
    may_name_key: bool = False


def merge_rules(properties: Mapping[str, str]) -> MergeRules:
    """The rules of a table.

    Args:
        properties: of its ``hoodie.properties``.

    Errors:
        UnsupportedTable: for other payloads and mergers, and for partial updates.
    """
    version = text_of(properties, "hoodie.table.version")
    if not version.isdecimal():
        raise UnsupportedTable(
            f"the table version {version!r} of a Hudi table is unknown",
            "restore the table's hoodie.properties",
        )
    partial = partial_update(properties)
    if partial:
        raise UnsupportedTable(f"the partial updates {partial} of Hudi are not merged here", _HINT)
    mode = merge_mode(int(version), properties)
    if mode is MergeMode.CUSTOM:
        said = text_of(properties, "hoodie.record.merge.mode") or "none"
        payload = payload_class(int(version), properties) or "none"
        strategy = merge_strategy(properties) or "none"
        raise UnsupportedTable(
            f"Hudi's merge mode {said} with the payload {payload} and the strategy {strategy} "
            "is not read here",
            _HINT,
        )
    # Hudi 1.x writes these also for tables of version 6.
    newer = text_of(properties, "hoodie.record.merge.strategy.id", "hoodie.record.merge.mode")
    legacy = int(version) < 8 and not newer
    populated = text_of(properties, "hoodie.populate.meta.fields").lower() != "false"
    keys = fields_of(text_of(properties, "hoodie.table.recordkey.fields"))
    if not populated and not keys:
        raise UnsupportedTable("a Hudi table has neither meta columns nor record keys", _HINT)
    return MergeRules(
        mode,
        legacy,
        ordering_fields(properties),
        (RECORD_KEY,) if populated else keys,
        _delete_marker(properties),
        may_name_key=not populated and len(keys) == 1 and not _spells_bare_key(properties),
    )


def _spells_bare_key(properties: Mapping[str, str]) -> bool:
    """Whether the key generator writes the key of one field without the field's name."""
    said = text_of(properties, "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
    name = said.rpartition(".")[2].lower().removesuffix("keygenerator").replace("_", "")
    return name.removesuffix("avro") in _BARE


def _delete_marker(properties: Mapping[str, str]) -> tuple[str, str] | None:
    field = marker = ""
    for name, value in properties.items():
        known = name.removeprefix(_PROPERTY)
        if known == _DELETE_FIELD:
            field = value
        elif known == _DELETE_MARKER:
            marker = value
        elif known != name:
            raise UnsupportedTable(f"Hudi's merge property {known} is not read here", _HINT)
    if bool(field) != bool(marker):
        raise UnsupportedTable(
            f"a Hudi table has the delete field {field!r} and the delete marker {marker!r}",
            f"set both {_DELETE_FIELD} and {_DELETE_MARKER}, or none",
        )
    return (field, marker) if field else None


def find_column(names: Sequence[str], name: str) -> str | None:
    """The column of a name, which may differ in case; None if there is none, or several (rule 14).

    >>> find_column(["id", "day"], "Day")
    'day'
    """
    if name in names:
        return name
    found = [other for other in names if other.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A deletion's ordering value of another type than the table's column."""


_FOREIGN = _Foreign()
_SINGLE: Mapping[str, tuple[str, ...]] = {
    "int": ("Int",),
    "date": ("Int", "Date", "LocalDate"),
    "long": ("Long",),
    "timestamp": ("Long", "TimestampMicros"),
    "float": ("Float",),
    "double": ("Double",),
    "string": ("String",),
    "binary": ("Bytes",),
    "decimal": ("Decimal",),
    "bool": ("Boolean",),
}


class Ordering:
    """Ordering values as values that Python compares as Java does.

    None is the default, which Hudi writes as the number 0 of type int.

    Args:
        schema: of the rows that `values` gets.
        millis: as in `MergeRules`.

    Attributes:
        is_int: the default is a value like others.

    Errors of `__init__`:
        UnsupportedTable: there is no such column, or one of a type that has no order.
    """

    def __init__(
        self, schema: pa.Schema, fields: Sequence[str], millis: Collection[str] = ()
    ) -> None:
        self._paths = [self._path(schema, field) for field in fields]
        self._kinds = [
            _kind(type, field) for (_, type), field in zip(self._paths, fields, strict=True)
        ]
        self._factors = [1000 if field in millis else 1 for field in fields]
        self.is_int = self._kinds in (["int"], ["date"])

    @staticmethod
    def _path(schema: pa.Schema, field: str) -> tuple[list[str], pa.DataType]:
        whole = find_column(schema.names, field)
        path: list[str] = []
        type: Any = pa.struct(list(schema))
        for part in [field] if whole is not None else field.split("."):
            names = [child.name for child in type] if pa.types.is_struct(type) else []
            name = find_column(names, part)
            if name is None:
                raise UnsupportedTable(
                    f"the ordering field {field!r} is no column of the table", _HINT
                )
            path.append(name)
            type = type.field(name).type
        return path, type

    def values(self, table: pa.Table) -> list[Any]:
        """The ordering value of each row."""
        columns = [
            _comparable(_leaf(table, path), kind)
            for (path, _), kind in zip(self._paths, self._kinds, strict=True)
        ]
        if not columns:
            return [None] * table.num_rows
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def of_delete(self, value: OrderingValue) -> Any:
        """The ordering value of a deleted key."""
        if value is None or value == Wrapped("Int", 0) or not self._kinds:
            return None
        if isinstance(value, Wrapped):
            return self._one(value, 0) if len(self._kinds) == 1 else _FOREIGN
        if len(value) != len(self._kinds):
            return _FOREIGN
        parts = tuple(
            None if v is None or v == Wrapped("Int", 0) else self._one(v, at)
            for at, v in enumerate(value)
        )
        return _FOREIGN if _FOREIGN in parts else parts

    def _one(self, value: Wrapped, at: int) -> Any:
        kind = self._kinds[at]
        if value.kind not in _SINGLE[kind]:
            return _FOREIGN
        found = value.value
        if kind == "timestamp" and value.kind == "Long":
            return found * self._factors[at]
        if kind == "string":
            return found.encode()
        if kind in ("float", "double"):
            return _float_keys(np.array([found], np.float64))[0]
        return found

    def arrived_after(self, new: Any, old: Any) -> bool:
        """`not_before` as Hudi 0.x compares logs: decimals as bytes without a sign.

        Errors:
            UnsupportedTable.
        """
        both = isinstance(new, Decimal) and isinstance(old, Decimal)
        if both and (new < 0) != (old < 0):
            return bool(new < 0)
        return self.not_before(new, old)

    def same_type(self, left: Any, right: Any) -> bool:
        """Whether Java finds two values of one class."""
        if left is _FOREIGN or right is _FOREIGN:
            return False
        return self.is_int or (left is None) == (right is None)

    def not_before(self, new: Any, old: Any) -> bool:
        """Whether a value is as great as another, or greater.

        Errors:
            UnsupportedTable: they cannot be compared; Hudi fails there too.
        """
        if new is None and old is None:
            return True
        if not self.same_type(new, old):
            raise _incomparable()
        if isinstance(new, tuple):
            for kind, left, right in zip(self._kinds, new, old, strict=True):
                if left is None and right is None:
                    continue
                if kind in ("int", "date"):
                    left, right = left or 0, right or 0
                elif left is None or right is None:
                    raise _incomparable()
                if left != right:
                    return bool(left > right)
            return True
        if self.is_int:
            return bool((new or 0) >= (old or 0))
        return bool(new >= old)


def _incomparable() -> UnsupportedTable:
    return UnsupportedTable(
        "two versions of a row have ordering values of different types, or one has none",
        "give every row an ordering value",
    )


def _kind(type: pa.DataType, field: str) -> str:
    t = pa.types
    if t.is_integer(type):
        return "long" if type.bit_width == 64 else "int"
    if t.is_decimal(type):
        return "decimal"
    for kind, test in (
        ("date", t.is_date32),
        ("timestamp", t.is_timestamp),
        ("float", t.is_float32),
        ("double", t.is_float64),
        ("string", t.is_string),
        ("bool", t.is_boolean),
    ):
        if test(type):
            return kind
    raise UnsupportedTable(f"the ordering field {field!r} is of type {type}", _HINT)


def _leaf(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _comparable(column: pa.ChunkedArray, kind: str) -> list[Any]:
    if kind in ("float", "double"):
        nulls = column.is_null().to_pylist()
        keys = _float_keys(column.cast(pa.float64()).fill_null(0.0).to_numpy())
        return [None if null else key for null, key in zip(nulls, keys, strict=True)]
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif kind == "date":
        column = column.cast(pa.int32())
    elif kind == "string":
        column = column.cast(pa.binary())
    values: list[Any] = column.to_pylist()
    if kind in ("int", "date"):
        # The number 0 is the default: Java cannot tell them apart.
        values = [value or None for value in values]
    return values


def _float_keys(values: Any) -> list[int]:
    """Integers in the order of Java's compareTo: -0.0 before 0.0, and NaN last."""
    plain = np.where(np.isnan(values), np.nan, values)
    bits = np.abs(plain).view(np.int64)
    signs = np.signbit(plain) & ~np.isnan(plain)
    keys: list[int] = np.where(signs, -bits - 1, bits).tolist()
    return keys
