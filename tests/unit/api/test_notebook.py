"""The notebook of the documentation runs, cell by cell, and every result shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[3] / "docs" / "how-to" / "notebook.ipynb"


def run(source: str, names: dict[str, Any]) -> None:
    """Executes a cell as a notebook does; its last expression is shown."""
    tree = ast.parse(source)
    last = tree.body[-1]
    shown = ast.Expression(tree.body.pop().value) if isinstance(last, ast.Expr) else None  # type: ignore[attr-defined]
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if shown is not None:
        value = eval(compile(shown, str(NOTEBOOK), "eval"), names)
        assert value is None or getattr(value, "_repr_html_", value.__repr__)()


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    names: dict[str, Any] = {}
    cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
    assert len(cells) > 10
    for cell in cells:
        run("".join(cell["source"]), names)
