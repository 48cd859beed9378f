"""Parquet's bloom filters: split blocks of 256 bits, XXH64 of PLAIN bytes.

Filters that the writer stored in a file are copied without reading data. Such a file has one filter
per row group, and they are never merged. For other files one filter is built from the values, with
the size that the file's number of distinct values needs.

A filter can be on a function of a column, such as ``lower(name)``. It then holds the function's
values, as `bridge.index.kinds.functions` computes them. A file with doubtful values has no filter.

Filters answer only =, IN and IS NOT DISTINCT FROM a value, and only if every row that equals the
value has the probed PLAIN bytes in the file. Otherwise the answer is MAYBE.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.function_catalog import columns_of
from bridge.expression.nodes import BoundExpression, BoundPredicate, BoundReference, Call, Op
from bridge.expression.statistics import Mask
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.functions import (
    column_of,
    compute,
    is_call,
    leaf_of,
    longest_text,
    parse_definition,
    parse_stored,
    reads_alike,
)
from bridge.index.kinds.kind import (
    STORED,
    Arrays,
    FileFacts,
    IndexKind,
    Ordinals,
    Row,
    is_column,
    predicates,
)
from bridge.index.kinds.payload import Payload
from bridge.index.kinds.plain import before_1900, hashable, matrix, spellings
from bridge.index.kinds.source import column_source
from bridge.index.kinds.values import by_stored
from bridge.index.kinds.xxh64 import Hashes, ascending, hash_bytes, hash_numbers
from bridge.kernel.errors import BridgeError, InvalidConfiguration
from bridge.kernel.types import Kind, Semantics, Value
from bridge.storage.port import Range

FilterWords = npt.NDArray[np.uint32]
_SALT = np.array(
    [
        0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
    ],
    np.uint32,
)  # fmt: skip
_BLOCK = 32
_WORST = 0.2
"""A filter with a higher false-positive rate is not worth its bytes."""
_LONGEST = 4096
_PROBES = 40_000_000
_BLOCK_XXHASH_PLAIN = b"\x1c\x1c\x00\x00" * 3 + b"\x00"
"""The end of a filter's header in compact Thrift: split blocks, XXH64, uncompressed."""


class Bloom(IndexKind):
    """See the module."""

    name = "bloom"
    cost = 20.0
    single_values = functions = True
    help = "Bloom filters for = and IN: COLUMN or 'lower(COLUMN)'[:fpp=0.01][:max_bytes=131072]."
    options = {"fpp": "0.01", "max_bytes": "131072"}
    schema = pa.schema(
        [
            STORED,
            pa.field("legacy", pa.bool_(), nullable=False),
            pa.field("longest", pa.int32(), nullable=False),  # bytes of a value; -1: unknown
        ]
    )
    has_body = True

    def define(self, text: str) -> KindDefinition:
        found = super().define(text)
        if _is_function(found.on):
            found = replace(found, on=parse_definition(found.on).text)
        else:
            column_source(found.on)
        try:
            fpp, most = float(found.option("fpp")), int(found.option("max_bytes"))
        except ValueError:
            fpp, most = 0.0, 0
        if not 0 < fpp <= _WORST or not _BLOCK <= most <= 2**30:
            raise InvalidConfiguration(
                f"bloom: fpp={found.option('fpp')}, max_bytes={found.option('max_bytes')}",
                f"fpp lies between 0 and {_WORST}, max_bytes between 32 and 1 GiB",
            )
        return found

    def columns(self, definition: KindDefinition) -> list[tuple[str, ...]]:
        if _is_function(definition.on):
            return [column_of(parse_stored(definition.on))]
        return super().columns(definition)

    def most_values(self, definition: KindDefinition) -> int | None:
        if _is_function(definition.on):
            return None
        return capacity(int(definition.option("max_bytes")), _WORST)

    def ahead(self, definition: KindDefinition, file: FileFacts) -> Sequence[Range]:
        if _is_function(definition.on):
            return ()
        found = column_source(definition.on).attach(file)
        return () if found is None else _stored(file, found[0]) or ()

    def gather(self, definition: KindDefinition, file: FileFacts) -> _Lifted | _Built | None:
        limits = float(definition.option("fpp")), int(definition.option("max_bytes"))
        if _is_function(definition.on):
            call = parse_stored(definition.on)
            leaf = leaf_of(call, file)
            if leaf is None:
                return None
            return _BuiltOfFunction(leaf, file.leaves[leaf], file.legacy, limits, call)
        found = column_source(definition.on).attach(file)
        if found is None or not hashable(found[1]):
            return None
        column = file.leaves[found[0]]
        lifted = lift(file, found[0])
        if lifted is not None:
            return _Lifted(column, file.legacy, lifted)
        return _Built(found[0], column, file.legacy, limits)

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        if _is_function(definition.on):
            return any(is_call(p.reference, definition.on) for p in predicates(expression))
        return super().concerns(definition, expression)

    def open(self, definition: KindDefinition, payload: Payload) -> Filters:
        if _is_function(definition.on):
            return FunctionFilters(payload, definition.on)
        return Filters(payload, definition.on)


def _is_function(on: str) -> bool:
    return "(" in on


def lift(file: FileFacts, leaf: int) -> list[bytes] | None:
    """The filters of all row groups with values; None unless each has one in the known format."""
    ranges = _stored(file, leaf)
    if ranges is None:
        return None
    try:
        found = [
            _bits(file, r, raw) for r, raw in zip(ranges, file.read_ranges(ranges), strict=True)
        ]
    except BridgeError:
        return None
    return None if any(bits is None for bits in found) else [bits for bits in found if bits]


def _stored(file: FileFacts, leaf: int) -> list[Range] | None:
    """Where the filters of all row groups with values are; None unless each has one."""
    if file.groups is None:
        return None
    ranges: list[Range] = []
    for rows, chunks in file.groups:
        chunk = chunks[leaf]
        if chunk.nulls == rows and chunk.lower is None and chunk.old_lower is None:
            continue
        start, length = chunk.bloom
        if start <= 0 or start >= file.size:
            return None
        ranges.append((start, min(file.size, start + (length or 64))))
    return ranges


def _bits(file: FileFacts, place: tuple[int, int], raw: bytes) -> bytes | None:
    """The bits after the header; None if the format is unknown."""
    if raw[:1] != b"\x15":
        return None
    size, at, shift = 0, 1, 0
    while at < len(raw) and at < 7:
        size |= (raw[at] & 127) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 128:
            break
    size >>= 1  # zigzag of a positive number
    if raw[at : at + 13] != _BLOCK_XXHASH_PLAIN or size <= 0 or size % _BLOCK:
        return None
    begin = at + 13
    if begin + size <= len(raw):
        return raw[begin : begin + size]
    start = place[0] + begin
    return file.read_ranges([(start, start + size)])[0] if start + size <= file.size else None


class _Lifted:
    """A file whose writer stored filters."""

    leaves: tuple[int, ...] = ()

    def __init__(self, column: PhysicalColumn, legacy: bool, filters: list[bytes]) -> None:
        self._key, self._legacy, self._filters = column.key(), legacy, filters

    def update(self, arrays: Arrays) -> None:
        raise AssertionError("nothing was asked for")

    def finish(self) -> Iterable[Row]:
        row = {"stored": self._key, "legacy": self._legacy, "longest": -1}
        # A file without values gets an empty filter, so that every probe misses.
        return [{**row, "body": bits} for bits in self._filters or [bytes(_BLOCK)]]


class _Built:
    """A filter built from the hashes of one file's values."""

    def __init__(
        self, leaf: int, column: PhysicalColumn, legacy: bool, limits: tuple[float, int]
    ) -> None:
        self.leaves = (leaf,)
        self._column, self._legacy = column, legacy
        self._fpp, self._most = limits
        self._capacity = capacity(self._most, _WORST)
        self._hashes = np.empty(0, np.uint64)
        self._longest = 0
        self._over = False

    def update(self, arrays: Arrays) -> None:
        if self._over:
            return
        if self._column.type.holds == "bytes":
            found = longest_text(self._column, arrays.each_value(self.leaves[0]))
            self._longest = max(self._longest, found)
        fresh = None if self._longest > _LONGEST else self._fresh(arrays)
        if fresh is not None:
            if len(self._hashes):
                fresh = ascending(np.concatenate([self._hashes, fresh]))
            self._hashes = fresh
        self._over = fresh is None or len(fresh) > self._capacity

    def _fresh(self, arrays: Arrays) -> Hashes | None:
        return arrays.hashes(self.leaves[0], self._column.type)

    def finish(self) -> Iterable[Row]:
        if self._over:
            return
        size = min(optimal_bytes(len(self._hashes), self._fpp), self._most // _BLOCK * _BLOCK)
        yield {
            "stored": self._column.key(),
            "legacy": self._legacy,
            "longest": self._longest,
            "body": build(self._hashes, size),
        }


class _BuiltOfFunction(_Built):
    """A filter of a function's values: numbers as 64 bits, text as its bytes."""

    def __init__(
        self, leaf: int, column: PhysicalColumn, legacy: bool, limits: tuple[float, int], call: Call
    ) -> None:
        super().__init__(leaf, column, legacy, limits)
        self._call = call

    def _fresh(self, arrays: Arrays) -> Hashes | None:
        values = arrays.each_value(self.leaves[0])
        found = compute(self._call, self._column, values, self._legacy)
        if found is None:
            return None
        results, _ = found
        if isinstance(results, np.ndarray):
            return ascending(hash_numbers(results.astype(np.int64)))
        return ascending(hash_bytes(results.drop_null()))


def optimal_bytes(count: int, fpp: float) -> int:
    """The size in bytes of a filter for ``count`` values; a multiple of the block size."""
    bits = -8.0 * count / math.log1p(-(fpp ** (1 / 8)))
    return max(1, math.ceil(bits / (8 * _BLOCK))) * _BLOCK


def capacity(size: int, fpp: float) -> int:
    """How many values a filter of ``size`` bytes holds at this false-positive rate."""
    return int(-size * 8 * math.log1p(-(fpp ** (1 / 8))) / 8)


def build(values: npt.NDArray[np.uint64], size: int) -> bytes:
    """Builds a filter from ascending hashes, so that the hashes of a block are adjacent."""
    blocks = size // _BLOCK
    words = np.zeros((blocks, len(_SALT)), "<u4")
    block = _block(values, blocks)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    key = values.astype(np.uint32)
    for word, salt in enumerate(_SALT if len(values) else ()):
        bits = np.uint32(1) << ((key * salt) >> np.uint32(27))
        words[block[first], word] = np.bitwise_or.reduceat(bits, first)
    return words.tobytes()


def _block(values: npt.NDArray[np.uint64], blocks: int) -> npt.NDArray[np.int64]:
    return (((values >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)).astype(np.int64)


def probe(
    words: FilterWords, starts: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64], value: int
) -> Mask:
    """Which filters may hold a hash.

    Args:
        words: the words of all filters, one block per row.
        starts: the first block of each filter.
        blocks: the number of blocks of each filter.
    """
    high, low = value >> 32, value & 0xFFFFFFFF
    block = starts + ((high * blocks) >> 32)
    mask = np.uint32(1) << ((np.uint32(low) * _SALT) >> np.uint32(27))
    found: Mask = ((words[block] & mask) == mask).all(axis=1)
    return found


class Filters:
    """The filters of one column in all files; see `KindStatistics`."""

    def __init__(self, payload: Payload, on: str) -> None:
        self._payload, self._on = payload, on
        self._first = np.searchsorted(payload.ordinal, np.arange(payload.num_files))
        after = np.searchsorted(payload.ordinal, np.arange(payload.num_files), "right")
        self._count = after - self._first
        self._stored = np.full(len(payload.ordinal), -1, np.int32)
        self._types: list[PhysicalType] = []
        for stored, rows in by_stored(payload):
            self._stored[rows] = len(self._types)
            self._types.append(stored)
        legacy = payload.rows["legacy"].to_numpy()
        self._legacy = np.asarray(legacy, np.bool_)
        self._longest = payload.rows["longest"].to_numpy()

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        if not isinstance(expression, BoundPredicate):
            return None
        reference = expression.reference
        if expression.op not in (Op.EQ, Op.IN, Op.NULL_SAFE_EQ):
            return None
        if not self._answers(reference):
            return None
        counts = self._count[ordinals]
        if len(expression.values) * int(counts.sum()) > _PROBES:
            return None
        # The filters of the files, and the file of each filter.
        file = np.repeat(np.arange(len(ordinals)), counts)
        within = np.arange(len(file)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._first[ordinals][file] + within
        hit = np.ones(len(rows), np.bool_)
        for number, stored in enumerate(self._types):
            mine = np.flatnonzero(self._stored[rows] == number)
            if len(mine):
                hit[mine] = self._hits(stored, reference, expression.values, rows[mine], semantics)
        contained = np.zeros(len(ordinals), np.bool_)
        contained[file[hit]] = True
        known: Mask = counts > 0
        return known & ~contained

    def _answers(self, reference: BoundReference) -> bool:
        return is_column(reference, self._on)

    def _hits(
        self,
        stored: PhysicalType,
        reference: BoundReference,
        values: Sequence[Value],
        rows: Ordinals,
        semantics: Semantics,
    ) -> Mask:
        """The filters of one stored type that may hold one of the values."""
        target = reference.type
        hit = np.zeros(len(rows), np.bool_)
        spelled: list[bytes] = []
        for value in values:
            found = spellings(stored, target, semantics, value)
            if found is None:
                return ~hit
            spelled += found
            if before_1900(stored, value):
                hit |= self._legacy[rows]
            if target.kind is Kind.VARCHAR and _characters(value) >= target.length:
                # Engines truncate longer values to exactly the type's length.
                longest = self._longest[rows]
                hit |= (longest < 0) | (longest > target.length)
        return self._probed(hit, spelled, rows)

    def _probed(self, hit: Mask, spelled: list[bytes], rows: Ordinals) -> Mask:
        """Adds to ``hit`` the filters that may hold one of the encoded values."""
        left = np.flatnonzero(~hit)
        sought = matrix(spelled).tolist()
        for mine, data, starts, lengths in self._payload.bodies(rows[left]):
            words = data[: len(data) // _BLOCK * _BLOCK].view(np.uint32).reshape(-1, 8)
            position, block, blocks = left[mine], starts // _BLOCK, lengths // _BLOCK
            for value in sought:
                if not len(position):
                    break
                held = probe(words, block, blocks, value)
                hit[position[held]] = True
                position, block, blocks = position[~held], block[~held], blocks[~held]
        return hit


class FunctionFilters(Filters):
    """The filters of one function."""

    def _answers(self, reference: BoundReference) -> bool:
        return is_call(reference, self._on)

    def _hits(
        self,
        stored: PhysicalType,
        reference: BoundReference,
        values: Sequence[Value],
        rows: Ordinals,
        semantics: Semantics,
    ) -> Mask:
        (column,) = columns_of(reference)
        hit = np.zeros(len(rows), np.bool_)
        if not reads_alike(stored, column.type, semantics):
            return ~hit
        if column.type.kind is Kind.VARCHAR:  # engines truncate longer values
            hit |= self._longest[rows] > column.type.length
        numbers = reference.type.kind not in (Kind.STRING, Kind.VARCHAR)
        if numbers and not all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in values):
            return ~hit
        spelled = [v if isinstance(v, bytes) else struct.pack("<q", v) for v in values]
        return self._probed(hit, spelled, rows)


def _characters(value: Value) -> int:
    return len(value.decode("utf-8", "replace")) if isinstance(value, bytes) else 0


KIND = Bloom()
