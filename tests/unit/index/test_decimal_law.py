"""Bounds of decimals, from a file's bytes to the table's type: the same number, or not known.

Precisions and scales of file and table are random, and so are the digits: a file may hold more of
them than it declares, or declare more than its physical type holds.
"""

from __future__ import annotations

import decimal as python
import random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bridge.file_formats.physical_column import INT_MAX, INT_MIN, PhysicalType, decode, encode
from bridge.index.convert import convert
from bridge.types import TRINO, decimal

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
