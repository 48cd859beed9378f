from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.kernel.errors import MetastoreFailure
from bridge.storage.batches import batches
from bridge.sync.writing import write_batches
from bridge.sync.writing.write_batches import Batches, BatchLimits


@given(st.lists(st.integers(0, 50)), st.integers(1, 60), st.integers(1, 8))
def test_every_item_once_in_order_within_the_limits(
    sizes: list[int], most_bytes: int, most: int
) -> None:
    found = list(batches(iter(sizes), lambda s: s, most_bytes, most))
    assert [s for batch in found for s in batch] == sizes
    assert all(0 < len(b) <= most and (sum(b) <= most_bytes or len(b) == 1) for b in found)
    # No batch could have taken the first of the next.
    for one, following in itertools.pairwise(found):
        assert len(one) == most or sum(one) + following[0] > most_bytes


@pytest.mark.parametrize("patience", [0.0, 600.0])
@pytest.mark.parametrize("accepted", [set(), {900}])
def test_the_rest_is_not_sent_where_nothing_is_accepted_for_long(
    monkeypatch: pytest.MonkeyPatch, patience: float, accepted: set[int]
) -> None:
    """One that is accepted among many is found, and all are sent."""
    monkeypatch.setattr(write_batches, "_PATIENCE", patience)
    sent: set[int] = set()

    def send(batch: Sequence[int]) -> list[str]:
        sent.update(batch)
        if not accepted.issuperset(batch):
            raise MetastoreFailure("the disk is full", "free space")
        return [str(item) for item in batch]

    job: Batches[int] = Batches(str, send, BatchLimits(count=10))
    assert job.run(range(1000), lambda item: 1) == [str(item) for item in accepted]
    assert {name for name, _ in job.failed} == {str(i) for i in range(1000)} - {
        str(item) for item in accepted
    }
    gave_up = not patience and not accepted
    assert (len(sent) < 150) is gave_up
    assert any("not sent" in reason for _, reason in job.failed) is gave_up
