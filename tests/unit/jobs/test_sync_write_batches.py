from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from bridge.storage.batches import batches


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
