"""Every rule of correctness has a test that carries its number, here and in the whole suite."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import RULES, rule_of

TESTS = Path(__file__).parents[1]
_DEFINED = re.compile(r"^def (test_\w+)", re.MULTILINE)
_MARKED = re.compile(r"rule\(\"(M[1-4]|\d+)\"\)")
_CASE = re.compile(r"^    case\(\"(M[1-4]|\d+)\"", re.MULTILINE)


@cache
def _numbers(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in folder.rglob("test_*.py"):
        if file == Path(__file__):
            continue
        text = file.read_text()
        found.update(n for name in _DEFINED.findall(text) if (n := rule_of(name)))
        found.update(_MARKED.findall(text))
        found.update(_CASE.findall(text))
    return found


# Rules about an engine's reader and about real stores are proven where these run.
_ELSEWHERE = {"29": "engines", "30": "storage"}
# Rules that no test proves yet, with what is to be proven. A rule with a test leaves the table.
_NOT_YET = {
    "34": "LIKE without a wildcard is no = for CHAR",
    "39": "both sides of a statement get the whole enforced constraint",
}


@pytest.mark.parametrize("number", RULES)
def test_every_rule_has_its_tests(number: str) -> None:
    found = _numbers(TESTS)[number]
    if number in _NOT_YET:
        assert found == 0, f"rule {number} has tests: take it out of the table"
    elif number.isdigit() and int(number) > 30:
        assert found >= 1
    else:
        assert _numbers(TESTS / _ELSEWHERE.get(number, "rules"))[number] >= 1
        assert found >= 2


def test_the_numbers_are_those_of_the_page() -> None:
    assert ("M1", "M2", "M3", "M4", *(str(n) for n in range(1, len(RULES) - 3))) == RULES
    assert len(RULES) >= 55
    assert set(_numbers(TESTS)) <= set(RULES)


def test_names_tell_their_rule() -> None:
    assert rule_of("test_rule_07_prefixes") == "7"
    assert rule_of("test_m1_always") == "M1"
    assert rule_of("test_22_counts") == "22"
    assert rule_of("test_16_clients") == "16"
    assert rule_of("test_a_thing") is None
