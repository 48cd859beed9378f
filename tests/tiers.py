"""Which tests run, how often a law is asked, and under which seed: one place for all of them.

A test is ``fast``, ``full`` or ``nightly`` by its marker; one without a marker is fast. ``--tier``
chooses: a run has its own tier's tests and those of the tiers before it. The pytest plugin of this
module (pyproject.toml names it) knows the tier before any test module is imported, so a module may
ask for its number of examples at its top.
"""

from __future__ import annotations

import sys
from typing import TypeVar

import pytest

T = TypeVar("T")
TIERS = ("fast", "full", "nightly")
_chosen = {"tier": "full", "seed": ""}
_larger: set[str] = set()


def tier() -> str:
    """The tier of this run."""
    return _chosen["tier"]


def nightly() -> bool:
    return tier() == "nightly"


def examples(fast: T, full: T, nightly: T) -> T:
    """How often a law is asked in this run, by tier; numbers, or what else differs by tier."""
    if fast != full:
        _larger.add(sys._getframe(1).f_globals["__name__"])
    return (fast, full, nightly)[TIERS.index(tier())]


def larger_in_full(module: str) -> bool:
    """Whether a module asks its laws more often in full than in fast."""
    return module in _larger


def seed(default: int) -> int:
    """The seed of a law that draws with a generator of its own: ``--seed`` moves all of them."""
    return default if not _chosen["seed"] else hash((default, int(_chosen["seed"]))) & 0x7FFFFFFF


def drawn_anew() -> bool:
    """Whether laws draw other examples than the last run did: nightly, or under ``--seed``."""
    return nightly() or bool(_chosen["seed"])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skipbridge")
    group.addoption("--tier", choices=TIERS, default="full", help="which tests run (full)")
    group.addoption("--seed", type=int, default=None, help="draw the laws' examples anew")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    known = early_config.known_args_namespace
    _chosen["tier"] = known.tier
    _chosen["seed"] = "" if known.seed is None else str(known.seed)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if _chosen["seed"]:
        config.option.hypothesis_seed = _chosen["seed"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, left = [], []
    for item in items:
        marked = next((t for t in reversed(TIERS) if item.get_closest_marker(t)), None)
        if marked is None:
            item.add_marker(pytest.mark.fast)
        (kept if TIERS.index(marked or "fast") <= TIERS.index(tier()) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
