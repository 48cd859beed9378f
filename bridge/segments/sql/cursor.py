"""A position in the tokens of one text, with the questions that a parser asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from bridge.kernel.errors import InvalidStatement, UnsupportedType
from bridge.kernel.types import UNKNOWN, parse_hive_type
from bridge.segments.sql.statements import Name, Properties
from bridge.segments.sql.tokens import Token, TokenKind, place, tokens

Item = TypeVar("Item")
_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})
_DEEPEST = 50


class Cursor:
    """Reads tokens from left to right. Words are compared without case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        self._at = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def mark(self) -> int:
        """The position, for `rewind`."""
        return self._at

    def rewind(self, mark: int) -> None:
        self._at = mark

    def take(self) -> Token:
        token = self.token
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def is_at_end(self) -> bool:
        """Whether the statement ends here."""
        return self.token.kind is TokenKind.END or self.sees(";")

    def sees(self, *words: str) -> bool:
        """Whether these words or symbols come next."""
        for offset, word in enumerate(words):
            at = self._at + offset
            if at >= len(self._tokens) or not _is(self._tokens[at], word):
                return False
        return True

    def accept(self, *words: str) -> bool:
        """Takes these words if all of them come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def accept_any(self, words: Iterable[str]) -> str | None:
        """Takes one of these words; None if another comes."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, *words: str) -> None:
        """Takes these words. Errors: InvalidStatement."""
        for word in words:
            if not self.accept(word):
                raise self.error(word)

    def error(self, expected: str, hint: str = "") -> InvalidStatement:
        """What is wrong here: the place, what was expected, what was found."""
        token = self.token
        if token.kind is TokenKind.END:
            found = "the end"
        else:
            source = self.text[token.start : token.end]
            found = source if len(source) <= 40 else f"{source[:40]} (and more)"
        if found == "...":
            hint = "... stands for what was left out: write it in full"
        elif token.kind is TokenKind.STRING and "name" in expected:
            hint = "write ` around names, or nothing"
        return InvalidStatement(
            f"{place(self.text, token.start)}: expected {expected}, found {found}",
            hint or "docs/reference/sql.md has every statement with an example",
        )

    def where(self) -> str:
        return place(self.text, self.token.start)

    def name(self, what: str = "a name") -> str:
        """One name, with or without backticks. Errors: InvalidStatement."""
        if self.token.kind not in _NAMES:
            raise self.error(what)
        return self.take().value

    def table(self, what: str = "a table's name") -> Name:
        """``table`` or ``schema.table``. Errors: InvalidStatement."""
        first = self.name(what)
        if not self.accept("."):
            return Name(first)
        second = self.name(what)
        if self.sees("."):
            raise self.error("no third part of a name", "write schema.table")
        return Name(second, first)

    def string(self, what: str = "a string") -> str:
        """A string literal. Errors: InvalidStatement."""
        if self.token.kind is not TokenKind.STRING:
            raise self.error(what)
        return self.take().value

    def integer(self, what: str) -> int:
        """A whole number of at most nine digits. Errors: InvalidStatement."""
        token = self.token
        if token.kind is not TokenKind.NUMBER or "." in token.value or len(token.value) > 9:
            raise self.error(what)
        return int(self.take().value)

    def parse_list(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """``(item, item)``, at least one. Errors: InvalidStatement."""
        self.expect("(")
        found = [item()]
        while self.accept(","):
            found.append(item())
        if not self.accept(")"):
            raise self.error(", or )")
        return tuple(found)

    def names(self) -> tuple[str, ...]:
        """``(name, name)``, each once. Errors: InvalidStatement."""
        return self.unique(self.parse_list(lambda: self.name("a column's name")), "column")

    def unique(self, names: tuple[str, ...], what: str) -> tuple[str, ...]:
        """The names themselves. Errors: InvalidStatement: one comes twice."""
        seen: set[str] = set()
        for name in names:
            if name.lower() in seen:
                raise InvalidStatement(
                    f"{self.where()}: the {what} {name} is named twice", "name it once"
                )
            seen.add(name.lower())
        return names

    def properties(self) -> Properties:
        """``('key'='value', ...)``, each key once. Errors: InvalidStatement."""
        found = self.parse_list(self._property)
        self.unique(tuple(key for key, _ in found), "property")
        return found

    def _property(self) -> tuple[str, str]:
        key = self._word("a property's name in quotes")
        self.expect("=")
        return key, self._word("a property's value in quotes")

    def keys(self) -> tuple[str, ...]:
        """``('key', 'key')``. Errors: InvalidStatement."""
        found = self.parse_list(lambda: self._word("a property's name in quotes"))
        return self.unique(found, "property")

    def _word(self, what: str) -> str:
        if self.token.kind in (TokenKind.STRING, TokenKind.NUMBER, TokenKind.QUOTED):
            return self.take().value
        if self.token.kind is not TokenKind.WORD:
            raise self.error(what)
        parts = [self.take().value]
        while self.accept("."):
            parts.append(self.name(what))
        return ".".join(parts)

    def ids(self) -> tuple[str, ...]:
        """``(0, 0.1, '2')``: ids of segments. Errors: InvalidStatement."""
        return self.unique(self.parse_list(self._id), "segment")

    def _id(self) -> str:
        kinds = (TokenKind.NUMBER, TokenKind.STRING)
        if self.token.kind not in kinds or not self.token.value.replace(".", "").isdecimal():
            raise self.error("a segment's id", "SHOW SEGMENTS lists them: 0, 1, 0.1")
        return self.take().value

    def type(self) -> str:
        """A type as Hive spells it. Errors: UnsupportedType, InvalidStatement."""
        where, first = self.where(), self.mark()
        word = self.name("a type").lower()
        if word == "double":
            self.accept("precision")
        elif word == "timestamp":
            self.accept("with", "local", "time", "zone")
        if self.sees("(") or self.sees("<"):
            self._balanced()
        text = ""
        for token in self._tokens[first : self._at]:
            both = text[-1:].isalnum() and token.kind is TokenKind.WORD
            text += f" {token.value}" if both else token.value
        try:
            parsed = parse_hive_type(text)
        except UnsupportedType as e:
            raise UnsupportedType(
                f"{where}: {text[:100]} is not a type", "write a type of Hive, such as bigint"
            ) from e
        if parsed is UNKNOWN:
            raise UnsupportedType(
                f"{where}: a column cannot be {text[:100]}", "write a type of Hive, such as bigint"
            )
        return str(parsed)

    def _balanced(self) -> None:
        """Takes what is in brackets. Errors: InvalidStatement."""
        depth = 0
        while True:
            if self.is_at_end():
                raise self.error("a closing bracket")
            if self.token.kind in (TokenKind.QUOTED, TokenKind.STRING):
                raise self.error("a type without quotes")
            word = self.take().value
            depth += (word in ("(", "<")) - (word in (")", ">"))
            if depth > _DEEPEST:
                raise self.error(f"types that are nested no deeper than {_DEEPEST}")
            if not depth:
                return

    def rest(self) -> str:
        """Takes what is left of the statement, as text. Errors: InvalidStatement: nothing is."""
        if self.is_at_end():
            raise self.error("SELECT")
        start = self.token.start
        while not self.is_at_end():
            end = self.take().end
        return self.text[start:end]


def _is(token: Token, word: str) -> bool:
    return token.kind in (TokenKind.WORD, TokenKind.SYMBOL) and token.value.upper() == word.upper()
