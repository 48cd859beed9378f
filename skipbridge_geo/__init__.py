"""The index kind `geo`, for latitudes and longitudes: a plugin that comes with skipbridge.

The core finds it through the entry point group ``skipbridge.index_kinds``, as it would find a kind
of any other distribution, and knows nothing else of it.
"""

from skipbridge_geo.kind import KIND

__all__ = ["KIND"]
