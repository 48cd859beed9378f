"""The reference page: every statement has an example, and every example parses."""

from __future__ import annotations

import re
from pathlib import Path

from bridge.segments.sql import statements
from bridge.segments.sql.parser import parse

PAGE = (Path(__file__).parents[3] / "docs/reference/sql.md").read_text()


def test_every_example_parses_and_every_statement_has_one() -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
    shown = {type(statement).__name__ for block in blocks for statement in parse(block)}
    assert shown == {each.__name__ for each in statements.Statement.__subclasses__()}
