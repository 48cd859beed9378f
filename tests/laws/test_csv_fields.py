"""The law of lines of CSV: cut in groups, they have the fields that each has when cut alone."""

from __future__ import annotations

import random

import pytest

from bridge.formats.lines.csv_fields import FieldCutter, FieldSyntax, cut_line
from tests.tiers import examples

ROUNDS = examples(1_000, 1_000, 20_000)
SYNTAXES = ((",", '"', "\\"), (";", "'", "|"), ("\t", '"', "\x01"), (" ", '"', "\\"))
OTHERS = ["\ufeff", "a", "N", " ", "\x85", "\U0001f600", "\x0b", "\u2028", "é"]
PLACES = [0, 1, 3]


def _lines(rng: random.Random, syntax: FieldSyntax) -> list[str]:
    quotes, escapes = rng.choice((0, 1, 3)), rng.choice((0, 0, 1, 2))
    parts = [syntax.separator] * 4 + [syntax.quote] * quotes + [syntax.escape] * escapes + OTHERS
    return ["".join(rng.choices(parts, k=rng.randint(0, 8))) for _ in range(rng.randint(1, 8))]


def _alone(line: str, syntax: FieldSyntax) -> list[str | None]:
    fields = cut_line(line, syntax) if line else []
    found = [fields[place] if place < len(fields) else None for place in PLACES]
    return [None if value == syntax.null else value for value in found]


@pytest.mark.parametrize("part", range(4))
def test_groups_of_lines_are_cut_as_single_lines(part: int) -> None:
    rng = random.Random(part)
    for _ in range(ROUNDS // 4):
        syntax = FieldSyntax(*rng.choice(SYNTAXES), rng.choice((None, "", "N")))
        lines = _lines(rng, syntax)
        if lines[0].startswith("\ufeff"):  # such a block is ambiguous
            continue
        block = "".join(f"{line}\n" for line in lines).encode()
        table = FieldCutter("file", syntax, PLACES).cut(block)
        found = [list(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        assert found == [_alone(line, syntax) for line in lines], (syntax, lines)
