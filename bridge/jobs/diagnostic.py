"""The result of one check of ``doctor``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.errors import BridgeError


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """The result of one check.

    ``status`` is ok, warning (a part will not work) or error (something requested is broken).
    """

    check: str
    status: str
    detail: str
    remedy: str = ""


def guarded(check: str, run: Callable[[], Diagnostic], status: str = "warning") -> Diagnostic:
    """Runs a check; if it cannot run, that is a result too."""
    try:
        return run()
    except BridgeError as e:
        return Diagnostic(check, status, e.message, e.hint)
    except Exception as e:  # a check that fails unexpectedly
        return Diagnostic(check, status, f"{type(e).__name__}: {e}")
