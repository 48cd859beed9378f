"""The quad-tree cells of a file's points, from a latitude and a longitude column.

A cell at level 16 is a pair of 16-bit numbers from evenly divided longitude and latitude. A file
with too many cells keeps coarser ones. The division is monotone, so a point in a box is in a cell
between the cells of the box's corners. A file without such a cell is NEVER.

Answers conjunctions that bound both columns, and ``great_circle_distance(lat, lon, y, x) < km`` by
the box around the circle. A file with NaN or with a point outside -90..90, -180..180 has no cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Literal,
    Op,
)
from bridge.expression.statistics import Mask
from bridge.index.kinds.definition import KindDefinition, column_path, column_texts
from bridge.index.kinds.kind import (
    Arrays,
    FileFacts,
    IndexKind,
    Ordinals,
    Row,
    is_column,
    predicates,
)
from bridge.index.kinds.payload import Payload
from bridge.index.kinds.source import column_source
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.types import Semantics, whole_number

Cells = npt.NDArray[np.int64]
_LEVELS = 16
_SIDE = 1 << _LEVELS
_LEAST_RADIUS_KM = 6300.0
"""Less than any engine's earth radius, so that circles are at least as large as theirs."""


class Geo(IndexKind):
    """The kind ``geo``."""

    name = "geo"
    cost = 4.0
    help = "Quad-tree cells of points, for boxes and distances: LATITUDE,LONGITUDE[:cells=64]."
    options = {"cells": "64"}
    schema = pa.schema(
        [
            pa.field("level", pa.int8(), nullable=False),
            pa.field("cells", pa.large_list(pa.uint32()), nullable=False),
        ]
    )

    def define(self, text: str) -> KindDefinition:
        found = super().define(text)
        columns = column_texts(found.on)
        if len(columns) != 2 or not all(columns) or not whole_number(found.option("cells")):
            raise InvalidConfiguration(
                f"geo: {text!r} is not a latitude and a longitude",
                "write lat,lon or lat,lon:cells=64",
            )
        for column in columns:
            column_source(column)
        return KindDefinition(found.kind, ",".join(columns), found.options)

    def columns(self, definition: KindDefinition) -> list[tuple[str, ...]]:
        return [column_path(column) for column in column_texts(definition.on)]

    def gather(self, definition: KindDefinition, file: FileFacts) -> _Gathering | None:
        leaves = []
        for path in self.columns(definition):
            leaf = file.leaf(path)
            if leaf is None or not file.leaves[leaf].type.is_floating:
                return None
            leaves.append(leaf)
        return _Gathering((leaves[0], leaves[1]), int(definition.option("cells")))

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        wanted = _names(definition)
        seen = set()
        for predicate in predicates(expression):
            if _distance_of(predicate, wanted) is not None:
                return True
            seen |= {name for name in wanted if is_column(predicate.reference, name)}
        return seen == set(wanted)

    def open(self, definition: KindDefinition, payload: Payload) -> CellsOfFiles:
        return CellsOfFiles(payload, _names(definition))


def _names(definition: KindDefinition) -> tuple[str, str]:
    latitude, longitude = column_texts(definition.on.lower())
    return latitude, longitude


class _Gathering:
    def __init__(self, leaves: tuple[int, int], limit: int) -> None:
        self.leaves = leaves
        self._limit = limit
        self._cells: Cells = np.empty(0, np.int64)
        self._level = _LEVELS
        self._over = False

    def update(self, arrays: Arrays) -> None:
        if self._over:
            return
        # A row with a NULL coordinate satisfies no condition on both columns.
        known = pc.and_(arrays[self.leaves[0]].is_valid(), arrays[self.leaves[1]].is_valid())
        latitude, longitude = (
            arrays[leaf].filter(known).to_numpy().astype(np.float64) for leaf in self.leaves
        )
        inside = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
        if not inside.all():
            self._over = True
            return
        rows, columns = latitude_cell(latitude), longitude_cell(longitude)
        fresh = np.unique(_interleaved(columns, rows) >> (2 * (_LEVELS - self._level)))
        self._cells = np.union1d(self._cells, fresh)
        while len(self._cells) > self._limit and self._level:
            self._cells = np.unique(self._cells >> 2)
            self._level -= 1

    def finish(self) -> Iterable[Row]:
        if not self._over:
            yield {"level": self._level, "cells": self._cells.astype(np.uint32)}


def latitude_cell(degrees: npt.NDArray[np.float64]) -> Cells:
    """The row of the cell at level 16. Monotone."""
    return _divided((degrees + 90.0) / 180.0)


def longitude_cell(degrees: npt.NDArray[np.float64]) -> Cells:
    """The column of the cell at level 16. Monotone."""
    return _divided((degrees + 180.0) / 360.0)


def _divided(share: npt.NDArray[np.float64]) -> Cells:
    return np.clip(np.floor(share * _SIDE), 0, _SIDE - 1).astype(np.int64)


def _interleaved(columns: Cells, rows: Cells) -> Cells:
    """Interleaves the bits, so that the four children of a cell share all but the last two."""
    return _spread(columns) | (_spread(rows) << 1)


def _spread(values: Cells) -> Cells:
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        values = (values | (values << shift)) & mask
    return values


def _gathered(values: Cells) -> Cells:
    values = values & 0x55555555
    for shift, mask in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
        values = (values | (values >> shift)) & mask
    return values


@dataclass(frozen=True, slots=True)
class Box:
    """A box in degrees, both ends inclusive. Open ends are infinite."""

    south: float = -math.inf
    north: float = math.inf
    west: float = -math.inf
    east: float = math.inf


class CellsOfFiles:
    """The cells of one definition in all files; see `KindStatistics`."""

    def __init__(self, payload: Payload, names: tuple[str, str]) -> None:
        self._names = names
        count = payload.num_files
        self._first = np.zeros(count, np.int64)
        self._many = np.zeros(count, np.int64)
        self._known = np.zeros(count, np.bool_)
        self._level = np.zeros(count, np.int64)
        if not payload.rows.num_rows:
            self._columns = self._rows = np.empty(0, np.int64)
            return
        lists = payload.rows["cells"].combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
        self._first[payload.ordinal] = np.cumsum(lengths) - lengths
        self._many[payload.ordinal] = lengths
        self._known[payload.ordinal] = True
        self._level[payload.ordinal] = payload.rows["level"].to_numpy()
        flat = lists.flatten().to_numpy().astype(np.int64)
        self._columns, self._rows = _gathered(flat), _gathered(flat >> 1)

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        boxes = self._boxes(expression)
        if boxes is None:
            return None
        hit = np.zeros(len(ordinals), np.bool_)
        many = self._many[ordinals]
        owner = np.repeat(np.arange(len(ordinals)), many)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
        cell = self._first[ordinals][owner] + within
        columns, rows = self._columns[cell], self._rows[cell]
        coarser = _LEVELS - self._level[ordinals][owner]
        for box in boxes:
            west, east = longitude_cell(np.clip(np.array([box.west, box.east]), -180.0, 180.0))
            south, north = latitude_cell(np.clip(np.array([box.south, box.north]), -90.0, 90.0))
            inside = (columns >= west >> coarser) & (columns <= east >> coarser)
            inside &= (rows >= south >> coarser) & (rows <= north >> coarser)
            hit[owner[inside]] = True
        known: Mask = self._known[ordinals]
        return known & ~hit

    def _boxes(self, expression: BoundExpression) -> list[Box] | None:
        """Boxes that cover all satisfying points; None if not both columns are bounded."""
        if isinstance(expression, BoundPredicate):
            found = _distance_of(expression, self._names)
            return None if found is None else around(*found)
        if not isinstance(expression, BoundAnd):
            return None
        latitude, longitude = (_span(expression.children, name) for name in self._names)
        if latitude is None or longitude is None:
            return None
        return [Box(*latitude, *longitude)]


def _span(parts: tuple[BoundExpression, ...], name: str) -> tuple[float, float] | None:
    """The range that a conjunction implies for a column; None if there is none."""
    low, high, bounded = -math.inf, math.inf, False
    for part in parts:
        if not isinstance(part, BoundPredicate) or not is_column(part.reference, name):
            continue
        values = [float(v) for v in part.values if not isinstance(v, bytes)]
        match part.op:
            case Op.GE | Op.GT:
                low = max(low, values[0])
            case Op.LE | Op.LT:
                high = min(high, values[0])
            case Op.EQ | Op.IN | Op.NULL_SAFE_EQ:
                low, high = max(low, min(values)), min(high, max(values))
            case _:
                continue
        if not part.reference.type.is_floating:
            return None
        bounded = True
    return (low, high) if bounded else None


def _distance_of(
    predicate: BoundPredicate, names: tuple[str, str]
) -> tuple[float, float, float] | None:
    """Latitude, longitude and kilometres of a distance predicate; None for other predicates."""
    call = predicate.reference
    if not isinstance(call, BoundCall) or call.function != "great_circle_distance":
        return None
    columns = [a for a in call.arguments if isinstance(a, BoundReference)]
    point = [a.value for a in call.arguments if isinstance(a, Literal)]
    if not all(map(is_column, columns, names)) or predicate.op not in (Op.LT, Op.LE, Op.EQ):
        return None
    latitude, longitude, limit = (*point, predicate.values[0])
    if any(v is None or isinstance(v, bytes) for v in (latitude, longitude, limit)):
        return None
    return float(latitude or 0), float(longitude or 0), float(limit)


def around(latitude: float, longitude: float, kilometres: float) -> list[Box]:
    """Boxes that together cover all points within a distance."""
    if not (abs(latitude) <= 90 and abs(longitude) <= 180 and math.isfinite(kilometres)):
        return [Box()]
    angle = max(kilometres, 0.0) / _LEAST_RADIUS_KM + 1e-9
    reach = math.degrees(angle)
    south, north = latitude - reach, latitude + reach
    if south <= -90 or north >= 90 or angle >= math.pi / 2:
        return [Box(max(south, -90.0), min(north, 90.0))]  # includes a pole: all longitudes
    wide = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(latitude)))))
    wide += 1e-6
    west, east = longitude - wide, longitude + wide
    boxes = [Box(south, north, max(west, -180.0), min(east, 180.0))]
    if west < -180:
        boxes.append(Box(south, north, west + 360.0, 180.0))
    if east > 180:
        boxes.append(Box(south, north, -180.0, east - 360.0))
    return boxes


KIND = Geo()
