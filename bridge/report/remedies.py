"""Remedies as the commands that a user types."""

from __future__ import annotations

import shlex

from bridge.planner.report import Remedy


def spelled(remedy: Remedy) -> str:
    """The command, or the sentence where there is none; empty where nothing helps.

    >>> spelled(Remedy("build", "db.t", ("--expression", "lower(name)")))
    "skipbridge index build db.t --expression 'lower(name)'"
    """
    if not remedy.action:
        return remedy.text
    words = ["skipbridge", "index", remedy.action, remedy.table, *remedy.options]
    return shlex.join(words)
