"""What Trino decides by the bits of a number here and by its value there (rule 26).

The law: a row for which either way says true satisfies the expression, below any number of NOTs.

``REAL IN (…)`` of a few values is a switch over their bits, of many a set of values: by bits -0.0
is not 0.0, and NaN is NaN. So is ``TIMESTAMP(3) WITH TIME ZONE IN (…)`` a few minutes around 1970,
where the bits hold the zone. A domain becomes such a list again when Trino filters by it. Order
comparisons, ``=`` and ``<>`` go by value alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.expression.builders import or_
from bridge.expression.literals import is_nan
from bridge.expression.nodes import (
    AlwaysFalse,
    And,
    Expression,
    Literal,
    Op,
    Predicate,
    Reference,
    Unknown,
)
from bridge.types import Kind

_SWITCHED = 2**19 * 1000
"""Microseconds: of more than 32 bits, the zone's twelve included, Trino makes no switch."""
BITS = Unknown("zeros and NaN, which Trino may compare by bits")
"""No part was left out: nothing is said about rows that hold such a value."""


def by_bits(literal: Literal) -> bool:
    """Whether equal values of the literal may differ in bits, or NaN be equal to itself."""
    value = literal.value
    if literal.type.kind is Kind.TIMESTAMP_TZ:
        return isinstance(value, int) and abs(value) <= _SWITCHED
    return literal.type.is_floating and (value == 0 or is_nan(literal))


def among(reference: Reference, literals: Sequence[Literal]) -> Expression:
    """``IN``: of the zeros and of NaN it says neither yes nor no."""
    sure = tuple(v for v in literals if not by_bits(v))
    doubtful = [v for v in literals if by_bits(v)]
    zeros = tuple(v for v in doubtful if not is_nan(v))
    parts: list[Expression] = [Predicate(Op.IN, reference, sure)] if sure else []
    if zeros:
        parts.append(And((Predicate(Op.IN, reference, zeros), BITS)))
    if len(zeros) < len(doubtful):
        parts.append(And((Predicate(Op.IS_NAN, reference), BITS)))
    return or_(*parts) if parts else AlwaysFalse()
