"""Trino's Python client, an extra."""

from __future__ import annotations

import logging
from types import ModuleType

from bridge.kernel.errors import EnvironmentMissing


def trino_client() -> ModuleType:
    """The package ``trino``. Errors: EnvironmentMissing: it is not installed."""
    try:
        import trino
    except ImportError as error:
        raise EnvironmentMissing(
            "the Python package trino is not installed", "pip install 'skipbridge[trino]'"
        ) from error
    logging.getLogger("trino.client").setLevel(logging.CRITICAL)  # it tells each attempt
    found: ModuleType = trino
    return found
