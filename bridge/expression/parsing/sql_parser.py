"""sqlglot's parser of conditions, with a bound on its work.

The law: the work is in proportion to the text. sqlglot tries many constructs in several ways, each
of which parses the rest again, so that nested ones would cost twice as much with each level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from bridge.kernel.errors import InvalidPredicate

Node = TypeVar("Node", bound=exp.Expression)
_STEPS = 32
"""Times that each token is passed, on average. Usual conditions need at most 5."""
_ZONE = frozenset({"WITH", "WITHOUT"})
_CAST_TO: dict[str, dict[Any, tuple[int, ...]]] = {
    "trino": {
        exp.DataType.Type.TIMESTAMP: (3,),
        exp.DataType.Type.TIMESTAMPTZ: (3,),
        exp.DataType.Type.DECIMAL: (38, 0),
        exp.DataType.Type.CHAR: (1,),
    },
    "hive": {exp.DataType.Type.DECIMAL: (10, 0)},
    "spark": {exp.DataType.Type.DECIMAL: (10, 0)},
}
"""What a cast without parameters means; a typed literal, such as ``DECIMAL '1.5'``, has its own."""

_QUOTES = (
    "texts are in 'single quotes', names in \"double\" ones (in `backquotes` for hive and spark)"
)

_AWAITS_MORE = re.compile(r"[-+*/%<>=!|]+|and|or|not|like|between|is|in", re.IGNORECASE)
"""Words and signs with which no condition ends."""


def parse_condition(text: str, dialect: str) -> exp.Expression:
    """The tree of one condition.

    Errors:
        InvalidPredicate: it does not parse (the message has the position), or the parser would
            have to try too many ways.
        RecursionError: it is nested too deeply.
    """
    parser = _parser_class(dialect)(dialect=spelling(dialect))
    try:
        tokens = parser.dialect.tokenize(text)
        (tree,) = parser.parse_into(exp.Condition, tokens, text)
    except (InvalidPredicate, RecursionError):
        raise
    except ParseError as error:
        raise _syntax_error(text, error) from None
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise InvalidPredicate(f"{text[:200]!r} does not parse: {reason}", _QUOTES) from None
    except Exception:  # the library's own faults, such as an argument that a function lacks
        raise InvalidPredicate(f"{text[:200]!r} does not parse", _QUOTES) from None
    if tree is None:
        raise InvalidPredicate("the condition is empty", "write for example: day >= '2024-03-01'")
    return tree


@cache
def spelling(dialect: str) -> Dialect:
    """The dialect in which trees of `parse_condition` are written as text again.

    Numbers of elements stay as they are written: the library would copy the whole chain of
    ``x[1][2]`` at each of its links.
    """
    found = Dialect.get_or_raise(dialect)
    found.INDEX_OFFSET = 0
    return found


def own_parts(tree: exp.Expression, kind: type[Node], *others: type[Any]) -> Iterator[Node]:
    """The nodes of a kind that stand in no subquery, nor in a node of the other kinds."""
    for node in tree.walk(prune=lambda node: isinstance(node, (exp.Query, *others))):
        if isinstance(node, kind):
            yield node


@cache
def _parser_class(dialect: str) -> Any:
    base: Any = Dialect.get_or_raise(dialect).parser_class

    class Bounded(base):  # type: ignore[misc]
        """A parser that counts its steps, and tries a type only where one can be."""

        _left = _depth = 0
        _closing: dict[int, int]

        def _advance_chunk(self) -> None:
            tokens = self._chunks[self._chunk_index]
            self._left = _STEPS * (len(tokens) + 10)
            self._closing = _closing(tokens)
            super()._advance_chunk()

        def _advance(self, times: int = 1) -> None:
            self._left -= 1
            if self._left < 0:
                raise InvalidPredicate("the condition is nested too deeply", "simplify it")
            super()._advance(times)

        def _parse_types(self, check_func: bool = False, **options: Any) -> Any:
            if check_func and not self._begins_a_type():
                return None
            # Unless it is of a schema, Hive's makes char and varchar text, as a cast of Spark has
            # them and one of Hive has not; it rewrites a whole type, so that once is enough.
            keeps = dialect == "hive" or self._depth > 0
            options["schema"] = options.get("schema", False) or keeps
            self._depth += 1
            try:
                return super()._parse_types(check_func=check_func, **options)
            finally:
                self._depth -= 1

        def _parse_cast(self, *how: Any, **options: Any) -> Any:
            node = super()._parse_cast(*how, **options)
            if isinstance(node, exp.Cast) and not node.to.expressions:
                given = map(exp.Literal.number, _CAST_TO[dialect].get(node.to.this, ()))
                node.to.set("expressions", [exp.DataTypeParam(this=number) for number in given])
            return node

        def _begins_a_type(self) -> bool:
            """False for ``array[...]``, and for ``row(...)`` without a text after it."""
            if self._curr.token_type not in self.TYPE_TOKENS:
                return True
            if self._next.token_type is TokenType.L_PAREN:
                after = self._closing.get(self._index + 1, -1) + 1
                token = self._tokens[after] if 0 < after < len(self._tokens) else None
                return token is not None and (
                    token.token_type in self.STRING_PARSERS or token.text.upper() in _ZONE
                )
            return self._next.token_type is not TokenType.L_BRACKET

    return Bounded


def _closing(tokens: list[Token]) -> dict[int, int]:
    """The place of the closing parenthesis of each opening one."""
    found: dict[int, int] = {}
    pending: list[int] = []
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            pending.append(place)
        elif token.token_type is TokenType.R_PAREN and pending:
            found[pending.pop()] = place
    return found


def _syntax_error(text: str, error: ParseError) -> InvalidPredicate:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    found = detail.get("highlight") or ""
    place = f"line {line}, column {column}" if line is not None else "the end"
    near = f", near {found!r}" if found else ""
    hint = _QUOTES
    if text.lstrip()[:6].lower() in ("select", "where "):
        hint = "give the condition alone, such as: id = 3"
    elif _AWAITS_MORE.fullmatch(found) and text.rstrip().endswith(found):
        hint = f"the condition ends after {found}: complete it, such as: id = 3 or name = 'x'"
    return InvalidPredicate(f"{text[:200]!r} does not parse at {place}{near}", hint)
