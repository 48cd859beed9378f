"""What ``.hoodie/hoodie.properties`` says of a Hudi table.

A table that this program cannot read right is refused here, by name of what it has: an old or
unknown table version, another timeline layout, bootstrapped files, a base file format without a
reader.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bridge.kernel.errors import FileCorrupt, FileUnreadable, TableNotFound, UnsupportedTable
from bridge.kernel.retry import Backoff
from bridge.kernel.types import whole_number
from bridge.storage.port import Storage
from bridge.table.hudi.merging.merge_mode import (
    MergeMode,
    fields_of,
    merge_mode,
    ordering_fields,
    partial_update,
)

_LAYOUTS = {6: 1, 8: 2, 9: 2}
_FORMATS = frozenset({"parquet", "orc"})
_CHECKSUM = "hoodie.table.checksum"
_NEEDED = ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version", _CHECKSUM)
_ATTEMPTS, _PAUSE = 5, 0.2  # a writer replaces the file in three steps
_PROPERTY = re.compile(
    r"[ \t\f]*((?:\\[\s\S]|[^\\=: \t\f\n])*)[ \t\f]*[=: \t\f]?[ \t\f]*((?:\\[\s\S]|[^\\\n])*)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(\n[ \t\f]*)|([\s\S]))")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class TableType(StrEnum):
    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class HudiTableConfig:
    """The properties of one Hudi table.

    Attributes:
        base: canonical URI of the table, without a slash at the end.
        name: the table's name, as the writer gave it.
        version: table version: 6, 8 or 9.
        base_format: ``parquet`` or ``orc``.
        timeline_uri: the directory of the instants.
        history_uri: the directory of archived instants.
        partition_fields: without the type that a custom key generator appends.
        partition_types: of each field: ``simple``, ``timestamp``, or empty if it is not said.
        key_generator: class name, else type; empty: not said.
        hive_style: partition directories are ``field=value``.
        url_encoded: values in partition paths are escaped.
        slash_dates: a date is written as three directories, ``2024/01/31``.
        drops_partition_columns: files lack the partition columns.
        merge_mode: CUSTOM also where the properties do not decide it.
        partial_update: mode of partial updates; empty: none.
        ordering_fields: the fields by which EVENT_TIME_ORDERING compares.
        has_meta_fields: files have the columns ``_hoodie_*``.
        timeline_zone: ``LOCAL`` (of the writer) or ``UTC``; instants are compared as text.
        metadata_partitions: partitions of the metadata table that are complete.
        create_schema: Avro schema as JSON, without the meta fields; None: not said.
    """

    base: str
    name: str
    version: int
    table_type: TableType
    base_format: str
    timeline_uri: str
    history_uri: str
    partition_fields: tuple[str, ...]
    partition_types: tuple[str, ...]
    key_generator: str
    hive_style: bool
    url_encoded: bool
    slash_dates: bool
    drops_partition_columns: bool
    merge_mode: MergeMode
    partial_update: str
    ordering_fields: tuple[str, ...]
    record_key_fields: tuple[str, ...]
    has_meta_fields: bool
    timeline_zone: str
    metadata_partitions: frozenset[str]
    create_schema: str | None
    properties: Mapping[str, str]

    @property
    def completes(self) -> bool:
        """Whether instants have a completion time in their name, as from version 8 on."""
        return self.version >= 8


def load_table_config(storage: Storage, base: str) -> HudiTableConfig:
    """Reads the properties of the table at a location.

    A writer that updates the file writes a backup, deletes the file and writes it anew. The backup
    counts while the file is missing or not whole, as in Hudi.

    Errors:
        TableNotFound: there is no Hudi table.
        UnsupportedTable: this program would not read the table right.
        FileCorrupt: neither file is whole.
    """
    base = base.rstrip("/")
    found = ""
    for attempt in Backoff(_PAUSE, growth=1.0, attempts=_ATTEMPTS):
        for name in ("hoodie.properties", "hoodie.properties.backup"):
            uri = f"{base}/.hoodie/{name}"
            content = _content(storage, uri)
            if content is None:
                continue
            found = uri
            properties = parse_properties(content)
            if _is_whole(content, properties):
                return parse_table_config(base, properties)
        if not found and attempt and not storage.list_all(f"{base}/.hoodie", recursive=False):
            break
    if found:
        raise FileCorrupt(
            f"{found} is not whole: a property is missing or its checksum is wrong",
            "copy a valid hoodie.properties.backup over it, or repair it with Hudi's CLI",
        )
    raise TableNotFound(
        f"{base}/.hoodie/hoodie.properties does not exist", "check the location of the table"
    )


def parse_table_config(base: str, properties: Mapping[str, str]) -> HudiTableConfig:
    """The configuration that properties give. Errors: UnsupportedTable."""
    version = _version(base, properties)
    _refuse_unreadable(base, version, properties)
    meta = f"{base}/.hoodie"
    timeline = meta
    history = _under(meta, properties.get("hoodie.archivelog.folder", "archived"))
    if version >= 8:
        timeline = _under(meta, properties.get("hoodie.timeline.path") or "timeline")
        history = _under(timeline, properties.get("hoodie.timeline.history.path") or "history")
    fields = fields_of(properties.get("hoodie.table.partition.fields", ""))
    return HudiTableConfig(
        base=base,
        name=properties.get("hoodie.table.name", ""),
        version=version,
        table_type=TableType(properties["hoodie.table.type"]),
        base_format=properties.get("hoodie.table.base.file.format", "PARQUET").lower(),
        timeline_uri=timeline,
        history_uri=history,
        partition_fields=tuple(f.split(":")[0] for f in fields),
        partition_types=tuple(f.partition(":")[2].lower() for f in fields),
        key_generator=properties.get("hoodie.table.keygenerator.class")
        or properties.get("hoodie.table.keygenerator.type", ""),
        hive_style=_flag(properties, "hoodie.datasource.write.hive_style_partitioning"),
        url_encoded=_flag(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        slash_dates=_flag(properties, "hoodie.datasource.write.slash.separated.date.partitioning"),
        drops_partition_columns=_flag(properties, "hoodie.datasource.write.drop.partition.columns"),
        merge_mode=merge_mode(version, properties),
        partial_update=partial_update(properties),
        ordering_fields=ordering_fields(properties),
        record_key_fields=fields_of(properties.get("hoodie.table.recordkey.fields", "")),
        has_meta_fields=_flag(properties, "hoodie.populate.meta.fields", default=True),
        timeline_zone=properties.get("hoodie.table.timeline.timezone", "LOCAL").upper(),
        metadata_partitions=frozenset(
            fields_of(properties.get("hoodie.table.metadata.partitions", ""))
        ),
        create_schema=properties.get("hoodie.table.create.schema") or None,
        properties=dict(properties),
    )


def parse_properties(content: bytes) -> dict[str, str]:
    r"""The keys and values of a Java properties file.

    >>> parse_properties(b"# x\na\\ b = c\\u0041\\\n   d\ne:f\n")
    {'a b': 'cAd', 'e': 'f'}
    """
    text = content.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        start = at
        while start < len(text) and text[start] in " \t\f":
            start += 1
        if start < len(text) and text[start] in "#!\n":
            end = text.find("\n", start)
            at = len(text) if end < 0 else end + 1
            continue
        match = _PROPERTY.match(text, at)
        assert match is not None
        if match[1]:
            found[_unescape(match[1])] = _unescape(match[2])
        at = match.end() + 1
    return found


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return "" if match[2] else _LETTERS.get(match[3], match[3])

    plain = _ESCAPE.sub(one, text)
    # Two escapes of one character above the BMP, as Java writes it.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _content(storage: Storage, uri: str) -> bytes | None:
    try:
        return storage.read(uri)
    except FileUnreadable:
        # Gone is one thing, forbidden or damaged another.
        if storage.stat(uri) is None:
            return None
        raise


def _is_whole(content: bytes, properties: Mapping[str, str]) -> bool:
    # The checksum is of the table's name alone, so a cut file can have it. Java ends the last line.
    if not content.endswith(b"\n") or any(key not in properties for key in _NEEDED):
        return False
    name = f"{properties.get('hoodie.database.name', '')}.{properties['hoodie.table.name']}"
    return properties[_CHECKSUM] == str(zlib.crc32(name.encode()))


def _version(base: str, properties: Mapping[str, str]) -> int:
    said = properties.get("hoodie.table.version", "")
    version = whole_number(said)
    if version in _LAYOUTS:
        return version
    hint = "read it with a newer release of skipbridge"
    if version is not None and version < max(_LAYOUTS):
        hint = "upgrade the table to version 6, 8 or 9 with Hudi's CLI (upgrade table)"
    raise UnsupportedTable(f"Hudi table {base} has table version {said or 'none'}", hint)


def _refuse_unreadable(base: str, version: int, properties: Mapping[str, str]) -> None:
    def refuse(what: str, hint: str) -> UnsupportedTable:
        return UnsupportedTable(f"Hudi table {base} {what}", hint)

    layout = properties.get("hoodie.timeline.layout.version", str(_LAYOUTS[version]))
    if layout != str(_LAYOUTS[version]):
        raise refuse(
            f"has table version {version} and timeline layout {layout}",
            "finish the upgrade or downgrade of the table",
        )
    if properties.get("hoodie.table.format", "native") != "native":
        raise refuse(
            f"has the table format {properties['hoodie.table.format']}",
            "register the table in its own format",
        )
    if properties.get("hoodie.bootstrap.base.path"):
        raise refuse(
            f"was bootstrapped from {properties['hoodie.bootstrap.base.path']}",
            "rewrite the table with Hudi (for example by clustering all of it into a new table)",
        )
    kind = properties.get("hoodie.table.type", "")
    if kind not in TableType.__members__:
        raise refuse(f"has the table type {kind or 'none'}", "check hoodie.table.type")
    if _flag(properties, "hoodie.table.multiple.base.file.formats.enable"):
        raise refuse("has base files of several formats", "read it with Hudi's own reader")
    form = properties.get("hoodie.table.base.file.format", "PARQUET").lower()
    if form not in _FORMATS:
        raise refuse(f"has base files of the format {form}", "read it with Hudi's own reader")
    log = properties.get("hoodie.table.log.file.format", "HOODIE_LOG")
    if log != "HOODIE_LOG":
        raise refuse(f"has logs of the format {log}", "read it with Hudi's own reader")


def _flag(properties: Mapping[str, str], key: str, default: bool = False) -> bool:
    said = properties.get(key)
    return default if said is None else said.strip().lower() == "true"


def _under(directory: str, name: str) -> str:
    """Errors: UnsupportedTable: the name leads out of the directory."""
    name = name.strip("/")
    if ".." in name.split("/") or "\0" in name:
        raise UnsupportedTable(
            f"the timeline {directory}/{name!r} is outside the table",
            "check hoodie.timeline.path, hoodie.timeline.history.path and hoodie.archivelog.folder",
        )
    return f"{directory}/{name}" if name else directory
