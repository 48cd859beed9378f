"""Splits statements into tokens.

The law: any text gives tokens or `InvalidStatement`, and no character is dropped in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from bridge.kernel.errors import InvalidStatement

MAX_LENGTH = 1_000_000
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*|[0-9]+[^\W\d]\w*)
      | (?P<number>[0-9]+(?:\.[0-9]+)*)
      | (?P<symbol>\.\.\.|[(),;.<>:=*!+\-/%|&?{}\[\]@$])
    """,
    re.VERBOSE | re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNFINISHED = {
    "'": "a string that starts here has no end",
    '"': "a string that starts here has no end",
    "`": "a name that starts here has no end",
    "/": "a comment that starts here has no end",
}
_TYPOGRAPHIC = "\u2018\u2019\u201c\u201d\u00b4"


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        value: a string's or a quoted name's contents; otherwise the text.
        start: offset of the first character.
        end: offset after the last one.
    """

    kind: TokenKind
    value: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """All tokens, and one of kind END.

    Strings are in single or double quotes. In them a quote is doubled or follows a backslash, and
    ``\\t``, ``\\n`` and ``\\u0001`` are what they are in HiveQL.

    Errors:
        InvalidStatement: too long, an unknown character, or a quote or comment without an end.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidStatement(
            f"the statements have {len(text):,} characters", f"give at most {MAX_LENGTH:,} at once"
        )
    if _SURROGATE.search(text):
        raise InvalidStatement("the statements are not valid UTF-8", "write them in UTF-8")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or (text.startswith("/*", at) and match.lastgroup == "symbol"):
            raise _unknown(text, at)
        kind, value = str(match.lastgroup), match[0]
        if kind == "string":
            value = _unescaped(value)
            if _SURROGATE.search(value):
                raise InvalidStatement(
                    f"{place(text, at)}: a string with half a character (\\ud800 to \\udfff)",
                    "write the character itself",
                )
        elif kind == "quoted":
            value = value[1:-1].replace("``", "`")
        if kind != "space":
            found.append(Token(TokenKind(kind), value, at, match.end()))
        at = match.end()
    found.append(Token(TokenKind.END, "", at, at))
    return found


def place(text: str, at: int) -> str:
    """``line 2, column 5`` of an offset."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - (text.rfind(chr(10), 0, at) + 1) + 1}"


def _unknown(text: str, at: int) -> InvalidStatement:
    character = text[at]
    where = place(text, at)
    if character in _TYPOGRAPHIC:
        return InvalidStatement(
            f"{where}: a typographic quote {character}", "write ' around strings, ` around names"
        )
    if character in _UNFINISHED:
        return InvalidStatement(f"{where}: {_UNFINISHED[character]}", "close it")
    return InvalidStatement(
        f"{where}: the character {character!r} is not understood",
        "write ' around strings, ` around names with special characters",
    )


def _unescaped(literal: str) -> str:
    quote = literal[0]

    def one(match: re.Match[str]) -> str:
        if match[0] == quote * 2:
            return quote
        if match[1]:
            return chr(int(match[1], 16))
        if match[2]:
            return chr(int(match[2], 8))
        return _ESCAPES.get(match[3], match[3])

    escapes = r"\\(?:u([0-9a-fA-F]{4})|([0-3][0-7]{2})|(.))|" + quote * 2
    return re.sub(escapes, one, literal[1:-1], flags=re.DOTALL)
