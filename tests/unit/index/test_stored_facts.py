"""What an index keeps of its files for readers by name is what the files' footers say."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.formats.parquet import statistics, stored_file
from bridge.formats.parquet.stored_file import StoredFileReader, parse_stored
from bridge.index.building.collect import Collector, ThreadCollector
from bridge.index.generations.compact import MAX_SHARDS
from bridge.index.generations.shard import Collected
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.lake import Lake
from tests.tiers import seed

_NOON = datetime.datetime(2024, 3, 1, 12)
_VALUES: dict[str, pa.Array] = {
    "id": pa.array([1, 2]),
    "ID": pa.array([1, 2], pa.int32()),
    "u": pa.array([1, 2], pa.uint16()),
    "ms": pa.array([_NOON, None], pa.timestamp("ms")),
    "us": pa.array([_NOON, None], pa.timestamp("us", "UTC")),
    "day": pa.array([datetime.date(1800, 1, 1), None]),
    "list": pa.array([[1], None], pa.list_(pa.uint32())),
    "map": pa.array([[("a", [1.5])], []], pa.map_(pa.string(), pa.list_(pa.float32()))),
    "st": pa.array([{"X": {"y": [{"z": 1}]}}, None]),
    "dec": pa.array([1, 2], pa.decimal128(10, 2)),
}


def draw(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(list(_VALUES), rng.randint(1, 6))
    fields = [
        pa.field(n, _VALUES[n].type, metadata={"PARQUET:field_id": "7"} if n == "dec" else None)
        for n in names
    ]
    data = pa.table([_VALUES[n] for n in names], pa.schema(fields))
    return {
        "data": data,
        "use_deprecated_int96_timestamps": rng.random() < 0.3,
        "use_compliant_nested_type": rng.random() < 0.7,
    }


class _Wire:
    """Sends results over a wire, as Spark does."""

    def __init__(self, inner: Collector) -> None:
        self._inner = inner

    def collect(self, tasks: Any, reading: Any) -> Any:
        for found in self._inner.collect(tasks, reading):
            yield Collected.from_bytes(found.to_bytes())


@pytest.mark.parametrize("hybrid", [False, True])
def test_an_index_says_what_footers_say(
    hybrid: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (statistics, stored_file):
        monkeypatch.setattr(module, "hybrid_calendar", lambda end: hybrid)
    rng = random.Random(seed(17))
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    reader, count = StoredFileReader(), 0
    for _ in range(MAX_SHARDS + 4):  # shards are merged
        for _ in range(rng.randint(1, 4)):
            drawn = draw(rng)
            lake.write(f"f{count}.parquet", drawn.pop("data"), **drawn)
            count += 1
        if rng.random() < 0.3:
            lake.path(f"f{rng.randrange(count)}.parquet").unlink(missing_ok=True)
        lake.build(collector=_Wire(ThreadCollector(lake.storage)))
        lake.path("bad.parquet").write_bytes(b"PAR1 no parquet PAR1")
    index = lake.snapshot()
    told, olds = set(), set()
    for ordinal, uri in enumerate(index.paths.to_pylist()):
        if uri.endswith("bad.parquet"):
            assert index.stored[ordinal] == -1
            continue
        stat = lake.storage.stat(uri)
        assert stat is not None
        read, kept = reader.read(lake.storage, stat), index.stored_files[index.stored[ordinal]]
        assert kept.schema.columns == read.schema.columns, uri
        assert (kept.schema.numbered, kept.old) == (read.schema.numbered, read.old), uri
        told.add(int(index.stored[ordinal]))
        olds.add(kept.old)
    assert told == set(range(len(index.stored_files)))  # those of deleted files are gone
    assert len(told) > 10 and olds == ({(), ("day",)} if hybrid else {()})


def test_a_text_is_stored_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    wide = pa.table({f"column_{i}": [1] for i in range(300)})
    for i in range(40):
        lake.write(f"f{i}.parquet", wide)
    lake.build()
    index = lake.snapshot()
    (text,) = index.local.stored
    assert len(parse_stored(text).schema.columns) == 300
    assert len(index.stored_files) == 1 and (index.stored == 0).all()
    manifest = lake.store().latest()
    assert manifest is not None and manifest.shards[0].files.size < 2 * len(text) + 8_000
