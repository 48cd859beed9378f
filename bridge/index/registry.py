"""The registry of index kinds. Adding a kind edits nothing here.

Each module of `bridge.index.kinds` that defines ``KIND`` adds a kind. Other distributions add kinds
through the entry point group ``skipbridge.index_kinds``, whose value is the `IndexKind`. See
docs/reference/index-kinds.md.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from bridge.errors import InvalidConfiguration
from bridge.index import kinds as package
from bridge.index.kinds.kind import IndexKind

_log = logging.getLogger(__name__)
GROUP = "skipbridge.index_kinds"


@cache
def kinds() -> dict[str, IndexKind]:
    """All installed kinds, cheapest first. If two share a name, the first one counts."""
    found: dict[str, IndexKind] = {}
    for module in pkgutil.iter_modules(package.__path__):
        kind = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "KIND", None)
        if isinstance(kind, IndexKind):
            found[kind.name] = kind
    for entry in entry_points(group=GROUP):
        try:
            kind = entry.load()
            found.setdefault(kind.name, kind)
        except Exception as error:  # a broken distribution fails no query
            _log.warning("index kind %s of %s cannot be loaded", entry.name, entry.value)
            _log.debug("it failed", exc_info=error)
    return dict(sorted(found.items(), key=lambda item: (item[1].cost, item[0])))


def kind(name: str) -> IndexKind:
    """A kind by name. Errors: InvalidConfiguration: it is not installed."""
    found = kinds().get(name)
    if found is None:
        raise InvalidConfiguration(
            f"there is no index kind {name!r}", f"installed: {', '.join(kinds())}"
        )
    return found
