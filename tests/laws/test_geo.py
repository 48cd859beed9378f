"""The law of geo cells: points, boxes and circles against the same sums over all rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.index.kinds import evaluate_indexes
from bridge.kernel.types import DOUBLE, FLOAT, HIVE, TRINO, Field
from skipbridge_geo.kind import KIND
from tests.support.lake import Lake
from tests.tiers import examples

FILES, PREDICATES = 250, 220
TABLES = examples(4, 4, 20)
asked: Counter[str] = Counter()


def distance(latitude: Any, longitude: Any, y: float, x: float) -> Any:
    """Kilometres, by the haversine formula."""
    a, b = np.radians(latitude), np.radians(y)
    half = np.sin((a - b) / 2) ** 2
    half += np.cos(a) * np.cos(b) * np.sin(np.radians(longitude - x) / 2) ** 2
    return 2 * 6371.01 * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def _file(rng: random.Random, single: bool) -> tuple[Any, Any]:
    """Points around a place, some at the edges of the world."""
    where = (rng.uniform(-90, 90), rng.choice((rng.uniform(-180, 180), 179.9, -179.9)))
    spread = rng.choice((0.001, 0.5, 20.0))
    count = rng.choice((1, 3, 40))
    latitude = np.clip([rng.gauss(where[0], spread) for _ in range(count)], -90, 90)
    longitude = (np.array([rng.gauss(where[1], spread) for _ in range(count)]) + 540) % 360 - 180
    if rng.random() < 0.1:
        latitude[0], longitude[0] = rng.choice((90.0, -90.0, -0.0)), rng.choice((180.0, -180.0))
    if rng.random() < 0.05:
        latitude[0] = rng.choice((np.nan, 91.0))
    if single:
        return latitude.astype(np.float32), longitude.astype(np.float32)
    return latitude, longitude


@pytest.mark.parametrize("number", range(TABLES))
def test_boxes_and_circles_keep_the_law(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    single = number % 3 == 2
    semantics = (TRINO, HIVE)[number % 2]
    lake = Lake(tmp_path, recursive=True)
    files = [_file(rng, single) for _ in range(FILES)]
    for i, (latitude, longitude) in enumerate(files):
        nulls = np.array([rng.random() < 0.05 for _ in latitude])
        columns = {"Lat": pa.array(latitude, mask=nulls), "lon": pa.array(longitude)}
        files[i] = (
            (np.where(nulls, np.nan, latitude), longitude) if semantics is TRINO else files[i]
        )
        if semantics is HIVE:  # where NaN is the greatest, NULL is left out of the sums
            columns["Lat"] = pa.array(latitude)
        lake.write(f"f{i:03d}", columns, row_group_size=rng.choice((1, 100)))
    cells = rng.choice((1, 4, 64))
    lake.build(settings=lambda held: held.adding([KIND.define(f"lat,lon:cells={cells}")]))
    serving = lake.snapshot()
    (opened,) = serving.kinds
    kind = FLOAT if single else DOUBLE
    fields = [Field("Lat", kind), Field("lon", kind)]
    owner = np.repeat(np.arange(FILES), [len(f[0]) for f in files])
    latitude = np.concatenate([f[0] for f in files]).astype(np.float64)
    longitude = np.concatenate([f[1] for f in files]).astype(np.float64)
    everything = np.arange(FILES)
    for _ in range(PREDICATES):
        text, rows = _ask(rng, latitude, longitude, largest=semantics is HIVE)
        bound = bind(parse_where(text)[0], fields, (), semantics)
        truth = np.zeros(FILES, np.bool_)
        truth[owner[rows]] = True

        def ask(expression: Any, ordinals: Any) -> Any:
            return opened.never(expression, ordinals, semantics)

        never = evaluate_indexes.never(bound, everything, [ask])
        assert opened.problem is None
        wrong = np.flatnonzero(never & truth)
        assert not len(wrong), (text, files[wrong[0]])
        asked["pairs"] += FILES
        asked["never"] += int(never.sum())


def _ask(rng: random.Random, latitude: Any, longitude: Any, *, largest: bool) -> tuple[str, Any]:
    at = rng.randrange(len(latitude))
    y, x = float(np.nan_to_num(latitude[at])), float(longitude[at])
    y = max(-90.0, min(90.0, y))
    if rng.random() < 0.5:
        limit = rng.choice((0.0, 0.1, 50.0, 3000.0, 10_010.0, 25_000.0))
        text = f"great_circle_distance(lat, lon, {y!r}, {x!r}) <= {limit!r}"
        return text, distance(latitude, longitude, y, x) <= limit
    high, wide = rng.choice((0.0, 0.01, 5.0)), rng.choice((0.0, 0.01, 5.0))
    south, north, west, east = y - high, y + high, x - wide, x + wide
    greater = np.isnan(latitude) if largest else np.zeros(len(latitude), np.bool_)
    if rng.random() < 0.2:
        text = f"lat >= {south!r} AND lon <= {east!r}"
        return text, ((latitude >= south) | greater) & (longitude <= east)
    text = f"lat BETWEEN {south!r} AND {north!r} AND lon BETWEEN {west!r} AND {east!r}"
    rows = (latitude >= south) & (latitude <= north) & (longitude >= west) & (longitude <= east)
    return text, rows


def test_it_was_asked_often_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["pairs"] >= 200_000
    assert asked["never"] > asked["pairs"] // 2
