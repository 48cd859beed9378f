"""The registry of index kinds. Adding a kind edits nothing here.

Each module of `bridge.index.kinds` that defines ``KIND`` adds a kind. Other distributions add kinds
through the entry point group ``skipbridge.index_kinds``, whose value is the `IndexKind`. See
docs/reference/index-kinds.md.
"""

from __future__ import annotations

from functools import cache

from bridge.index import kinds as package
from bridge.index.kinds.kind import IndexKind
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.plugins import installed_plugins

GROUP = "skipbridge.index_kinds"


@cache
def kinds() -> dict[str, IndexKind]:
    """All installed kinds, cheapest first. If two share a name, the first one counts."""
    found: dict[str, IndexKind] = installed_plugins(package, "KIND", GROUP, "index kind")
    return dict(sorted(found.items(), key=lambda item: (item[1].cost, item[0])))


def kind(name: str) -> IndexKind:
    """A kind by name. Errors: InvalidConfiguration: it is not installed."""
    found = kinds().get(name)
    if found is None:
        raise InvalidConfiguration(
            f"there is no index kind {name!r}", f"installed: {', '.join(kinds())}"
        )
    return found
