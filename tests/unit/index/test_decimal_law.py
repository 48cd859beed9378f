"""Bounds of decimals, from a file's bytes to the table's type: the same number, or not known.

Precisions and scales of file and table are random, and so are the digits: a file may hold more of
them than it declares, or declare more than its physical type holds.
"""

from __future__ import annotations

import decimal as python
import random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bridge.formats.physical_column import INT_MAX, INT_MIN, PhysicalType, decode, encode
from bridge.index.generations.convert import convert
from bridge.index.kinds.plain import maps_one_to_one
from bridge.kernel.types import HIVE, TRINO, decimal

_BITS = {"INT32": 31, "INT64": 63, "FIXED_LEN_BYTE_ARRAY": 126, "BYTE_ARRAY": 126}
_FILES = 4
_ANY = python.Context(prec=80)


def _digits(rng: random.Random, bits: int) -> int:
    most = 2 ** rng.randint(1, bits)
    return rng.choice((0, 1, -1, most - 1, -most, rng.randrange(-most, most)))


def _plain(physical: str, values: list[int]) -> pa.Array:
    if physical.startswith("INT"):
        return encode(physical, values)
    return pa.array([v.to_bytes(16, "big", signed=True) for v in values], pa.large_binary())


def _numbers(bounds: Any, scale: int) -> list[python.Decimal | None]:
    if isinstance(bounds, pa.Array):
        return list(bounds.to_pylist())
    return [python.Decimal(int(v)).scaleb(-scale, _ANY) for v in bounds]


@given(st.integers(0, 2**32))
def test_10_a_bound_in_the_tables_scale_is_the_files_number(seed: int) -> None:
    rng = random.Random(seed)
    physical = rng.choice(list(_BITS))
    precision, wide = rng.randint(1, 38), rng.randint(1, 38)
    stored = PhysicalType(
        physical,
        "decimal",
        {"INT32": 32, "INT64": 64}.get(physical, 16),
        precision,
        rng.randint(0, precision),
    )
    target = decimal(wide, rng.randint(min(stored.scale, wide), wide))
    bits = min(_BITS[physical], 63 if stored.holds == "int" else 126)
    lower = [_digits(rng, bits) for _ in range(_FILES)]
    upper = [max(value, _digits(rng, bits)) for value in lower]
    low = decode(stored, _plain(physical, lower), upper=False)
    high = decode(stored, _plain(physical, upper), upper=True)
    found = convert(stored, target, TRINO, low.values, high.values)
    if found is None:
        return
    sides = ((lower, low.known, found.lower), (upper, high.known, found.upper))
    for digits, known, bounds in sides:
        for i, number in enumerate(_numbers(bounds, target.scale)):
            doubtful = found.doubtful is not None and found.doubtful[i]
            if doubtful or not known[i] or number is None or digits[i] in (INT_MIN, INT_MAX):
                continue
            assert number == python.Decimal(digits[i]).scaleb(-stored.scale, _ANY)
    assert found.doubtful is not None and found.to_null is not None
    of_hive = convert(stored, target, HIVE, low.values, high.values)
    assert of_hive is not None and of_hive.doubtful is not None
    assert found.doubtful is not None and found.to_null is not None
    assert of_hive.to_null is not None
    if physical.startswith("INT") and stored.scale != target.scale:  # Hive shows 0.0125 for 1.25
        assert of_hive.doubtful.all()
        assert np.array_equal(of_hive.to_null, found.to_null)
        assert not maps_one_to_one(stored, target, HIVE) and maps_one_to_one(stored, target, TRINO)
    else:
        assert np.array_equal(of_hive.doubtful, found.doubtful)
    most = 10**precision - 1
    for i, (least, greatest) in enumerate(zip(lower, upper, strict=True)):
        both = bool(low.known[i] and high.known[i])
        fits = both and -most <= least and greatest <= most
        assert found.to_null[i] == (not fits), "Hive reads NULL"
        assert found.doubtful[i] == (not fits and (least, greatest) != (INT_MIN, INT_MAX))
