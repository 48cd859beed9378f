"""When a table is clustered by itself."""

from __future__ import annotations

import datetime as dt

import pytest

from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.triggers import Since, Triggers, changes_since_clustering, due

NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


def plan(at: dt.datetime, generation: int) -> ClusteringPlan:
    instant = at.strftime("%Y%m%d%H%M%S%f")[:17]
    return ClusteringPlan(
        instant, "t", "file:///t", "size", "binpack", (), (), generation=generation
    )


def test_what_has_happened_since() -> None:
    assert changes_since_clustering([], 7, 3, NOON) == Since(7, 3, None)
    hour = dt.timedelta(hours=1)
    # Made from generation 4, committed as generation 5.
    assert changes_since_clustering([plan(NOON - hour, 4)], 5, 0, NOON) == Since(0, 0, 3600.0)
    assert changes_since_clustering([plan(NOON - hour, 4)], 8, 0, NOON).commits == 3
    # Two plans from the same generation, committed as 5 and 6; an older one counts no more.
    both = [plan(NOON - 3 * hour, 1), plan(NOON - 2 * hour, 4), plan(NOON - hour, 4)]
    assert changes_since_clustering(both, 6, 0, NOON).commits == 0
    assert changes_since_clustering(both, 9, 0, NOON) == Since(3, 0, 3600.0)
    assert (
        changes_since_clustering([plan(NOON + hour, 4)], 9, 0, NOON).seconds == 0.0
    )  # clocks differ
    # What publishing has committed since is nobody's write.
    assert changes_since_clustering([plan(NOON - hour, 4)], 8, 0, NOON, {3, 6, 7}).commits == 1
    assert changes_since_clustering([plan(NOON - hour, 4)], 7, 0, NOON, {6, 7}).commits == 0


@pytest.mark.parametrize(
    ("triggers", "held", "why"),
    [
        (Triggers(commits=3), Since(2, 99, 1e9), ""),
        (Triggers(commits=3), Since(3, 0, 0.0), "3 commits"),
        (Triggers(small_files=5), Since(1, 4, None), ""),
        (Triggers(small_files=5), Since(1, 5, None), "5 small files"),
        (Triggers(small_files=5), Since(0, 5, 0.0), ""),
        (Triggers(seconds=60), Since(1, 0, 59.0), ""),
        (Triggers(seconds=60), Since(1, 0, 61.0), "61 s"),
        (Triggers(seconds=60), Since(0, 0, 1e9), ""),  # nothing was written
        (Triggers(seconds=60), Since(1, 0, None), "no clustering yet"),
        (Triggers(3, 5, 60), Since(1, 5, 0.0), "5 small files"),
        (Triggers(), Since(9, 9, 9.0), ""),
    ],
)
def test_due(triggers: Triggers, held: Since, why: str) -> None:
    assert due(triggers, held) == why
