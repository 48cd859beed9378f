"""Asking kinds one after the other: each only about what the ones before have left.

The law: a file is answered NEVER only if the expression is false of all its rows by what some kinds
know of its parts: an AND if of any part, an OR if of all (M4), each part by any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundFalse, BoundOr, BoundPredicate
from bridge.expression.statistics import Mask
from bridge.index.kinds.kind import Ordinals

Ask = Callable[[BoundExpression, Ordinals], Mask | None]


def never(expression: BoundExpression, ordinals: Ordinals, asks: Sequence[Ask]) -> Mask:
    """Of the given files those in which no row satisfies the expression.

    Args:
        asks: in the order to ask them; each gets a predicate, or a conjunction as a whole, and the
            files it may still help with.
    """
    result = np.zeros(len(ordinals), np.bool_)
    left = np.arange(len(ordinals))  # positions not known to be NEVER
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
    """Whether parts of different kinds may be needed together."""
    match expression:
        case BoundAnd(children):
            return any(map(has_or, children))
        case BoundOr():
            return True
    return False
