"""Rules of correctness by number: a test whose name tells its rule carries the marker as well.

``pytest -m "rule"`` runs them all; ``pytest -m 'rule("9")'`` those of one rule.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

# No test fails on a clock: Hypothesis would fail an example that takes longer than 200 ms, as any
# does on a busy machine. The laws load profiles of their own.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

NAMED = re.compile(r"^test_(?:rule_)?(m[1-4]|0?[1-9]|[1-9][0-9])_")
_PAGE = Path(__file__).parents[1] / "docs/concepts/rules.md"
RULES = tuple(re.findall(r"^\*\*(M[1-4]|\d+)\. ", _PAGE.read_text(), re.MULTILINE))


def rule_of(name: str) -> str | None:
    """``test_rule_07_prefixes`` is of rule 7, ``test_m1_…`` of M1."""
    match = NAMED.match(name)
    return match[1].upper().lstrip("0") if match else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        found = rule_of(item.name)
        if found is not None:
            item.add_marker(pytest.mark.rule(found))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests were skipped, a line each, for the last line of ``make test``."""
    file = os.environ.get("SKIPBRIDGE_SKIPPED")
    if not file:
        return
    with Path(file).open("a") as lines:
        for report in terminalreporter.stats.get("skipped", []):
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            lines.write(str(why).removeprefix("Skipped: ").replace("\n", " ") + "\n")
