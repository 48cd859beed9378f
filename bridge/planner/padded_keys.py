"""Finds partition values that a user may have meant: the same, but for leading zeros."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundPredicate, BoundReference, Op
from bridge.table.model import Column
from bridge.table.partition import typed_values

_log = logging.getLogger(__name__)


def padded_value(
    names: list[str], keys: Sequence[Column], reference: BoundReference, asked: bytes
) -> str | None:
    """A value of a text key that differs from one that no partition has by leading zeros alone."""
    place = next((i for i, key in enumerate(keys) if (key.name,) == reference.path), None)
    if place is None or not keys[place].type.is_text:
        return None
    present = {value for value in typed_values(names, keys)[place] if isinstance(value, bytes)}
    bare = asked.lstrip(b"0")
    found = min((value for value in present if value.lstrip(b"0") == bare), default=asked)
    return None if asked in present or found == asked else found.decode("utf-8", "replace")


def warn_of_padding(names: list[str], keys: Sequence[Column], predicate: BoundExpression) -> None:
    """Warns of equalities that no partition fulfils, though one has the value with leading zeros.

    Args:
        names: of all partitions.
    """
    for reference, asked in _equalities(predicate):
        found = padded_value(names, keys, reference, asked)
        if found is not None:
            name, text = reference.path[0], asked.decode("utf-8", "replace")
            _log.warning("no partition has %s = '%s', but there is '%s'", name, text, found)


def _equalities(predicate: BoundExpression) -> Iterator[tuple[BoundReference, bytes]]:
    for each in predicate.children if isinstance(predicate, BoundAnd) else (predicate,):
        if isinstance(each, BoundPredicate) and each.op in (Op.EQ, Op.IN):
            yield from ((each.reference, v) for v in each.values if isinstance(v, bytes))
