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

import time
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

import numpy as np

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundOr, BoundPredicate, Op
from bridge.expression.residual import references
from bridge.expression.statistics import Mask
from bridge.formats.avro.container import checked_schema
from bridge.formats.avro.skipping import require_few
from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.log_format import BlockType, Header, blocks_in_merge_order, read_logs
from bridge.formats.hudi.log_records import deletes_of
from bridge.kernel.errors import BridgeError, LimitExceeded, UnsupportedTable
from bridge.kernel.types import Kind, Semantics, Value
from bridge.table.hudi.files.base_files import PATIENCE, BaseFiles, answer_until, metadata_damage
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_table import (
    Incomplete,
    began_before,
    lacks_commits,
    list_partition,
    lost_files,
    metadata_slices,
    metadata_timeline,
    validity,
)
from bridge.table.hudi.merging.reader_properties import merges_whole_records
from bridge.table.hudi.schema.avro_schema import avro_columns
from bridge.table.hudi.timeline.commit_metadata import read_commit, read_row_counts
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
_MOST = 2_000_000
"""Entries, some 3 µs and 12 bytes each."""
_MOST_BYTES = 128 << 20
"""Of the logs, which are read as a whole."""
_NO_INDEX = -1
_Place = dict[tuple[str, str], int]
"""The slice of a partition's file group."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """Where keys are.

    Attributes:
        hashes: of all keys, in ascending order.
        places: their slices; -1 without one.
        whole: slices all of whose rows are among the keys.
    """

    hashes: Int64Array
    places: Int64Array
    whole: Mask

    def never(self, keys: list[bytes]) -> Mask:
        """The slices that hold none of the keys. Keys of one hash are taken for each other."""
        asked = np.fromiter(map(hash, keys), np.int64, len(keys))
        found = self.whole.copy()
        first, last = (np.searchsorted(self.hashes, asked, side) for side in ("left", "right"))
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            held = self.places[begin:end]
            found[held[held >= 0]] = False
        return found


class RecordIndex(BaseFiles):
    """Base files that hold no row of a key; safe for threads.

    Nothing is read before it is asked for; then all is read once, in another thread.

    Attributes:
        source: for reports.
    """

    source = PARTITION

    def __init__(
        self, view: FileSystemView, schema: str, slices: FileSlices, pool: Executor
    ) -> None:
        super().__init__(view, slices, pool)
        self._asked: tuple[Future[_Keys | None], float] | None = None
        self._types = _key_columns(view, schema)

    def columns(self, expression: BoundExpression) -> tuple[str, ...]:
        found = {r.path[0] for r in references(expression) if self._is_key(r.path, r.type.kind)}
        return tuple(sorted(found)) if found and self._keys() is not None else ()

    def never(self, expression: BoundExpression, semantics: Semantics) -> Mask | None:
        match expression:
            case BoundAnd(children):
                known = [m for c in children if (m := self.never(c, semantics)) is not None]
                return np.logical_or.reduce(known) if known else None
            case BoundOr(children):
                masks = [self.never(child, semantics) for child in children]
                known = [mask for mask in masks if mask is not None]
                return np.logical_and.reduce(known) if len(known) == len(masks) else None
            case BoundPredicate(Op.EQ | Op.NULL_SAFE_EQ | Op.IN, reference, values):
                if not reference.partition and self._is_key(reference.path, reference.type.kind):
                    keys = self._keys()
                    return None if keys is None else keys.never([_text(each) for each in values])
        return None

    def _is_key(self, path: tuple[str, ...], kind: Kind) -> bool:
        return len(path) == 1 and kind in self._types.get(path[0].lower(), ())

    def _keys(self) -> _Keys | None:
        with self._lock:
            if self._asked is None:
                read = self._pool.submit(self._read)
                self._asked = read, time.monotonic() + PATIENCE
            asked = self._asked
        return answer_until(*asked)

    def _read(self) -> _Keys | None:
        try:
            found = self._read_all()
        except (BridgeError, *DAMAGE) as error:
            if self._fail(error):
                with self._lock:
                    self._asked = None
            return None
        self.problem = None
        return found

    def _read_all(self) -> _Keys:
        view, slices = self._view, self._slices
        storage, config = view.storage, view.config
        own = metadata_timeline(storage, config)
        if (lacking := lacks_commits(view.timeline, own)) is not None:
            raise _unknown(view, lacking)
        listing = list_partition(storage, config, PARTITION)
        uris = own.uris_of([i for i in own.completed.values() if "commit" in i.action])
        written = map(read_commit, view.read_all(uris), uris)
        if (lacking := lost_files(written, PARTITION, listing, own, config.completes)) is not None:
            raise _unknown(view, lacking)
        shards = metadata_slices(listing, own, config.completes)
        if any(s.start and not began_before(s.start, own, view.timeline) for s in shards):
            raise _unknown(view, Incomplete("has a metadata table that is being compacted"))
        if (size := sum(size for each in shards for _, size in each.logs)) > _MOST_BYTES:
            raise _too_large(view, f"logs of {size:,} bytes, and at most {_MOST_BYTES:,} are read")
        places: _Place = {
            (slices.partitions[partition], group): place
            for place, (partition, group) in enumerate(
                zip(slices.partition.tolist(), slices.file_ids.to_pylist(), strict=True)
            )
        }
        valid, total = validity(own, view.timeline), 0
        hashes: list[Int64Array] = []
        found: list[Int64Array] = []
        for shard in shards:
            held: dict[bytes, int] = {}
            decode = _Decoder(config.version, places)
            if shard.base is not None:
                total += _add(held, HFile.open(storage, *shard.base), decode, _MOST - total)
            for block in blocks_in_merge_order(read_logs(storage, shard.logs), valid):
                if block.type is BlockType.DELETE:
                    for record in deletes_of(block):
                        held.pop(record.key.encode(), None)
                elif block.type is BlockType.HFILE_DATA:
                    hfile = HFile.parse(block.content, block.uri)
                    decode.schema = block.text(Header.SCHEMA)
                    total += _add(held, hfile, decode, _MOST - total)
            hashes.append(np.fromiter(map(hash, held), np.int64, len(held)))
            found.append(np.fromiter(held.values(), np.int64, len(held)))
        every, where = np.concatenate(hashes or [_none()]), np.concatenate(found or [_none()])
        counts = np.bincount(where[where >= 0], minlength=len(slices))
        whole = slices.has_base & (counts == self._rows())
        order = np.argsort(every, kind="stable")
        return _Keys(every[order], where[order], whole)

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
        self.schema = ""

    def place(self, value: bytes) -> int | None:
        """-1: of none of the slices; None: the key was deleted."""
        if value not in self._known:
            self._known[value] = self._decode(value)
        return self._known[value]

    def _decode(self, value: bytes) -> int | None:
        import fastavro

        parsed = checked_schema(self.schema).parsed
        require_few(parsed, value)
        row: Any = fastavro.schemaless_reader(BytesIO(value), parsed, None)
        entry = row.get("recordIndexMetadata")
        if row["type"] != _TYPE:
            raise metadata_damage(f"a record of {PARTITION} has the type {row['type']}")
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


def _add(held: dict[bytes, int], hfile: HFile, decode: _Decoder, most: int) -> int:
    """Adds the entries of an HFile; returns how many they are."""
    if hfile.entries > most:
        raise LimitExceeded(
            f"{PARTITION} has more than {_MOST:,} entries",
            "build an index: skipbridge index build --bloom for the key's column",
        )
    if (schema := hfile.info.get(b"schema")) is not None:
        decode.schema = schema.decode(errors="replace")
    for key, value in hfile.scan():
        place = decode.place(value)
        if place is None:
            held.pop(key, None)
        else:
            held[key] = place
    return hfile.entries


def _key_columns(view: FileSystemView, schema: str) -> dict[str, tuple[Kind, ...]]:
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


def _text(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _unknown(view: FileSystemView, why: Incomplete) -> UnsupportedTable:
    return UnsupportedTable(
        f"{view.config.base} {why.reason}", "let the table's writers keep the metadata table"
    )


def _too_large(view: FileSystemView, found: str) -> LimitExceeded:
    return LimitExceeded(
        f"{PARTITION} of {view.config.base} has {found}",
        "compact the metadata table: hoodie.metadata.compact.max.delta.commits",
    )


def _none() -> Int64Array:
    return np.empty(0, np.int64)
