"""LIKE patterns: the part of them that bounds can answer (rule 7).

The law: every text that matches the pattern satisfies the predicate; where `LikePattern.exact`, the
reverse holds too.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.expression.function_catalog import call
from bridge.expression.nodes import Literal, Op, Predicate, Reference
from bridge.kernel.types import BOOLEAN, STRING


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern parsed up to its first wildcard.

    Attributes:
        prefix: the literal text before the first wildcard.
        whole: whether there is no wildcard.
        exact: whether the predicate is equivalent to the pattern.
    """

    prefix: str
    whole: bool
    exact: bool

    def predicate(self, reference: Reference, equal: Op = Op.LIKE) -> Predicate:
        """Without a wildcard ``equal``, otherwise STARTS WITH.

        Only who knows that the column is no CHAR may give ``=``. Without a prefix this is IS NOT
        NULL, except that NULL and its negation are unknown.
        """
        op = equal if self.whole else Op.STARTS_WITH
        return Predicate(op, reference, (Literal(self.prefix.encode(), STRING),))


def matches(reference: Reference, pattern: str, escape: str | None) -> Predicate | None:
    """The whole pattern, for indexes that hold a column's values; None if it is invalid.

    >>> matches(Reference(("c",)), "a!%b_", "!").reference.text
    "like(c, 'a\\\\%b_')"
    """
    spelled: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape is not None and character == escape:
            character = next(characters, "")
            if character not in ("%", "_", escape):
                return None
            spelled.append("\\" + character if character in "%_\\" else character)
        else:
            spelled.append("\\\\" if character == "\\" else character)
    found = call("like", [reference, Literal("".join(spelled).encode(), STRING)])
    return None if found is None else Predicate(Op.EQ, found, (Literal(True, BOOLEAN),))


def parse_like(pattern: str, escape: str | None) -> LikePattern:
    """Parses a pattern.

    Args:
        escape: the escape character; None for none, which is Trino's default (Hive and Spark use
            the backslash). Before any character other than a wildcard or itself it ends the
            prefix, because engines differ.

    >>> parse_like("ab%", None), parse_like("a!_b%c", "!")
    (LikePattern(prefix='ab', whole=False, exact=True), LikePattern(prefix='a_b', whole=False, exact=False))
    """  # noqa: E501
    prefix: list[str] = []
    i = 0
    while i < len(pattern):
        character = pattern[i]
        if escape is not None and character == escape:
            following = pattern[i + 1 : i + 2]
            if following not in ("%", "_", escape):
                return LikePattern("".join(prefix), whole=False, exact=False)
            prefix.append(following)
            i += 2
            continue
        if character in "%_":
            exact = set(pattern[i:]) == {"%"} and escape != "%"
            return LikePattern("".join(prefix), whole=False, exact=exact)
        prefix.append(character)
        i += 1
    return LikePattern("".join(prefix), whole=True, exact=True)
