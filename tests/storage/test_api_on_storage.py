"""The Python API on each storage: built, added to, pruned and read, small files and large ones."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.storage.reading.source import WHOLE
from tests.storage.conftest import Place

pytestmark = pytest.mark.full


def content(first: int, rows: int = 100) -> bytes:
    """Noise that no compression makes small, beside ascending numbers."""
    noise = np.random.default_rng(first).integers(0, 2**62, rows)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(first, first + rows), "noise": noise}), sink)
    return sink.getvalue()


def test_a_table_is_indexed_pruned_and_read(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"planner_cache_dir": str(tmp_path / "cache")}
    settings |= {key.replace(".", "_"): value for key, value in place.settings.items()}
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    for part in range(3):
        place.storage.put(f"{place.root}/p=1/f{part}.parquet", content(part * 1000))
    large = content(1_000_000, 1_300_000)
    assert len(large) > WHOLE
    place.storage.put(f"{place.root}/p=2/large.parquet", large)
    with bridge.connect(**settings) as session:
        table = session.table(place.root)
        assert table.index.build().read == 4
        assert table.scan("id = 2050").files().num_rows == 1
        assert table.scan("id = 2050").to_arrow()["p"].to_pylist() == [1]
        place.storage.put(f"{place.root}/p=3/new.parquet", content(5000))
        made = table.index.add([f"{place.root}/p=3/new.parquet"])
        assert (made.files, made.failed) == (1, [])
        assert table.scan("id = 7").files().num_rows == 1
        found = table.scan("id >= 2299990 OR id = 5001", columns=["id", "p"])
        assert sorted(found.to_arrow()["id"].to_pylist()) == [5001, *range(2_299_990, 2_300_000)]
        assert found.files().num_rows == 2
        assert table.index.refresh().read == 0
