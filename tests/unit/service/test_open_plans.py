"""Which open plans make room for others, and which expire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.kernel.errors import PlanLost
from bridge.service import plans
from bridge.service.plans import OpenPlans


class Source:
    def __init__(self, on_close: Callable[[], object] = lambda: None) -> None:
        self.on_close = on_close
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.on_close()


def make_room(opened: OpenPlans) -> None:
    with opened.slot():
        pass


@pytest.mark.parametrize("close", [make_room, OpenPlans.expire])
def test_a_plan_asked_about_while_others_are_closed_stays_open(
    monkeypatch: pytest.MonkeyPatch, close: Callable[[OpenPlans], None]
) -> None:
    """To close a thousand plans takes a while: clients that ask meanwhile have not gone."""
    monkeypatch.setattr(plans, "_ABANDONED", 0.0)
    opened = OpenPlans("process", 0.0, 2)
    later = Source()
    gone = opened.add(Source(lambda: opened.get(asked, Source)), "one")
    asked = opened.add(later, "two")
    close(opened)
    with pytest.raises(PlanLost):
        opened.get(gone, Source)
    assert not later.closed and opened.get(asked, Source) is later
