"""Hypothesis profiles: SKIPBRIDGE_LAWS=nightly asks twenty times as often as ci, the default."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("ci", max_examples=300, derandomize=True, **_COMMON)  # type: ignore[arg-type]
settings.register_profile("nightly", max_examples=6000, **_COMMON)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("SKIPBRIDGE_LAWS", "ci"))
