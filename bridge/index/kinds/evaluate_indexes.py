"""Evaluates indexes one after another. Each index sees only the files that earlier ones kept.

The law: a file is NEVER only if some index proves it for the expression, for any part of an AND, or
for all parts of an OR (M4). Different indexes may prove different parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundFalse, BoundOr, BoundPredicate
from bridge.expression.statistics import Mask
from bridge.index.kinds.kind import Ordinals

Ask = Callable[[BoundExpression, Ordinals], Mask | None]


def never(expression: BoundExpression, ordinals: Ordinals, asks: Sequence[Ask]) -> Mask:
    """The files of ``ordinals`` in which no row satisfies the expression.

    Args:
        asks: the indexes in the order of evaluation. Each is called with a predicate or a whole
            conjunction, and with the files that are still undecided.
    """
    result = np.zeros(len(ordinals), np.bool_)
    left = np.arange(len(ordinals))  # positions that are not NEVER so far
    match expression:
        case BoundFalse():
            return ~result
        case BoundAnd(children):
            left = _ask(expression, ordinals, asks, result, left)
            for child in children:
                if not len(left):
                    break
                found = never(child, ordinals[left], asks)
                result[left[found]] = True
                left = left[~found]
        case BoundOr(children):
            for child in children:
                if not len(left):
                    break
                left = left[never(child, ordinals[left], asks)]
            result[left] = True
        case BoundPredicate():
            _ask(expression, ordinals, asks, result, left)
    return result


def _ask(
    expression: BoundExpression,
    ordinals: Ordinals,
    asks: Sequence[Ask],
    result: Mask,
    left: Ordinals,
) -> Ordinals:
    for ask in asks:
        if not len(left):
            break
        found = ask(expression, ordinals if len(left) == len(ordinals) else ordinals[left])
        if found is not None:
            result[left[found]] = True
            left = left[~found]
    return left


def has_or(expression: BoundExpression) -> bool:
    """Whether the expression contains OR, so that several indexes may be needed together."""
    match expression:
        case BoundAnd(children):
            return any(map(has_or, children))
        case BoundOr():
            return True
    return False
