from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from index_lake import Lake

from bridge.index import registry
from bridge.types import TRINO


class Dearer(registry.MinMax):
    name = "dearer"
    cost = 9.0


DEARER = Dearer()


def test_a_kind_is_added_by_an_entry_point(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("dearer", f"{__name__}:DEARER", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    registry.kinds.cache_clear()
    try:
        minmax, dearer = registry.kinds()
    finally:
        registry.kinds.cache_clear()
    assert (minmax.name, dearer) == ("minmax", DEARER)
    lake.write("f", {"x": [1]})
    lake.build()
    serving = lake.serving()
    found = minmax.statistics(serving, (), TRINO)
    assert found is not None
    assert found.num_files == 1
    assert dearer.statistics(serving, (), TRINO) is None  # this generation holds none of it
