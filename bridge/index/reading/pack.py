"""Packs: index columns on local disk, as consecutive Arrow messages.

::

    <id>.json           the range of each column, and values that are the same in all files
    <id>-<form>.arrow   record batches as encapsulated IPC messages, one per column

A form is a set of array names and types. A value that is the same in all files is a number in the
JSON, not an array. A column is found by its offset, so only its own bytes are read.

The JSON ends with its own CRC-32 and holds one of each column, which is checked when the column is
first read, unless it is long and without text: of such columns few pages are read.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.quantised_bounds import QuantisedBounds
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.local_disk.mapped_file import MappedFile

Int64 = npt.NDArray[np.int64]
_ALIGNED = 64
_INT32_MAX = 2**31 - 1
CELLS, EDGES = "\0cells", "\0edges"
"""Suffixes of a column's key: its quantised bounds, and the edges of the cells."""
_DTYPES = {"flags": np.uint8, "nulls": np.int64, "nans": np.int64}
CHECKED = 2 << 20
"""Bytes of numbers that are checked: those of about 100,000 files."""


@dataclass(frozen=True, slots=True)
class PackedRange:
    """The bytes of a column in a pack, and how to read them.

    Attributes:
        constants: ``flags``, ``nulls`` and ``nans`` where they are the same in all files.
        ascending: lower and upper are numbers, each in ascending order over the files.
        check: CRC-32 of the bytes.
    """

    file: str
    schema: pa.Schema
    offset: int
    length: int
    count: int
    every: int
    constants: Mapping[str, int]
    ascending: bool
    check: int

    @property
    def is_checked(self) -> bool:
        """Whether the check is made, for which all bytes are read."""
        # Arrow would follow damaged offsets of text out of the map, and end the process.
        return (
            self.length <= CHECKED
            or pa.binary() in self.schema.types
            or (pa.large_binary() in self.schema.types)
        )


class Loaded:
    """A column's arrays, one slot per file. Each array is made on request.

    Attributes:
        batch: the stored arrays.
        count: number of files.
        every: the bits that are set in the flags of all files.
        ascending: bounds are numbers, lower and upper each in ascending order.
    """

    __slots__ = ("_file", "_place", "ascending", "batch", "count", "every")

    def __init__(self, place: PackedRange, buffer: pa.Buffer, file: MappedFile | None) -> None:
        """``buffer``: the bytes of the pack's file; ``file``: the mapped file, if it is mapped.

        Errors:
            ValueError, pa.ArrowException: the bytes are damaged.
        """
        message = buffer.slice(place.offset, place.length)
        if place.is_checked and zlib.crc32(message) != place.check:
            raise ValueError(f"{place.file} does not match its checksum")
        self.batch = pa.ipc.read_record_batch(message, place.schema)
        self.count, self.every, self._place = place.count, place.every, place
        self.ascending = place.ascending
        self._file = file

    @property
    def lower(self) -> pa.Array | None:
        """int64, float64, decimal128 or large_binary; None where the type has no bounds."""
        return self._bound("lower")

    @property
    def upper(self) -> pa.Array | None:
        return self._bound("upper")

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """See `bridge.index.reading.local_cache`."""
        flags: npt.NDArray[np.uint8] = self._numbers("flags", 0)
        return flags

    @property
    def nulls(self) -> Int64:
        """-1 where unknown."""
        nulls: Int64 = self._numbers("nulls", -1)
        return nulls

    @property
    def nans(self) -> Int64:
        """-1 where unknown; meaningless for types without NaN."""
        nans: Int64 = self._numbers("nans", -1)
        return nans

    def expect(self, places: Int64 | None) -> None:
        """Starts to read the numeric bounds of some files (None: all files), without waiting.

        Only the first call has an effect: later ones would mostly request pages in memory.
        """
        file, self._file = self._file, None
        if file is None:
            return
        if places is None:
            file.will_need(self._place.offset, self._place.offset + self._place.length)
            return
        for name in ("lower", "upper"):
            array = self._bound(name)
            if array is not None and pa.types.is_primitive(array.type):
                _, values = array.buffers()
                file.will_need_items(values, places * (array.type.bit_width // 8))

    def _bound(self, name: str) -> pa.Array | None:
        at = self._place.schema.get_field_index(name)
        if at < 0:
            return None
        array = self.batch.column(at)
        return array.cast(pa.large_binary()) if array.type == pa.binary() else array

    def _numbers(self, name: str, unknown: int) -> Any:
        at = self._place.schema.get_field_index(name)
        if at < 0:
            return _constant(name, self._place.constants.get(name, unknown), self.count)
        array = self.batch.column(at).to_numpy()
        return array if array.dtype == _DTYPES[name] else array.astype(_DTYPES[name])


@lru_cache(256)
def _constant(name: str, value: int, count: int) -> Any:
    """One number as an array of ``count`` slots, without copies."""
    return np.broadcast_to(np.array(value, _DTYPES[name]), count)


def read_cells(rounded: Loaded, edges: Loaded) -> QuantisedBounds:
    """Reads what `PackWriter.add_cells` wrote."""
    prefix = edges.batch.column("prefix")[0].as_py() if edges.batch.num_columns > 1 else None
    lower, upper = (rounded.batch.column(name).to_numpy() for name in ("lower", "upper"))
    return QuantisedBounds(lower, upper, edges.batch.column("edges").to_numpy(), prefix)


class PackWriter:
    """Writes one pack. Readers see it after `finish` has returned."""

    def __init__(self, directory: Path, believed: str) -> None:
        """``believed``: names what its columns depend on beside the generation."""
        self._directory, self._believed = directory, believed
        self._name = uuid.uuid4().hex
        self._stack = contextlib.ExitStack()
        self._files: dict[str, Any] = {}
        self._schemas: dict[str, str] = {}
        self._columns: list[list[Any]] = []

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, key: str, arrays: Mapping[str, pa.Array], every: int, count: int) -> None:
        """Adds a column: ``flags``, counts, and ``lower`` and ``upper`` if the type has bounds."""
        kept: dict[str, pa.Array] = {}
        constants: dict[str, int] = {}
        for name, array in arrays.items():
            if name in _DTYPES:
                low, high = pc.min_max(array).as_py().values() if count else (0, 0)
                if low == high:
                    constants[name] = low
                    continue
                if high <= _INT32_MAX and name != "flags":
                    array = array.cast(pa.int32())
            elif array.type == pa.large_binary() and array.nbytes < _INT32_MAX:
                array = array.cast(pa.binary())
            kept[name] = array
        batch = pa.record_batch(kept)
        form = "-".join([self._name, *(f"{f.name[0]}{f.type}" for f in batch.schema)])
        form = "".join(c if c.isalnum() or c == "-" else "_" for c in form) + ".arrow"
        if form not in self._files:
            path = self._directory / form
            self._files[form] = self._stack.enter_context(path.open("wb"))
            self._schemas[form] = base64.b64encode(batch.schema.serialize()).decode()
        file = self._files[form]
        offset = file.tell()
        raw = batch.serialize()
        file.write(raw)
        file.write(bytes(-raw.size % _ALIGNED))
        numbers = [offset, raw.size, count, every, constants, ascend(arrays), zlib.crc32(raw)]
        self._columns.append([key, form, *numbers])

    def add_cells(self, key: str, cells: QuantisedBounds) -> None:
        """Adds the quantised bounds of a column."""
        rounded = {"lower": pa.array(cells.lower), "upper": pa.array(cells.upper)}
        self.add(key + CELLS, rounded, 0, len(cells.lower))
        edges = {"edges": pa.array(cells.edges)}
        if cells.prefix is not None:
            rest = [None] * (len(cells.edges) - 1)
            edges["prefix"] = pa.array([cells.prefix, *rest], pa.binary())
        self.add(key + EDGES, edges, 0, len(cells.edges))

    def finish(self) -> Path:
        """Makes the pack visible and returns the path of its JSON."""
        self._stack.close()
        for form in self._schemas:
            sync(self._directory / form)
        sizes = {form: (self._directory / form).stat().st_size for form in self._schemas}
        aside = self._directory / f".{self._name}.tmp"
        body = {"sizes": sizes, "schemas": self._schemas, "columns": self._columns}
        body["believed"] = self._believed
        aside.write_bytes(seal_json(body))
        sync(aside)
        return aside.rename(self._directory / f"{self._name}.json")


def seal_json(body: Mapping[str, Any]) -> bytes:
    """JSON with its CRC-32."""
    raw = json.dumps(body).encode()
    return b"%s\n%08x" % (raw, zlib.crc32(raw))


def unseal_json(raw: bytes) -> dict[str, Any]:
    """What `seal_json` wrote. Errors: ValueError: it is damaged."""
    text, _, check = raw.rpartition(b"\n")
    if int(check, 16) != zlib.crc32(text):
        raise ValueError("it does not match its checksum")
    found: dict[str, Any] = json.loads(text)
    return found


def is_sound(array: pa.Array) -> bool:
    """Whether all offsets of text and lists lie within the values that they point to."""
    if pa.types.is_large_list(array.type):
        return _ascends(array, len(array.values)) and is_sound(array.values)
    if pa.types.is_large_string(array.type):
        data = array.buffers()[2]
        return _ascends(array, 0 if data is None else data.size)
    return True


def _ascends(array: pa.Array, size: int) -> bool:
    raw = array.buffers()[1]
    if raw is None or not len(array):
        return not len(array)
    offsets = np.frombuffer(raw, np.int64)[array.offset : array.offset + len(array) + 1]
    inside = len(offsets) == len(array) + 1 and offsets[0] >= 0 and offsets[-1] <= size
    return bool(inside and (offsets[1:] >= offsets[:-1]).all())


def ascend(arrays: Mapping[str, pa.Array]) -> bool:
    """Whether bounds are numbers, lower and upper each in ascending order over the files."""
    for name in ("lower", "upper"):
        array = arrays.get(name)
        if array is None or not (pa.types.is_int64(array.type) or pa.types.is_float64(array.type)):
            return False
        numbers = array.to_numpy()
        if (numbers[1:] < numbers[:-1]).any():
            return False
    return True


def read_pack(path: Path, believed: str) -> dict[str, PackedRange]:
    """The columns of a pack, by key; empty if one of its files is missing or has another size.

    Empty too if it was written under another ``believed``: a process of another version may have
    written into the directory.
    """
    try:
        body = unseal_json(path.read_bytes())
        if body["believed"] != believed:
            return {}
        schemas = {}
        for form, size in body["sizes"].items():
            if (path.parent / form).stat().st_size != size:
                return {}
            schema = pa.py_buffer(base64.b64decode(body["schemas"][form]))
            schemas[form] = pa.ipc.read_schema(schema)
        return {
            key: PackedRange(str(path.parent / form), schemas[form], *numbers)
            for key, form, *numbers in body["columns"]
        }
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        refuse_exhausted(error)
        return {}


def sync(path: Path) -> None:
    """Makes a file's bytes durable.

    Otherwise a renamed file could hold zeros after a power failure, and they would be read as
    bounds.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())


def pack_of(file: str) -> Path:
    """The JSON of the pack that a columns file belongs to."""
    path = Path(file)
    return path.with_name(path.name.partition("-")[0] + ".json")


def pack_files(path: Path) -> list[Path]:
    """All files of a pack, the JSON first."""
    return [path, *path.parent.glob(f"{path.stem}-*")]
