"""What one check of ``doctor`` found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.errors import BridgeError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One check; ``status`` is ok, warning (a part will not work) or error (asked for and
    broken).
    """

    check: str
    status: str
    detail: str
    remedy: str = ""


def guarded(check: str, run: Callable[[], Diagnostic], status: str = "warning") -> Diagnostic:
    """Runs a check; that it cannot be run is a finding too."""
    try:
        return run()
    except BridgeError as e:
        return Diagnostic(check, status, e.message, e.hint)
    except Exception as e:  # a check that fails in an unforeseen way as well
        return Diagnostic(check, status, f"{type(e).__name__}: {e}")
