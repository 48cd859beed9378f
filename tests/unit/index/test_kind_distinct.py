from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.index.kinds.distinct import KIND
from tests.support.lake import Lake


@pytest.fixture
def lake_with_sketches(lake: Lake) -> Lake:
    for i in range(8):
        data = {
            "few": [f"k{j % 7}" for j in range(5000)],
            "many": pa.array(range(i * 5000, i * 5000 + 5000)),
            "shared": [float(j) for j in range(5000)],
            "none": pa.array([None] * 5000, pa.int32()),
            "st": pa.array([{"a": j % 100} for j in range(5000)]),
            "yes": [True] * 5000,
        }
        lake.write(f"f{i}", data)
    lake.build(settings=lambda held: held.adding([KIND.define("*")]))
    return lake


def test_estimates(lake_with_sketches: Lake) -> None:
    serving = lake_with_sketches.snapshot()
    assert serving.distinct_values("few") == 7
    assert serving.distinct_values("FEW") == 7
    assert serving.distinct_values(("st", "a")) == 100
    assert serving.distinct_values("none") == 0
    assert serving.distinct_values("yes") is None  # nothing is hashed of booleans
    assert serving.distinct_values("nothing") is None
    many, shared = serving.distinct_values("many"), serving.distinct_values("shared")
    assert many is not None and abs(many / 40_000 - 1) < 0.12
    assert shared is not None and abs(shared / 5000 - 1) < 0.12


def test_a_sketch_is_one_row_a_shard_and_follows_refreshes(lake_with_sketches: Lake) -> None:
    lake = lake_with_sketches
    lake.write("g", {"few": ["new"] * 3, "many": [1, 2, 3]})
    assert lake.build().read == 1
    serving = lake.snapshot()
    assert serving.distinct_values("few") == 8
    (opened,) = serving.kinds
    payload = opened.payload()
    assert payload is not None
    assert sorted(payload.rows["column"].to_pylist()).count("few") == 2
    assert set(payload.ordinal.tolist()) == {-1}


def test_without_sketches_nothing_is_known(lake: Lake) -> None:
    lake.write("f", {"x": [1]})
    lake.build()
    assert lake.snapshot().distinct_values("x") is None


def test_one_column(lake: Lake) -> None:
    lake.write("f", {"x": [1, 2, 2], "y": [1, 1, 1]})
    lake.build(settings=lambda held: held.adding([KIND.define("x")]))
    assert lake.snapshot().distinct_values("x") == 2
    assert lake.snapshot().distinct_values("y") is None
