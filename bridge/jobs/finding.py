"""What one check of ``doctor`` found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.errors import BridgeError


@dataclass(frozen=True, slots=True)
class Finding:
    """One check; ``status`` is ok, warning (a part will not work) or error (asked for and
    broken).
    """

    check: str
    status: str
    detail: str
    mend: str = ""


def guarded(check: str, run: Callable[[], Finding], status: str = "warning") -> Finding:
    """Runs a check; that it cannot be run is a finding too."""
    try:
        return run()
    except BridgeError as e:
        return Finding(check, status, e.message, e.hint)
    except Exception as e:  # a check that fails in an unforeseen way as well
        return Finding(check, status, f"{type(e).__name__}: {e}")
