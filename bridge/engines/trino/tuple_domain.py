"""Trino's TupleDomain: a conjunction of domains, one per column, in normal form.

Follows ``io.trino.spi.predicate``: ranges are always ordered, disjoint and not empty. A set of
ranges over real or double never contains NaN, unless it is the whole set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from bridge.engines.translation import NotTranslatable, malformed_predicate
from bridge.engines.trino.types import parse_trino_type
from bridge.engines.trino.values import DecodedValue, decode
from bridge.expression.nodes import Literal, Reference
from bridge.expression.parsing.literals import is_nan
from bridge.kernel.errors import UnsupportedType
from bridge.kernel.types import Type, Value


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two bounds. An absent bound is unbounded."""

    low: Value | None = None
    low_inclusive: bool = False
    high: Value | None = None
    high_inclusive: bool = False

    @property
    def is_all(self) -> bool:
        return self.low is None and self.high is None

    @property
    def is_single(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        order = _order(self.low, self.high)
        return order > 0 or (order == 0 and not (self.low_inclusive and self.high_inclusive))


def _order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _by_low(one: Range, other: Range) -> int:
    if one.low is None or other.low is None:
        return (one.low is not None) - (other.low is not None)
    return _order(one.low, other.low) or other.low_inclusive - one.low_inclusive


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The non-null values of a domain: ordered disjoint ranges, or values that have no order.

    Attributes:
        ranges: empty: no value; one range unbounded on both sides: every value.
        excluded: for types without order, the excluded values if ``ranges`` is the whole set.
    """

    ranges: tuple[Range, ...] = ()
    excluded: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        merged: list[Range] = []
        kept = [r for r in self.ranges if not r.is_empty]
        for current in sorted(kept, key=cmp_to_key(_by_low)):
            if merged and _touch(merged[-1], current):
                merged[-1] = _union(merged[-1], current)
            else:
                merged.append(current)
        object.__setattr__(self, "ranges", tuple(merged))

    @property
    def is_all(self) -> bool:
        return not self.excluded and any(r.is_all for r in self.ranges)

    @property
    def is_none(self) -> bool:
        return not self.ranges


ALL = ValueSet((Range(),))
NONE = ValueSet()


def _touch(left: Range, right: Range) -> bool:
    if left.high is None or right.low is None:
        return True
    order = _order(left.high, right.low)
    return order > 0 or (order == 0 and (left.high_inclusive or right.low_inclusive))


def _union(left: Range, right: Range) -> Range:
    """The union of two overlapping ranges; ``left`` does not start after ``right``."""
    if left.high is None or right.high is None:
        return Range(left.low, left.low_inclusive)
    order = _order(left.high, right.high)
    inclusive = left.high_inclusive if order > 0 else right.high_inclusive
    if order == 0:
        inclusive = left.high_inclusive or right.high_inclusive
    high = left.high if order > 0 else right.high
    return Range(left.low, left.low_inclusive, high, inclusive)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values one column may have."""

    reference: Reference
    type: Type
    values: ValueSet
    null_allowed: bool


@dataclass(frozen=True, slots=True)
class TupleDomain:
    """A conjunction of domains.

    Attributes:
        is_none: no row can match.
        dropped: domains that could not be translated, and those the sender omitted.
    """

    domains: tuple[Domain, ...] = ()
    is_none: bool = False
    dropped: tuple[str, ...] = field(default=())

    @classmethod
    def parse(cls, document: dict[str, Any]) -> TupleDomain:
        """Parses ``none``, ``domains`` and ``dropped`` of docs/reference/predicates.md.

        Errors:
            InvalidPredicate: the document is malformed.
        """
        dropped = [str(name) for name in _list(document.get("dropped", []), "dropped")]
        domains: list[Domain] = []
        for entry in _list(document.get("domains", []), "domains"):
            if not isinstance(entry, dict):
                raise malformed_predicate("Trino", "a domain that is no object")
            try:
                domains.append(_domain(entry))
            except NotTranslatable as reason:
                dropped.append(f"{'.'.join(reference(entry).path)}: {reason}")
        is_none = document.get("none", False)
        if not isinstance(is_none, bool):
            raise malformed_predicate("Trino", f"none is {is_none!r}")
        return cls(tuple(domains), is_none, tuple(dropped))


def reference(entry: dict[str, Any]) -> Reference:
    """The column or nested field of a domain or expression."""
    column, path = entry.get("column"), entry.get("path", [])
    names = [column, *_list(path, "path")]
    if not all(isinstance(n, str) and n for n in names):
        raise malformed_predicate("Trino", f"a column named {names!r}")
    return Reference(tuple(names))


def type_of(entry: dict[str, Any]) -> Type:
    """The type of an entry. Errors: NotTranslatable: it has no counterpart."""
    name = entry.get("type")
    if not isinstance(name, str):
        raise malformed_predicate("Trino", f"a type named {name!r}")
    try:
        return parse_trino_type(name)
    except UnsupportedType:
        raise NotTranslatable(f"type {name[:100]}") from None


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise malformed_predicate("Trino", f"{what} is no list")
    return value


def _domain(entry: dict[str, Any]) -> Domain:
    type = type_of(entry)
    null_allowed = entry.get("null_allowed")
    if not isinstance(null_allowed, bool):
        raise malformed_predicate("Trino", f"null_allowed is {null_allowed!r}")
    return Domain(reference(entry), type, _values(entry, type), null_allowed)


def _values(entry: dict[str, Any], type: Type) -> ValueSet:
    if entry.get("all") is True:
        return ALL
    if entry.get("none") is True:
        return NONE
    if "ranges" in entry:
        ranges = _list(entry["ranges"], "ranges")
        return ValueSet(tuple(_range(e, type) for e in ranges))
    values = [decode(v, type) for v in _list(entry.get("values"), "values")]
    known = tuple(_known(v) for v in values if not v.beyond)
    inclusive = entry.get("inclusive")
    if not isinstance(inclusive, bool):
        raise malformed_predicate("Trino", f"inclusive is {inclusive!r}")
    if not inclusive:
        return ValueSet((Range(),), known)
    return ValueSet(tuple(Range(v, True, v, True) for v in known))


def _range(entry: Any, type: Type) -> Range:
    """Parses a range. A bound between two storable values moves inward to the next one."""
    if not isinstance(entry, dict):
        raise malformed_predicate("Trino", "a range that is no object")
    low, low_inclusive = _bound(entry, "low", type)
    high, high_inclusive = _bound(entry, "high", type)
    if low is not None and low.beyond:
        low_inclusive = False  # the first storable value is the next one
    if high is not None and high.beyond:
        high_inclusive = True
    return Range(
        None if low is None else _known(low),
        low_inclusive,
        None if high is None else _known(high),
        high_inclusive,
    )


def _bound(entry: dict[str, Any], side: str, type: Type) -> tuple[DecodedValue | None, bool]:
    if entry.get(side) is None:
        return None, False
    inclusive = entry.get(f"{side}_inclusive")
    if not isinstance(inclusive, bool):
        raise malformed_predicate("Trino", f"{side}_inclusive is {inclusive!r}")
    return decode(entry[side], type), inclusive


def _known(decoded: DecodedValue) -> Value:
    literal: Literal = decoded.literal
    if literal.value is None:
        raise malformed_predicate("Trino", "NULL within a value set")
    if is_nan(literal):
        raise NotTranslatable("NaN within ranges")
    return literal.value
