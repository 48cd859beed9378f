"""Clustering of tables. Public is `check_write`, for writers that cooperate."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["check_write"]


def __getattr__(name: str) -> Any:
    if name == "check_write":  # imported when it is used: the API is built upon this package
        return import_module("bridge.api.writers").check_write
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
