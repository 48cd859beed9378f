from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from bridge.index.kinds import registry
from bridge.index.kinds.kind import IndexKind
from bridge.kernel import plugins
from bridge.kernel.errors import InvalidConfiguration


class Dearer(IndexKind):
    name = "dearer"
    cost = 1000.0


DEARER = Dearer()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entry = EntryPoint("dearer", f"{__name__}:DEARER", registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    registry.kinds.cache_clear()
    yield
    registry.kinds.cache_clear()


def test_a_kind_is_added_by_an_entry_point(installed: None) -> None:
    found = list(registry.kinds().values())
    assert found[-1] is DEARER
    assert [kind.cost for kind in found] == sorted(kind.cost for kind in found)
    assert registry.kind("dearer") is DEARER


def test_a_broken_distribution_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("broken", "no_such_module:KIND", registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    registry.kinds.cache_clear()
    try:
        assert "values" in registry.kinds() and "broken" not in registry.kinds()
    finally:
        registry.kinds.cache_clear()


def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="no index kind 'dearer'"):
        registry.kind("dearer")
