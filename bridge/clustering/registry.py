"""The registries of layouts, groupings and group filters. Adding one edits nothing here.

Each module of `bridge.clustering.layouts` that defines ``LAYOUT`` adds a layout, each module of
`bridge.clustering.groupings` that defines ``GROUPING`` a grouping, each of
`bridge.clustering.group_filters` that defines ``FILTER`` a group filter. Other distributions add
them through the entry point groups ``skipbridge.layouts``, ``skipbridge.groupings`` and
``skipbridge.group_filters``.
"""

from __future__ import annotations

from functools import cache

from bridge.clustering import group_filters as filters_package
from bridge.clustering import groupings as groupings_package
from bridge.clustering import layouts as layouts_package
from bridge.clustering.group_filters.group_filter import GroupFilter
from bridge.clustering.groupings.grouping import Grouping
from bridge.clustering.layouts.layout import Layout
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.plugins import installed_plugins

LAYOUTS = "skipbridge.layouts"
GROUPINGS = "skipbridge.groupings"
GROUP_FILTERS = "skipbridge.group_filters"


@cache
def layouts() -> dict[str, Layout]:
    """All installed layouts, by name."""
    return installed_plugins(layouts_package, "LAYOUT", LAYOUTS, "layout")


@cache
def groupings() -> dict[str, Grouping]:
    """All installed groupings, by name."""
    return installed_plugins(groupings_package, "GROUPING", GROUPINGS, "grouping")


@cache
def group_filters() -> dict[str, GroupFilter]:
    """All installed group filters, by name."""
    return installed_plugins(filters_package, "FILTER", GROUP_FILTERS, "group filter")


def layout(name: str, columns: int) -> Layout:
    """A layout by name.

    Args:
        columns: how many columns it is to order by.

    Errors:
        InvalidConfiguration: it is not installed, or orders by fewer or more columns.
    """
    found = layouts().get(name)
    if found is None:
        raise InvalidConfiguration(
            f"there is no layout {name!r}", f"installed: {', '.join(sorted(layouts()))}"
        )
    if not found.fewest <= columns <= found.most:
        raise InvalidConfiguration(
            f"the layout {name} orders by {found.fewest} to {found.most} columns, and {columns} "
            "were given",
            "give other columns, or another layout",
        )
    return found


def grouping(name: str) -> Grouping:
    """A grouping by name. Errors: InvalidConfiguration: it is not installed."""
    found = groupings().get(name)
    if found is None:
        raise InvalidConfiguration(
            f"there is no grouping {name!r}", f"installed: {', '.join(sorted(groupings()))}"
        )
    return found


def group_filter(name: str) -> GroupFilter:
    """A group filter by name. Errors: InvalidConfiguration: it is not installed."""
    found = group_filters().get(name)
    if found is None:
        raise InvalidConfiguration(
            f"there is no group filter {name!r}",
            f"installed: {', '.join(sorted(group_filters()))}",
        )
    return found
