"""Comparisons that Trino evaluates sometimes by bits and sometimes by value (rule 26).

The law: if either way returns true for a row, the row satisfies the expression, below any number of
NOTs.

Trino compiles a short ``REAL IN`` list to a switch over bits, and a long one to a set of values. By
bits -0.0 differs from 0.0, and NaN equals NaN. The same holds for ``TIMESTAMP(3) WITH TIME ZONE
IN`` a few minutes around 1970, where the bits include the zone. Trino turns domains into such lists
when it filters. Order comparisons, ``=`` and ``<>`` always compare values.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.expression.builders import or_
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
from bridge.expression.parsing.literals import is_nan
from bridge.kernel.types import Kind

_SWITCHED = 2**19 * 1000
"""Microseconds. Beyond 32 bits, including 12 for the zone, Trino does not compile a switch."""
BITS = Unknown("zeros and NaN, which Trino may compare by bits")
"""Not a dropped part: rows with such a value are undecided."""


def by_bits(literal: Literal) -> bool:
    """Whether equal values may differ in bits, or NaN may equal itself."""
    value = literal.value
    if literal.type.kind is Kind.TIMESTAMP_TZ:
        return isinstance(value, int) and abs(value) <= _SWITCHED
    return literal.type.is_floating and (value == 0 or is_nan(literal))


def among(reference: Reference, literals: Sequence[Literal]) -> Expression:
    """``IN``, undecided for zeros and NaN."""
    sure = tuple(v for v in literals if not by_bits(v))
    doubtful = [v for v in literals if by_bits(v)]
    zeros = tuple(v for v in doubtful if not is_nan(v))
    parts: list[Expression] = [Predicate(Op.IN, reference, sure)] if sure else []
    if zeros:
        parts.append(And((Predicate(Op.IN, reference, zeros), BITS)))
    if len(zeros) < len(doubtful):
        parts.append(And((Predicate(Op.IS_NAN, reference), BITS)))
    return or_(*parts) if parts else AlwaysFalse()
