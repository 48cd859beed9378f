"""The record keys of a column's value, as Hudi keeps them: ``secondary_index_…`` partitions.

An entry is a value and a record key, apart by ``$``; a backslash stands before what is meant as it
is. It names neither file nor instant. The record index tells the file group of its key. So a base
file does not hold a value only if

- the record index shows of every base file of the table that its keys are all of its rows, so no
  key is in two files;
- each key of the file has an entry here. A writer replaces the entry of a key whose value changes:
  a lost one leaves the key without an entry;
- the metadata table is whole, as `read_entries` says;
- the table's version, and version and form of the index, are those that `TESTED` names.

A key of several entries may have any of their values. NULL has the entry of the text U+0000.
"""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import Executor
from typing import Any

import numpy as np

from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import Kind
from bridge.table.hudi.files.base_files import EqualityIndex, Values, metadata_damage
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_entries import read_entries, read_record
from bridge.table.hudi.files.record_index import Places, RecordIndex, join_numbers
from bridge.table.hudi.schema.avro_schema import avro_columns
from bridge.table.slices import Int64Array

PREFIX = "secondary_index_"
TESTED = frozenset({(9, "V2", frozenset({"isDeleted"}))})
"""Version of the table, version of the index, and fields of an entry, as Hudi 1.1 and 1.2 write
them. An index of Hudi 1.0 does not tell by which of its releases, whose writers differ."""
_KINDS = {
    Kind.INTEGER: (Kind.INTEGER, Kind.BIGINT),
    Kind.BIGINT: (Kind.INTEGER, Kind.BIGINT),
    Kind.STRING: (Kind.STRING,),
    Kind.DATE: (Kind.DATE,),
}
"""By the type of a column in the table's schema: types of it whose texts the entries are."""
_DEFINITIONS = ".hoodie/.index_defs/index.json"
_TYPE = 7
_KEY = re.compile(rb"((?:[^\\$]++|\\.)*+)\$((?:[^\\$]++|\\.)*+)", re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


class SecondaryIndex(EqualityIndex):
    """Base files that hold no row of a column's value; safe for threads.

    Attributes:
        source: for reports.
    """

    source = "secondary_index"
    by_column = True

    def __init__(
        self,
        view: FileSystemView,
        schema: str,
        slices: FileSlices,
        pool: Executor,
        keys: RecordIndex,
    ) -> None:
        columns = avro_columns(schema, view.config.base)
        kinds = {c.name.lower(): _KINDS.get(c.type.kind, ()) for c in columns}
        super().__init__(view, slices, pool, kinds)
        self._keys = keys
        self._reading = threading.Lock()
        self._definitions: dict[str, tuple[str, str]] | None = None

    def _read(self, column: str) -> Values | None:
        with self._reading:
            if self._definitions is None:
                self._definitions = self._read_definitions()
        if column not in self._definitions:
            return None
        partition, version = self._definitions[column]
        if (self._view.config.version, version) not in {tested[:2] for tested in TESTED}:
            raise UnsupportedTable(
                f"{partition} of {self._view.config.base} has the version {version} in a table of "
                f"version {self._view.config.version}; those of Hudi 1.1 and 1.2 are read",
                "drop it and create it with Hudi 1.1 or later, or skipbridge index build",
            )
        return self._read_entries(partition)

    def _read_definitions(self) -> dict[str, tuple[str, str]]:
        """Partition and version of the index of each column that has one."""
        config = self._view.config
        content = json.loads(self._view.storage.read(f"{config.base}/{_DEFINITIONS}"))
        return {
            each["sourceFields"][0].lower(): (name, str(each.get("version")))
            for name, each in content["indexDefinitions"].items()
            if name in config.metadata_partitions
            and name.startswith(PREFIX)
            and len(each["sourceFields"]) == 1
        }

    def _read_entries(self, partition: str) -> Places:
        keys = self._keys.places()
        if not keys.whole.all():
            raise UnsupportedTable(
                f"record_index of {self._view.config.base} does not tell the keys of all files: "
                f"{partition} tells nothing",
                "build an index: skipbridge index build",
            )
        values: list[Int64Array] = []
        places: list[Int64Array] = []
        covered = np.zeros(len(keys.hashes), np.bool_)
        for entries in read_entries(self._view, partition):
            held: dict[bytes, None] = {}
            known: dict[bytes, bool] = {}
            for key, value, schema in entries:
                if value is not None and value not in known:
                    known[value] = self._is_alive(value, schema)
                if value is None or not known[value]:
                    held.pop(key, None)
                else:
                    held[key] = None
            found = [pair for key in held if (pair := split_entry(key)) is not None]
            at = keys.find(np.fromiter((hash(key) for _, key in found), np.int64, len(found)))
            covered[at[at >= 0]] = True
            hashes = np.fromiter((hash(value) for value, _ in found), np.int64, len(found))
            values.append(hashes)
            places.append(np.where(at < 0, -1, keys.places[at]))
        every, where = join_numbers(values), join_numbers(places)
        counts = np.bincount(keys.places[covered & (keys.places >= 0)], minlength=len(keys.whole))
        rows = np.bincount(keys.places[keys.places >= 0], minlength=len(keys.whole))
        order = np.argsort(every, kind="stable")
        return Places(every[order], where[order], keys.whole & (counts == rows))

    def _is_alive(self, value: bytes, schema: str) -> bool:
        entry: Any = read_record(schema, value, _TYPE)["SecondaryIndexMetadata"]
        if entry is None:
            return False
        if frozenset(entry) not in {tested[2] for tested in TESTED}:
            raise metadata_damage(f"an entry of {PREFIX} has the fields {sorted(entry)}")
        return not entry["isDeleted"]


def split_entry(key: bytes) -> tuple[bytes, bytes] | None:
    r"""The value and the record key of an entry; None if the entry has another form.

    >>> split_entry(rb"a\$b$k1"), split_entry(b"\0$k2"), split_entry(b"a$b$c")
    ((b'a$b', b'k1'), (b'\x00', b'k2'), None)
    """
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    value, record = (_ESCAPED.sub(rb"\1", part) for part in match.groups())
    return value, record
