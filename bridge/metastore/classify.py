"""Classifies tables of the metastore, and decides whether their files may be read directly.

A plain listing of some kinds of table gives wrong rows: files that a transaction log has removed,
deltas that were not merged, text files that name other files. Such tables are refused; the error
names the property or class that identifies the kind.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache, lru_cache

from bridge.formats.registry import file_formats, spell_formats
from bridge.kernel.errors import UnsupportedTable
from bridge.metastore._gen import ttypes
from bridge.table.registry import DIRECTORY, recognise_format

_OUR_PACKAGE = "io.skipbridge."
_OUR_HANDLER = "io.skipbridge.hive.BridgeStorageHandler"
FILE_FORMAT = "skipbridge.file_format"
"""A parameter of a SerDe of our own, which reads files of any format."""
_PARQUET = frozenset({"parquet"})

_VIEW_PREFIX, _VIEW_SUFFIX = "/* Presto View: ", " */"
_USE_HIVE = "query it with its own connector"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a table is not read: its kind, the evidence, and what to do instead."""

    kind: str
    value: str
    remedy: str


def refusal(table: ttypes.Table, formats: frozenset[str] = _PARQUET) -> Refusal | None:
    """Why this table must not be read by listing its files; None if it may be read.

    Args:
        formats: file formats that the reader supports.
    """
    for rule in RULES:
        found = rule(table)
        if found is not None:
            return found
    return _format(table, formats) or _location(table)


def refuse_unsupported(table: ttypes.Table, formats: frozenset[str] = _PARQUET) -> None:
    """Errors: UnsupportedTable."""
    found = refusal(table, formats)
    if found is not None:
        raise UnsupportedTable(
            f"{table.dbName}.{table.tableName} is {found.kind} ({found.value})", found.remedy
        )


def refuse_other_table_formats(table: ttypes.Table) -> None:
    """For what knows tables of plain directories alone. Errors: UnsupportedTable."""
    found = recognise_format(table.parameters or {}, table.sd.inputFormat or "")
    if found != DIRECTORY:
        raise UnsupportedTable(
            f"{table.dbName}.{table.tableName} is of the table format {found!r}: not every file in "
            "its directories belongs to it",
            "leave it as it is: Trino and the Python API read it without a sync",
        )


def storage_format(descriptor: ttypes.StorageDescriptor | None) -> str:
    """``parquet``, ``orc`` and so on; for an unknown format the input format's class name."""
    if descriptor is None:
        return "none"
    serde = descriptor.serdeInfo.serializationLib if descriptor.serdeInfo is not None else None
    return _format_of(descriptor.inputFormat, serde)


def serde_format(descriptor: ttypes.StorageDescriptor) -> str:
    """The format of a table's files by its SerDe alone, where the input format is not Hive's own.

    For a SerDe that is not known it is as `storage_format`.
    """
    info = descriptor.serdeInfo
    told = (info.parameters or {}).get(FILE_FORMAT) if info is not None else None
    if told in file_formats():
        return str(told)
    serde = info.serializationLib if info is not None else None
    return _formats_by_serde().get(_short(serde or "")) or storage_format(descriptor)


@lru_cache(256)
def _format_of(input_format: str | None, serde: str | None) -> str:
    """Cached: the partitions of a table repeat one pair of names."""
    if input_format is None:  # the storage handler supplies it
        return _hooked_formats().get(_short(serde or ""), "none")
    short = (_short(input_format), _short(serde or ""))
    if input_format.startswith(_OUR_PACKAGE) and short[1] in _hooked_formats():
        return _hooked_formats()[short[1]]
    return _formats().get(short, f"{input_format} with {serde}")


@cache
def _formats() -> dict[tuple[str, str], str]:
    """Formats by input format and SerDe. Only the class name after the last dot counts, since
    packages have changed."""
    return {
        (_short(input_format), _short(serde)): known.name
        for known in file_formats().values()
        if known.hive is not None
        for input_format in known.hive.input_formats
        for serde in known.hive.serdes
    }


@cache
def _formats_by_serde() -> dict[str, str]:
    """Formats by the SerDes that no other format has."""
    return {
        _short(serde): known.name
        for known in file_formats().values()
        if known.hive is not None
        for serde in known.hive.serdes
    }


@cache
def _hooked_formats() -> dict[str, str]:
    """Formats by SerDe, for our own input formats: there the SerDe decides."""
    return {
        _short(serde): known.name
        for known in file_formats().values()
        if known.hive is not None and known.hive.hook is not None
        for serde in known.hive.serdes
    }


def trino_view(table: ttypes.Table) -> str | None:
    """The JSON definition of a view created by Trino (formerly Presto); None for all else."""
    made = (table.parameters or {}).get("presto_view", "").lower() == "true"
    text = (table.viewOriginalText or "").strip()
    if table.tableType != "VIRTUAL_VIEW" or not made:
        return None
    if not text.startswith(_VIEW_PREFIX) or not text.endswith(_VIEW_SUFFIX):
        return None
    try:
        encoded = text[len(_VIEW_PREFIX) : -len(_VIEW_SUFFIX)]
        return base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return None


def _view(table: ttypes.Table) -> Refusal | None:
    if table.tableType not in ("VIRTUAL_VIEW", "MATERIALIZED_VIEW") and not table.viewOriginalText:
        return None
    kind = "a view of Trino" if trino_view(table) is not None else "a view of Hive"
    return Refusal(kind, f"table type {table.tableType}", "name the tables it selects from")


def _iceberg(table: ttypes.Table) -> Refusal | None:
    shown = (
        _property(table, "table_type", "iceberg")
        or _property(table, "storage_handler", "iceberg")
        or _property(table, "spark.sql.sources.provider", "iceberg")
        or _class(table, "org.apache.iceberg.")
    )
    return Refusal("an Iceberg table", shown, _USE_HIVE) if shown else None


def _delta(table: ttypes.Table) -> Refusal | None:
    shown = (
        _property(table, "spark.sql.sources.provider", "delta")
        or _property(table, "table_type", "delta")
        or _property(table, "storage_handler", "delta")
        or _class(table, "io.delta.")
    )
    return Refusal("a Delta table", shown, _USE_HIVE) if shown else None


def _hudi(table: ttypes.Table) -> Refusal | None:
    shown = (
        _property(table, "spark.sql.sources.provider", "hudi")
        or _class(table, "org.apache.hudi.")
        or _class(table, "com.uber.hoodie.")
    )
    return Refusal("a Hudi table", shown, _USE_HIVE) if shown else None


def _acid(table: ttypes.Table) -> Refusal | None:
    shown = _property(table, "transactional", "true")
    remedy = "query it with Hive, or copy it into an external table"
    return Refusal("an ACID table", shown, remedy) if shown else None


def _handler(table: ttypes.Table) -> Refusal | None:
    handler = _properties(table).get("storage_handler")
    if not handler or handler == _OUR_HANDLER:
        return None
    return Refusal("kept by a storage handler", f"storage_handler={handler}", _USE_HIVE)


def _projection(table: ttypes.Table) -> Refusal | None:
    shown = _property(table, "projection.enabled", "true") or _property(
        table, "partition_projection_enabled", "true"
    )
    remedy = "register its partitions in the metastore"
    return Refusal("a table of projected partitions", shown, remedy) if shown else None


def _symlinks(table: ttypes.Table) -> Refusal | None:
    shown = _class(table, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat")
    remedy = "declare a table at the location of the files themselves"
    return Refusal("a table of symbolic links", shown, remedy) if shown else None


def _list_bucketing(table: ttypes.Table) -> Refusal | None:
    if table.sd is None or not table.sd.storedAsSubDirectories:
        return None
    shown = "stored as directories"
    return Refusal("a skewed table with a directory a value", shown, "query it with Hive")


def _format(table: ttypes.Table, formats: frozenset[str]) -> Refusal | None:
    found = storage_format(table.sd)
    if found in formats:
        return None
    known = spell_formats(formats)
    return Refusal(f"not a {known} table", f"format {found}", f"only {known} tables are read here")


def _location(table: ttypes.Table) -> Refusal | None:
    if table.sd is not None and table.sd.location:
        return None
    return Refusal("a table without a location", "location is empty", "set one with ALTER TABLE")


# The first matching rule decides; the most specific ones come first.
RULES = (
    _view,
    _iceberg,
    _delta,
    _hudi,
    _acid,
    _handler,
    _projection,
    _symlinks,
    _list_bucketing,
)


def _properties(table: ttypes.Table) -> dict[str, str]:
    return {k.lower(): v for k, v in (table.parameters or {}).items()}


def _property(table: ttypes.Table, key: str, part: str) -> str:
    """``key=value`` if the property contains this text in any case, else empty."""
    value = _properties(table).get(key)
    return f"{key}={value}" if value and part in value.lower() else ""


def _class(table: ttypes.Table, prefix: str) -> str:
    name = table.sd.inputFormat if table.sd is not None else None
    return f"input format {name}" if name and name.startswith(prefix) else ""


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]
