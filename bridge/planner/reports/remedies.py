"""Formats remedies as commands."""

from __future__ import annotations

import shlex

from bridge.planner.reports.report import Remedy


def remedy_text(remedy: Remedy) -> str:
    """The command, or a sentence if there is none; empty if nothing helps.

    >>> remedy_text(Remedy("build", "db.t", ("--expression", "lower(name)")))
    "skipbridge index build db.t --expression 'lower(name)'"
    """
    if not remedy.action:
        return remedy.text
    if remedy.action == "sql":
        return shlex.join(["skipbridge", "sql", *remedy.options])
    words = ["skipbridge", "index", remedy.action, remedy.table, *remedy.options]
    return shlex.join(words)
