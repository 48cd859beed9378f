"""The index kind `geo` for latitudes and longitudes, a plugin included with skipbridge.

The core finds it through the entry point group ``skipbridge.index_kinds``, like kinds of other
distributions.
"""

from skipbridge_geo.kind import KIND

__all__ = ["KIND"]
