"""LIKE over columns of text, against a matcher that tries everything (rule 25)."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from bridge.expression.function_catalog import call
from bridge.expression.like_match import like_mask
from bridge.expression.parsing.text import parse_where
from tests.tiers import examples

ALPHABET = (*"\\%_\\%_ab\n\r.*[$^QE", "\0", "é", "\u2028", "\U0001f600")
PATTERNS = examples(12_000, 12_000, 200_000)


def tokens(pattern: str) -> list[str] | None:
    """Characters of their own, and the wildcards as two characters, which no character equals."""
    found: list[str] = []
    escaped = False
    for character in pattern:
        if escaped:
            if character not in "%_\\":
                return None
            found.append(character)
        elif character != "\\":
            found.append(character * 2 if character in "%_" else character)
        escaped = character == "\\" and not escaped
    return None if escaped else found


def holds(text: str, pattern: list[str]) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%%":
        return any(holds(text[i:], rest) for i in range(len(text) + 1))
    return bool(text) and first in ("__", text[0]) and holds(text[1:], rest)


def word(rng: random.Random) -> str:
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, 6)))


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()], ids=str)
def test_25_every_pattern_matches_as_by_trying_everything(type: pa.DataType) -> None:
    rng = random.Random(f"{type}")
    matched = meaningless = 0
    for _ in range(PATTERNS // 2):
        pattern = word(rng)
        filled = "".join(rng.choice(ALPHABET) if c in "%_" else c for c in pattern)
        texts = ["", word(rng), word(rng), filled, filled.replace("\\\\", "\\"), filled + "a"]
        found = like_mask(pa.array([*texts, None], type), pattern)
        parts = tokens(pattern)
        if parts is None:
            meaningless += 1
            assert found is None, pattern
            continue
        assert found is not None
        expected = [holds(text, parts) for text in texts]
        assert found.to_pylist() == [*expected, None], (pattern, texts)
        matched += sum(expected)
    assert matched > PATTERNS // 20 and meaningless > PATTERNS // 20


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%C:\\\\dir%", "at C:\\dir\\x"),
        ("%\\\\b", "a\\b"),
        ("a\\\\%", "a\\b"),
        ("\\%%", "% of it"),
        ("_", "\U0001f600"),
        ("%_", "\n"),
    ],
)
def test_25_an_escaped_backslash_is_one(pattern: str, text: str) -> None:
    found = like_mask(pa.array([text, "other"]), pattern)
    assert found is not None
    assert found[0].as_py()


def test_25_a_pattern_too_large_for_the_matcher_says_nothing() -> None:
    texts = pa.array(["x"], pa.large_string())
    assert like_mask(texts, "_%" * 400_000) is None
    assert like_mask(texts, "%" * 400_000).to_pylist() == [True]  # type: ignore[union-attr]


def test_bytes_are_no_pattern() -> None:
    assert len(parse_where("s LIKE X'ff'")[1]) == 1
    assert call("like", []) is None
