"""The result of one check of ``doctor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.kernel.errors import BridgeError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """The result of one check.

    ``status`` is ok, warning (a part will not work) or error (something requested is broken).
    """

    check: str
    status: str
    detail: str
    remedy: str = ""


def run_check(check: str, run: Callable[[], Diagnostic], status: str = "warning") -> Diagnostic:
    """Runs a check; if it cannot run, that is a result too."""
    try:
        return run()
    except BridgeError as e:
        return Diagnostic(check, status, e.message, e.hint)
    except Exception as e:  # a check that fails unexpectedly
        return Diagnostic(check, status, f"{type(e).__name__}: {e}")


def verdict(findings: Sequence[Diagnostic]) -> str:
    """The last line of ``doctor``: whether all is well, and if not, which checks say otherwise.

    >>> verdict([Diagnostic("JDK 17", "ok", "17.0.2")])
    'all is well'
    >>> verdict([Diagnostic("Maven", "warning", "", ""), Diagnostic("planner", "warning", "", "")])
    'works, but: Maven; planner'
    >>> verdict([Diagnostic("Maven", "warning", "", ""), Diagnostic("Trino", "error", "", "")])
    'broken: Trino; besides: Maven'
    """
    broken, warned = (
        "; ".join(dict.fromkeys(f.check for f in findings if f.status == status))
        for status in ("error", "warning")
    )
    if broken:
        return f"broken: {broken}" + (f"; besides: {warned}" if warned else "")
    return f"works, but: {warned}" if warned else "all is well"
