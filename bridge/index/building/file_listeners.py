"""Objects of other distributions that hear when a build begins and ends with a file.

They are named in the entry point group ``skipbridge.build_listeners``. They are called where the
file is read: in a thread of this process, or on an executor of Spark, which gets their module. The
law: nothing of a build depends on them, and one that raises an error is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

GROUP = "skipbridge.build_listeners"
_log = logging.getLogger(__name__)


class FileListener(Protocol):
    """Its methods are called from several threads at a time."""

    def begin(self, uri: str) -> None:
        """A file is about to be read for its index."""
        ...

    def end(self, uri: str, problem: str | None) -> None:
        """It was read.

        Args:
            problem: why there is no entry of it, or an incomplete one; None: there is none.
        """
        ...


@cache
def file_listeners() -> tuple[FileListener, ...]:
    """Those that are installed."""
    found: list[FileListener] = []
    for entry in entry_points(group=GROUP):
        try:
            found.append(entry.load())
        except Exception as error:  # a broken distribution fails no build
            _log.warning("build listener %s of %s cannot be loaded", entry.name, entry.value)
            _log.debug("it failed", exc_info=error)
    return tuple(found)


def notify(listeners: tuple[FileListener, ...], call: Callable[[FileListener], None]) -> None:
    """Calls a method of each."""
    for listener in listeners:
        try:
            call(listener)
        except Exception as error:
            _log.warning("the build listener %s failed: %s", type(listener).__name__, error)
