"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def page(title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table with a caption; every text is escaped.

    >>> page("t", [("a", "<b>")])
    '<table><caption>t</caption><tr><td>a</td><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"] if head else []
    for row in rows:
        lines.append(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>")
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"
