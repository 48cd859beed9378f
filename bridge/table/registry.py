"""Table formats by name; a new format is a new package and needs no change here.

Every package of `bridge.table` whose module ``format`` has a ``TABLE_FORMAT`` is a format. Other
distributions add formats in the entry point group ``skipbridge.table_formats``, whose value is the
`TableFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from bridge import table as package
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.plugins import installed_plugins
from bridge.table.model import CatalogTable
from bridge.table.snapshot import ReadByHive, TableFormat

GROUP = "skipbridge.table_formats"
PROPERTY = "skipbridge.table_format"
"""Table property that names a table's format; it takes precedence over recognition."""
DIRECTORY = "directory"


@cache
def table_formats() -> dict[str, TableFormat]:
    """All installed formats; if two have one name, the first is used."""
    found: dict[str, TableFormat] = installed_plugins(
        package, "TABLE_FORMAT", GROUP, "table format", packages_only=True
    )
    return found


def table_format(table: CatalogTable) -> TableFormat:
    """The format of a table. Errors: UnsupportedTable: it is not installed."""
    return format_named(table.table_format)


def format_named(name: str) -> TableFormat:
    """A format by name. Errors: UnsupportedTable: it is not installed."""
    found = table_formats().get(name)
    if found is None:
        raise UnsupportedTable(
            f"there is no table format {name!r}",
            f"install a distribution that provides it; installed: {', '.join(table_formats())}",
        )
    return found


def recognise_format(properties: Mapping[str, str], input_format: str = "") -> str:
    """The format's name for a table of the metastore; ``directory`` by default."""
    named = properties.get(PROPERTY, "").strip().lower()
    if named:
        return named
    for format in table_formats().values():
        if format.name != DIRECTORY and format.recognises(properties, input_format):
            return format.name
    return DIRECTORY


def table_hooks() -> dict[str, str]:
    """By the input format of a table format, the class of Hive's hooks that extends it."""
    return {
        input_format: hook
        for format in table_formats().values()
        if isinstance(format, ReadByHive)
        for input_format, hook in format.hive_hooks.items()
    }
