"""A bloom filter or value list counts only where every column of the predicate is sure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from bridge.expression.bind import bind
from bridge.expression.nodes import BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, TRINO, Field
from bridge.planner.file_pruner import KindIndex

FIELDS = [Field("a", BIGINT), Field("b", BIGINT)]


class _Opened:
    """Excludes every file."""

    def never(
        self, expression: object, ordinals: npt.NDArray[np.int64], semantics: object
    ) -> object:
        return np.ones(len(ordinals), np.bool_)


class _Index:
    """Column a has its name in all files; b has another meaning in the second file."""

    def certain(
        self, column: BoundReference, fields: object, ordinals: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_] | None:
        return None if column.path == ("a",) else np.array([True, False])[ordinals]


@pytest.mark.parametrize("text", ["a = 1 AND b = 2", "b = 2 AND a = 1", "b = 2"])
def test_a_sure_column_does_not_vouch_for_another(text: str) -> None:
    index = KindIndex(_Opened(), TRINO, _Index(), FIELDS)  # type: ignore[arg-type]
    bound = bind(parse_where(text)[0], FIELDS, (), TRINO)
    never = index.never(bound, np.array([0, 1]))
    assert never is not None and never.tolist() == [True, False]
