"""Every error over a Hudi table says what was found, and what to do."""

from __future__ import annotations

import ast
from pathlib import Path

import bridge
from bridge.kernel.errors import all_errors

PACKAGES = ("table/hudi", "formats/hudi")
ERRORS = {error.__name__ for error in all_errors().values()}


def test_every_error_names_a_remedy() -> None:
    root, lacking, seen = Path(bridge.__file__).parent, [], 0
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                    continue
                if node.func.id in ERRORS:
                    seen += 1
                    if len(node.args) < 2 or ast.unparse(node.args[1]) in ("''", '""'):
                        lacking.append(f"{path.name}:{node.lineno}")
    assert seen > 50 and not lacking
