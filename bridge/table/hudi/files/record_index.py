"""The base file of a key, as Hudi itself keeps it: ``record_index`` of a table's metadata table.

An entry names the file group of a key; it names no file, and a key that was inserted twice has one
entry. So no entry is believed by itself. A base file does not hold a key if

- the table is copy-on-write: a deletion in a log may leave the entry behind;
- it is its group's newest base file;
- the entries of its group are as many as its rows, by the commit that wrote it: as keys differ,
  they are all of its rows;
- the metadata table lacks no commit of the data and no file that its own commits wrote, and no
  later commit counts (`metadata_table`);
- the table's version and the form of the entries are those that `TESTED` names.

The key is the column ``_hoodie_record_key``. It is the table's own column only where all writers
keep the two alike: one field, whose text a simple key generator takes as it is, in a table that
Hudi 1.0 or later made. Hudi 0.15 updates the column and leaves the key.
"""

from __future__ import annotations

import threading
from concurrent.futures import Executor
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from bridge.expression.statistics import Mask
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import Kind
from bridge.table.hudi.files.base_files import ColumnKinds, EqualityIndex, Values
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_entries import read_entries, read_record
from bridge.table.hudi.merging.reader_properties import merges_whole_records
from bridge.table.hudi.schema.avro_schema import avro_columns
from bridge.table.hudi.timeline.commit_metadata import read_row_counts
from bridge.table.slices import Int64Array

PARTITION = "record_index"
_FIELDS = frozenset(
    {
        "partitionName",
        "fileIdHighBits",
        "fileIdLowBits",
        "fileIndex",
        "fileId",
        "instantTime",
        "fileIdEncoding",
    }
)
TESTED = frozenset({(6, _FIELDS), (8, _FIELDS | {"position"}), (9, _FIELDS | {"position"})})
"""Table versions and fields of an entry, of which ``tests/fixtures/hudi`` has tables."""
_KEY_COLUMN = "_hoodie_record_key"
_SIMPLE = frozenset({"simple", "non_partition", "simplekeygenerator", "nonpartitionedkeygenerator"})
_CREATED = 8
"""The version of tables since which writers refuse to update the field of a key."""
_TYPE = 5
_NO_INDEX = -1
_Place = dict[tuple[str, str], int]
"""The slice of a partition's file group."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where values are. Values of one hash are taken for each other.

    Attributes:
        hashes: of all values, in ascending order.
        places: their slices; -1 without one.
        whole: slices all of whose rows are among the values.
    """

    hashes: Int64Array
    places: Int64Array
    whole: Mask

    def never(self, values: list[bytes]) -> Mask:
        asked = np.fromiter(map(hash, values), np.int64, len(values))
        found = self.whole.copy()
        first, last = (np.searchsorted(self.hashes, asked, side) for side in ("left", "right"))
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            held = self.places[begin:end]
            found[held[held >= 0]] = False
        return found

    def find(self, hashes: Int64Array) -> Int64Array:
        """Which value each is, by its hash; -1 where none or several are."""
        first, last = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        return np.where(last - first == 1, first, -1)


class RecordIndex(EqualityIndex):
    """Base files that hold no row of a key; safe for threads.

    Attributes:
        source: for reports.
    """

    source = PARTITION

    def __init__(
        self, view: FileSystemView, slices: FileSlices, pool: Executor, kinds: ColumnKinds
    ) -> None:
        super().__init__(view, slices, pool, kinds)
        self._reading = threading.Lock()
        self._held: Places | None = None

    def _read(self, column: str) -> Values | None:
        return self.places()

    def places(self) -> Places:
        """Where keys are, read once. Errors: those of `read_entries`, DAMAGE."""
        with self._reading:
            if self._held is None:
                self._held = self._read_all()
            return self._held

    def _read_all(self) -> Places:
        view, slices = self._view, self._slices
        places: _Place = {
            (slices.partitions[partition], group): place
            for place, (partition, group) in enumerate(
                zip(slices.partition.tolist(), slices.file_ids.to_pylist(), strict=True)
            )
        }
        hashes: list[Int64Array] = []
        found: list[Int64Array] = []
        for entries in read_entries(view, PARTITION):
            decode = _Decoder(view.config.version, places)
            held: dict[bytes, int] = {}
            for key, value, schema in entries:
                place = None if value is None else decode.place(value, schema)
                if place is None:
                    held.pop(key, None)
                else:
                    held[key] = place
            hashes.append(np.fromiter(map(hash, held), np.int64, len(held)))
            found.append(np.fromiter(held.values(), np.int64, len(held)))
        every, where = join_numbers(hashes), join_numbers(found)
        counts = np.bincount(where[where >= 0], minlength=len(slices))
        whole = slices.has_base & (counts == self._rows())
        order = np.argsort(every, kind="stable")
        return Places(every[order], where[order], whole)

    def _rows(self) -> Int64Array:
        """The rows of each base file, by the commit that wrote it; -1 where that is not there."""
        view, slices = self._view, self._slices
        done = view.timeline.completed
        wanted = sorted({i for i in slices.base_instants.to_pylist() if i in done})
        uris = view.timeline.uris_of([done[instant] for instant in wanted])
        rows: dict[str, int] = {}
        for uri, content in zip(uris, view.read_all(uris), strict=True):
            rows.update(read_row_counts(content, uri))
        names = (path.rpartition("/")[2] for path in slices.base_paths.to_pylist())
        return np.fromiter((rows.get(name, -1) for name in names), np.int64, len(slices))


class _Decoder:
    """The slices that records of one file group name; records repeat, and are decoded once."""

    def __init__(self, version: int, places: _Place) -> None:
        self._version, self._places = version, places
        self._known: dict[bytes, int | None] = {}

    def place(self, value: bytes, schema: str) -> int | None:
        """-1: of none of the slices; None: the key was deleted."""
        if value not in self._known:
            self._known[value] = self._decode(value, schema)
        return self._known[value]

    def _decode(self, value: bytes, schema: str) -> int | None:
        entry = read_record(schema, value, _TYPE)["recordIndexMetadata"]
        if entry is None:
            return None
        if (self._version, frozenset(entry)) not in TESTED:
            raise UnsupportedTable(
                f"{PARTITION} has entries of another form than Hudi 0.15 to 1.2 writes",
                "build an index: skipbridge index build",
            )
        group = entry["fileId"]
        if entry["fileIdEncoding"] == 0:
            high, low = (entry[f"fileId{n}Bits"] & (1 << 64) - 1 for n in ("High", "Low"))
            group = str(UUID(int=high << 64 | low))
            if entry["fileIndex"] != _NO_INDEX:
                group += f"-{entry['fileIndex']}"
        return self._places.get((entry["partitionName"], group), -1)


def key_columns(view: FileSystemView, schema: str) -> ColumnKinds:
    """The columns that hold the key, in lower case, with the types whose text it is."""
    config = view.config
    if not config.has_meta_fields:
        return {}
    found: dict[str, tuple[Kind, ...]] = {_KEY_COLUMN: (Kind.STRING,)}
    created = config.properties.get("hoodie.table.initial.version", "")
    simple = config.key_generator.rpartition(".")[2].lower() in _SIMPLE
    if not (simple and created.isdigit() and int(created) >= _CREATED):
        return found
    if len(config.record_key_fields) != 1 or not merges_whole_records(config):
        return found
    (name,) = config.record_key_fields
    columns = avro_columns(schema, config.base)
    match [column.type.kind for column in columns if column.name.lower() == name.lower()]:
        case [Kind.INTEGER | Kind.BIGINT]:
            found[name.lower()] = (Kind.INTEGER, Kind.BIGINT)
        case [Kind.STRING]:
            found[name.lower()] = (Kind.STRING,)
    return found


def join_numbers(parts: list[Int64Array]) -> Int64Array:
    """All numbers of the parts, of which there may be none."""
    return np.concatenate([np.empty(0, np.int64), *parts])
