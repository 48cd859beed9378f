"""Rule 13: numbers without sign, which engines read with one, or refuse, or read as they are.

The law: however a number is read, it lies between the bounds that are known.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from bridge.kernel.types import BIGINT, INTEGER, SMALLINT, TINYINT, Type
from tests.support.lake import Lake

_READ = {8: 32, 16: 32, 32: 32, 64: 64}
"""Bits that Parquet stores a number of so many bits in."""


@pytest.mark.rule("13")
@pytest.mark.parametrize("bits", _READ)
def test_numbers_without_sign_lie_between_their_bounds(lake: Lake, bits: int) -> None:
    edges = [0, 5, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1]
    files = list(itertools.combinations_with_replacement(edges, 2))
    for i, numbers in enumerate(files):
        column = pa.array(numbers, getattr(pa, f"uint{bits}")())
        # one row group a number: what is missing in one is missing in all
        lake.write(f"{i:02}", {"u": column}, row_group_size=1 + i % 2)
    lake.build()
    targets: list[Type] = [TINYINT, SMALLINT, INTEGER, BIGINT]
    for target in targets:
        found = lake.column("u", target)
        whole = np.ones(len(files), np.bool_)
        low = whole if found.lower_known is None else found.lower_known
        high = whole if found.upper_known is None else found.upper_known
        for i, numbers in enumerate(files):
            readings = {r for n in numbers for r in (n, _signed(n, _READ[bits]), _signed(n, bits))}
            assert not low[i] or found.lower[i] <= min(readings), (target, numbers)
            assert not high[i] or found.upper[i] >= max(readings), (target, numbers)
        assert low[0] and high[0]  # of nothing but 0
        assert found.upper[0] == 0


def _signed(number: int, bits: int) -> int:
    return number - 2**bits if number >= 2 ** (bits - 1) else number
