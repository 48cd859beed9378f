"""What a package and other distributions bring by name: the loop that the registries share."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import pkgutil
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

_log = logging.getLogger(__name__)


def installed_plugins(
    package: ModuleType, attribute: str, group: str, what: str, *, packages_only: bool = False
) -> dict[str, Any]:
    """Objects with a ``name``; if two have the same name, the first one found is used.

    Args:
        package: whose modules have the object as an attribute; of a subpackage its module
            ``format`` has it, so that importing another one of its modules does not load it.
        group: of entry points, for those of other distributions.
        what: they are, for the log. A distribution that cannot be loaded is logged and left out.
        packages_only: look only into subpackages.
    """
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg or not packages_only:
            name = f"{package.__name__}.{module.name}"
            if module.ispkg:
                if importlib.util.find_spec(f"{name}.format") is None:
                    continue
                name = f"{name}.format"
            loaded = importlib.import_module(name)
            own = getattr(loaded, attribute, None)
            if own is not None:
                found[own.name] = own
    for entry in entry_points(group=group):
        try:
            plugin = entry.load()
            found.setdefault(plugin.name, plugin)
        except Exception as error:  # a broken distribution fails no query
            _log.warning("%s %s of %s cannot be loaded", what, entry.name, entry.value)
            _log.debug("it failed", exc_info=error)
    return found
