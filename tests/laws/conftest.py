"""How often Hypothesis asks a law: by the tier of the run, and otherwise under ``--seed``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.tiers import drawn_anew, examples

settings.register_profile(
    "laws",
    max_examples=examples(300, 300, 6000),
    derandomize=not drawn_anew(),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
settings.load_profile("laws")
