"""Batches of rows are bounded by decoded values, and nothing of them is lost or doubled."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from bridge.formats.rows import pieces
from tests.tiers import examples, seed

_MOST = 2000


@pytest.mark.rule("32")
@pytest.mark.parametrize("number", range(examples(8, 20, 400)))
def test_codes_at_any_depth_count_as_what_they_stand_for(number: int) -> None:
    draw = random.Random(seed(number))
    array = _nested(draw, 300, 0)
    batch = pa.record_batch({"c": array}).slice(draw.randrange(5), draw.choice((7, 200, 290)))
    found = list(pieces(batch, _MOST))
    assert [v for part in found for v in part["c"].to_pylist()] == batch["c"].to_pylist()
    for part in found:
        assert part.num_rows == 1 or part.nbytes <= 4 * _MOST
        assert "dictionary" not in str(part["c"].type)


def _nested(draw: random.Random, rows: int, depth: int) -> pa.Array:
    kind = draw.choice(("struct", "list", "large", "map", "fixed", "codes")) if depth < 3 else ""
    absent = pa.array([draw.random() < 0.1 for _ in range(rows)])
    match kind:
        case "struct":
            parts = [_nested(draw, rows, depth + 1), pa.array(range(rows))]
            return pa.StructArray.from_arrays(parts, ["a", "b"], mask=absent)
        case "list" | "large" | "map":
            steps = [draw.choice((0, 1, 2)) for _ in range(rows)]
            offsets: list[Any] = [sum(steps[:i]) for i in range(rows + 1)]
            items = _nested(draw, offsets[-1], depth + 1)
            if kind == "map":
                return pa.MapArray.from_arrays(offsets, _codes(draw, offsets[-1], 0), items)
            made = pa.ListArray if kind == "list" else pa.LargeListArray
            return made.from_arrays(offsets, items)
        case "fixed":
            return pa.FixedSizeListArray.from_arrays(_nested(draw, 2 * rows, depth + 1), 2)
    return _codes(draw, rows, 0.2)


def _codes(draw: random.Random, rows: int, nulls: float) -> pa.Array:
    words = [str(i) * draw.choice((1, 200)) for i in range(40)]
    values = [None if draw.random() < nulls else draw.choice(words) for _ in range(rows)]
    held = draw.choice((pa.string(), pa.large_string(), pa.binary()))
    return pa.array(values, held).dictionary_encode()
