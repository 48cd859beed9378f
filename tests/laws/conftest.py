"""How often Hypothesis asks a law: by the tier of the run, and otherwise under ``--seed``.

And fixtures of the laws of Hudi's own indexes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import bridge
from bridge.table.hudi.files import base_files
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


@pytest.fixture(scope="module")
def session() -> Iterator[bridge.Session]:
    with bridge.connect() as opened:
        yield opened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, these queries wait for the index."""
    monkeypatch.setattr(base_files, "PATIENCE", 300.0)
