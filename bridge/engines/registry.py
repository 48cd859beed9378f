"""The registry of engines. Adding an engine edits nothing here.

Each folder of `bridge.engines` whose module ``engine`` defines ``ENGINE`` adds an engine.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import bridge.engines as package
from bridge.engines.engine import Engine
from bridge.formats.registry import file_format, file_formats
from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.table.model import CatalogTable


@cache
def engines() -> dict[str, Engine]:
    """All engines, by name."""
    folders = [m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg]
    modules = [importlib.import_module(f"{package.__name__}.{name}.engine") for name in folders]
    return {module.ENGINE.name: module.ENGINE for module in modules}


def engine(name: str) -> Engine:
    """An engine by name. Errors: InvalidRequest: no engine has this name."""
    found = engines().get(name)
    if found is None:
        raise InvalidRequest(f"unknown engine {name!r}", f"known: {sorted(engines())}")
    return found


def refuse_unreadable(table: CatalogTable, engine: Engine) -> None:
    """Errors: UnsupportedTable: the engine has no reader for the table's file format."""
    if engine.reader(file_format(table.format)) is None:
        formats = (f for f in file_formats().values() if not f.of_slices)
        known = [f.spelled for f in formats if engine.reader(f) is not None]
        raise UnsupportedTable(
            f"{table.name} is stored as {table.format}: {engine.spelled} has no reader for it here",
            f"only {' or '.join(known)} tables are read here",
        )
