"""Pruning rule by rule, on designed files: what must be kept, and that the rest IS pruned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.bind import bind
from bridge.expression.builders import (
    and_,
    between,
    eq,
    ge,
    gt,
    in_,
    is_nan,
    is_not_null,
    is_null,
    le,
    lt,
    ne,
    not_,
    not_in,
    null_safe_ne,
    or_,
    starts_with,
)
from bridge.expression.nodes import BoundReference, Expression
from bridge.expression.prune import Answers, prune
from bridge.expression.statistics import ColumnStatistics
from bridge.kernel.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    HIVE,
    INTEGER,
    STRING,
    TRINO,
    Field,
    Semantics,
    Type,
    char,
    decimal,
)

MISSING: Any = None


class Files:
    """One column ``x`` of some files, each (lower, upper) or None for unknown bounds."""

    def __init__(
        self,
        type: Type,
        bounds: Sequence[tuple[Any, Any] | None],
        *,
        nulls: Sequence[int] | int = 0,
        nans: Sequence[int] | int = 0,
        rows: int = 10,
        exact: bool = True,
    ) -> None:
        count = self.num_files = len(bounds)
        self.type = type
        lower = [None if b is None else b[0] for b in bounds]
        upper = [None if b is None else b[1] for b in bounds]
        null_count = np.broadcast_to(np.asarray(nulls, np.int64), count)
        self._statistics = ColumnStatistics(
            type,
            self._array(lower, -1),
            self._array(upper, 1),
            np.array([v is not None for v in lower]),
            np.array([v is not None for v in upper]),
            None if exact else np.zeros(count, np.bool_),
            null_count,
            np.broadcast_to(np.asarray(nans, np.int64), count),
            np.full(count, rows, np.int64),
            null_count == rows if (null_count == rows).any() else None,
        )

    def _array(self, values: list[Any], sign: int) -> Any:
        if self.type.is_bytes:
            return pa.array(values, pa.large_binary())
        if self.type.is_floating:
            return np.array([sign * math.inf if v is None else v for v in values], np.float64)
        edge = 2**63 - 1 if sign > 0 else -(2**63)
        return np.array([edge if v is None else v for v in values], np.int64)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        return self._statistics if reference.path == ("x",) else None

    def ask(self, expression: Expression, semantics: Semantics = TRINO) -> Answers:
        fields = [Field("x", self.type), Field("other", INTEGER)]
        return prune(bind(expression, fields, [], semantics), self, semantics)

    def kept(self, expression: Expression, semantics: Semantics = TRINO) -> list[int]:
        return [i for i, n in enumerate(self.ask(expression, semantics).never) if not n]

    def always(self, expression: Expression, semantics: Semantics = TRINO) -> list[int]:
        return list(np.flatnonzero(self.ask(expression, semantics).always))


INTS = Files(INTEGER, [(0, 9), (10, 19), (20, 29), None, (15, 15)])


@pytest.mark.parametrize(
    ("expression", "kept", "always"),
    [
        (eq("x", 15), [1, 3, 4], [4]),
        (ne("x", 15), [0, 1, 2, 3], [0, 2]),
        (lt("x", 10), [0, 3], [0]),
        (le("x", 10), [0, 1, 3], [0]),
        (gt("x", 19), [2, 3], [2]),
        (ge("x", 19), [1, 2, 3], [2]),
        (between("x", 10, 15), [1, 3, 4], [4]),
        (in_("x", [5, 25]), [0, 2, 3], []),
        (in_("x", [12, 15, 99]), [1, 3, 4], [4]),
        (not_in("x", [15, 25]), [0, 1, 2, 3], [0]),
        (or_(eq("x", 5), eq("x", 25)), [0, 2, 3], []),
        (not_(lt("x", 20)), [2, 3], [2]),
        (is_null("x"), [], []),
        (is_not_null("x"), [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ],
)
def test_integers(expression: Expression, kept: list[int], always: list[int]) -> None:
    assert INTS.kept(expression) == kept
    assert INTS.always(expression) == always


def test_m1_always_is_not_the_reverse_of_never() -> None:
    answers = INTS.ask(gt("x", 5))
    assert not answers.never[0] and not answers.always[0]  # MAYBE: neither
    assert not INTS.ask(gt("x", 5)).always[3]  # nothing is known of it
    inexact = Files(INTEGER, [(0, 9)], exact=False)
    assert inexact.always(lt("x", 10)) == [0]
    # Weakened parts never give ALWAYS, whatever is left of them.
    assert Files(INTEGER, [(0, 9)]).always(and_(lt("x", 10), eq("other", "text"))) == []


def test_m4_and_uses_the_known_half_or_needs_both() -> None:
    unknown = eq("other", 1)
    assert INTS.kept(and_(eq("x", 5), unknown)) == [0, 3]
    assert INTS.kept(or_(eq("x", 5), unknown)) == [0, 1, 2, 3, 4]


NANS = Files(DOUBLE, [(1.0, 2.0)] * 3, nans=[0, 1, -1])


def test_rule_01_nan_is_not_within_the_bounds() -> None:
    for expression in (gt("x", 5.0), ge("x", 5.0), not_(lt("x", 5.0))):
        assert NANS.kept(expression, HIVE) == [1, 2]  # NaN is greater
    assert NANS.kept(gt("x", 5.0), TRINO) == []  # NaN is not
    assert NANS.kept(not_(lt("x", 5.0)), TRINO) == [1, 2]  # but passes the negation
    assert NANS.kept(lt("x", 0.0), HIVE) == []
    one = Files(DOUBLE, [(1.0, 1.0)] * 3, nans=[0, 1, -1])
    for semantics in (TRINO, HIVE):
        assert one.kept(ne("x", 1.0), semantics) == [1, 2]
        assert one.kept(not_in("x", [1.0, 2.0]), semantics) == [1, 2]
        assert one.always(eq("x", 1.0), semantics) == [0]
        assert NANS.kept(is_nan("x"), semantics) == [1, 2]
        assert NANS.always(lt("x", 3.0), semantics) == [0]
    assert NANS.kept(eq("x", math.nan), HIVE) == [1, 2]
    assert NANS.kept(eq("x", math.nan), TRINO) == []
    assert NANS.always(gt("x", 0.0), HIVE) == [0, 1, 2]
    assert NANS.always(gt("x", 0.0), TRINO) == [0]


def test_rule_01_a_nan_bound_is_no_bound() -> None:
    files = Files(DOUBLE, [(math.nan, math.nan)], nans=-1)
    values = [eq("x", 1.0), in_("x", [1.0, 2.0, 3.0]), lt("x", 0.0), ne("x", 1.0), gt("x", 9.0)]
    for expression in values:
        assert files.kept(expression) == [0]
        assert files.always(expression) == []


def test_rule_02_zeros_are_one_value() -> None:
    for bounds in ((-0.0, -0.0), (0.0, 0.0)):
        files = Files(DOUBLE, [bounds])
        for literal in (0.0, -0.0):
            for semantics in (TRINO, HIVE):
                assert files.kept(eq("x", literal), semantics) == [0]
                assert files.kept(in_("x", [literal, 9.0]), semantics) == [0]
                assert files.kept(le("x", literal), semantics) == [0]
                assert files.kept(ge("x", literal), semantics) == [0]
    files = Files(DOUBLE, [(0.0, 0.0), (1.0, 2.0), (-2.0, -1.0)])
    assert files.kept(lt("x", 0.0), TRINO) == [2]
    assert files.kept(gt("x", 0.0), TRINO) == [1]
    # Where doubles compare by Double.compare, a minimum of 0 may stand for -0.0 < 0.0.
    assert files.kept(lt("x", 0.0), HIVE) == [0, 2]
    assert files.kept(gt("x", 0.0), HIVE) == [0, 1]
    assert files.kept(ne("x", 0.0), HIVE) == [0, 1, 2]
    assert files.always(ge("x", 0.0), HIVE) == [1]


def test_rule_03_truncated_strings_bound_but_are_no_values() -> None:
    files = Files(STRING, [(b"ab", b"ac"), (b"ab", b"ab")], exact=False)
    assert files.kept(eq("x", "b")) == []
    assert files.kept(gt("x", "ad")) == []
    assert files.kept(ne("x", "ab")) == [0, 1]
    assert files.kept(not_in("x", ["ab", "zz"])) == [0, 1]
    assert files.always(eq("x", "ab")) == []
    assert Files(STRING, [(b"ab", b"ab")]).kept(ne("x", "ab")) == []


def test_rule_04_missing_bounds_are_not_null() -> None:
    files = Files(STRING, [None, (b"a", b"b")], nulls=[-1, 0])
    assert files.kept(eq("x", "z")) == [0]
    assert files.kept(is_not_null("x")) == [0, 1]
    assert files.kept(in_("x", ["y", "z"])) == [0]


def test_rule_05_null_counts() -> None:
    files = Files(INTEGER, [(1, 1), (1, 1), (1, 1), None], nulls=[0, 3, -1, 10])
    assert files.kept(is_null("x")) == [1, 2, 3]
    assert files.kept(is_not_null("x")) == [0, 1, 2]
    assert files.kept(eq("x", 1)) == [0, 1, 2]
    assert files.kept(ne("x", 2)) == [0, 1, 2]
    assert files.kept(not_in("x", [2, None])) == []
    assert files.always(eq("x", 1)) == [0]
    assert files.always(is_null("x")) == [3]
    unknown_rows = Files(INTEGER, [None], nulls=5, rows=-1)
    assert unknown_rows.kept(is_not_null("x")) == [0]


def test_rule_06_is_distinct_from_matches_null() -> None:
    files = Files(INTEGER, [(5, 5), (5, 5), None], nulls=[0, 1, 10])
    assert files.kept(null_safe_ne("x", 5)) == [1, 2]
    assert files.kept(ne("x", 5)) == []


def test_rule_07_prefixes() -> None:
    files = Files(STRING, [(b"a", b"ab"), (b"ab", b"abz"), (b"aaz", b"ad"), (b"b", b"c"), None])
    assert files.kept(starts_with("x", "ab")) == [0, 1, 2, 4]
    assert files.kept(starts_with("x", "abc")) == [1, 2, 4]
    assert files.kept(not_(starts_with("x", "ab"))) == [0, 2, 3, 4]
    assert files.always(starts_with("x", "ab")) == [1]
    assert files.always(not_(starts_with("x", "ab"))) == [3]
    highest = Files(BINARY, [(b"\xff", b"\xff\xff"), (b"a", b"b"), (b"\xff\xff", b"\xff\xff")])
    assert highest.kept(starts_with("x", b"\xff\xff", BINARY)) == [0, 2]
    assert highest.kept(not_(starts_with("x", b"\xff\xff", BINARY))) == [0, 1]


def test_rule_10_wide_decimals_compare_as_integers() -> None:
    from decimal import Decimal

    type = decimal(38, 2)
    files = Files(type, [(0, 0)] * 3)
    bounds = [Decimal("-0.01"), Decimal("99999999999999999999999999999999999.98"), None]
    wide = pa.array(bounds, pa.decimal128(38, 2))
    statistics = files._statistics
    files._statistics = ColumnStatistics(
        type, wide, wide, None, None, None, statistics.null_count, statistics.nan_count,
        statistics.row_count, None,
    )  # fmt: skip
    big = 9999999999999999999999999999999999998
    assert files.kept(eq("x", big, type)) == [1, 2]
    assert files.kept(eq("x", big + 1, type)) == [2]
    assert files.kept(in_("x", [big + 1, -1, -7], type)) == [0, 2]
    assert files.kept(lt("x", 0)) == [0, 2]
    assert files.kept(ne("x", -1, type)) == [1, 2]


@pytest.mark.parametrize("value", ["z", "z\t", "za"])
def test_rule_11_char_is_not_pruned_by_bounds(value: str) -> None:
    files = Files(char(3), [(b"z", b"z"), (b"a", b"b")], nulls=[0, 10])
    for expression in (eq("x", value), lt("x", value), gt("x", value), in_("x", [value, "q"])):
        assert files.kept(expression) == [0, 1]
        assert files.always(expression) == []
    assert files.kept(is_null("x")) == [1]


def test_rule_12_text_compares_as_unsigned_bytes() -> None:
    # In UTF-16, U+10000 sorts below U+FFFF; as signed bytes, e-acute sorts below z.
    files = Files(STRING, [("\uffff".encode(), "\U00010000".encode()), (b"z", "é".encode())])
    assert files.kept(eq("x", "\U00010000")) == [0]
    assert files.kept(gt("x", "\uffff")) == [0]
    assert files.kept(gt("x", "z")) == [0, 1]


def test_rule_13_a_boolean_with_reversed_bounds_is_corrupt() -> None:
    files = Files(BOOLEAN, [(1, 0), (0, 0), (0, 1)])
    assert files.kept(eq("x", True)) == [0, 2]
    assert files.kept(eq("x", False)) == [0, 1, 2]
    assert files.always(eq("x", False)) == [1]


def test_rule_16_a_float_column_knows_no_0_1() -> None:
    near = float(np.float32(0.1))
    files = Files(Type(DOUBLE.kind), [(near, near), (0.2, 0.3)])
    assert files.kept(eq("x", 0.1)) == []
    from bridge.kernel.types import FLOAT

    files = Files(FLOAT, [(near, near), (0.2, 0.3)])
    assert files.kept(eq("x", 0.1)) == [0]
    assert files.kept(eq("x", 0.1, FLOAT) if near == 0.1 else eq("x", near, FLOAT)) == [0]
    assert files.kept(gt("x", 0.1)) == [0, 1]
    assert files.always(gt("x", 0.1)) == []  # the comparison was rounded outward


def test_a_file_without_rows_may_be_never_and_always() -> None:
    files = Files(INTEGER, [None], rows=0)
    assert files.kept(is_not_null("x")) == []
    assert files.always(is_not_null("x")) == [0]


def test_every_length_of_list_gives_one_answer() -> None:
    rng = np.random.default_rng(3)
    lower = rng.integers(0, 1000, 300)
    upper = lower + rng.integers(0, 30, 300)
    files = Files(INTEGER, list(zip(lower.tolist(), upper.tolist(), strict=True)))
    for count in (1, 2, 3, 50, 400):
        values = sorted(rng.integers(-50, 1100, count).tolist())
        expected = [i for i in range(300) if any(lower[i] <= v <= upper[i] for v in values)]
        assert files.kept(in_("x", values)) == expected
