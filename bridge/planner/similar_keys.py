"""Finds partition values that a user may have meant: the same, but for leading zeros and case."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundPredicate, BoundReference, Op
from bridge.table.model import Column
from bridge.table.partition import typed_values

_log = logging.getLogger(__name__)


def similar_value(
    names: list[str], keys: Sequence[Column], reference: BoundReference, asked: bytes
) -> str | None:
    """A value of a text key like one that no partition has, but for leading zeros and case."""
    place = next((i for i, key in enumerate(keys) if (key.name,) == reference.path), None)
    if place is None or not keys[place].type.is_text:
        return None
    present = {value for value in typed_values(names, keys)[place] if isinstance(value, bytes)}
    bare = _bare(asked)
    found = min((value for value in present if _bare(value) == bare), default=asked)
    return None if asked in present or found == asked else found.decode("utf-8", "replace")


def warn_of_similar(names: list[str], keys: Sequence[Column], predicate: BoundExpression) -> None:
    """Warns of equalities that no partition fulfils, though one has a similar value.

    Args:
        names: of all partitions.
    """
    for reference, asked in _equalities(predicate):
        found = similar_value(names, keys, reference, asked)
        if found is not None:
            name, text = reference.path[0], asked.decode("utf-8", "replace")
            _log.warning("no partition has %s = '%s', but there is '%s'", name, text, found)


def _bare(value: bytes) -> str:
    return value.decode("utf-8", "replace").casefold().lstrip("0")


def _equalities(predicate: BoundExpression) -> Iterator[tuple[BoundReference, bytes]]:
    for each in predicate.children if isinstance(predicate, BoundAnd) else (predicate,):
        if isinstance(each, BoundPredicate) and each.op in (Op.EQ, Op.IN):
            yield from ((each.reference, v) for v in each.values if isinstance(v, bytes))
