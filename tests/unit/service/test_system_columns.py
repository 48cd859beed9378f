"""The connector and the planner name the columns of system tables alike, in one order."""

from __future__ import annotations

import re
from pathlib import Path

from bridge.planner.answers.system_tables import COLUMNS

JAVA = "trino_plugin_gen/template/src/main/java/io/skipbridge/trino/metadata/SystemTableKind.java"


def test_columns_are_those_of_the_connector() -> None:
    text = (Path(__file__).parents[3] / JAVA).read_text()
    kinds = re.findall(r"^    ([A-Z]+)\(((?:\s*column\(\"\w+\", \w+\)[,)]+)+)", text, re.M)
    found = {kind.lower(): tuple(re.findall(r'column\("(\w+)"', held)) for kind, held in kinds}
    assert found == COLUMNS
