"""UUIDs: what min/max, a bloom filter, a value list and sorting leave of files, and their size."""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from tests.benchmark.figures import Figure, median

_PROBES = 50


def run() -> list[Figure]:
    return _measured(400, 5_000)


def quick() -> list[Figure]:
    return _measured(20, 200)


def _measured(files: int, rows: int) -> list[Figure]:
    rng = random.Random(1)
    ids = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(files * rows)]
    wanted = rng.sample(ids, _PROBES)
    ways = {
        "in random order: min/max": (ids, {}),
        "a bloom filter (fpp 0.01)": (ids, {"bloom": ["id"]}),
        f"a value list (limit={rows})": (
            ids,
            {"values": [f"id:limit={rows}:max_bytes={100 * rows}"]},
        ),
        "sorted: min/max": (sorted(ids), {}),
    }
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, (order, kinds)) in enumerate(ways.items()):
            table = Path(scratch) / f"t{number}"
            _write(table, order, files, rows)
            with bridge.connect(planner_cache_dir=str(Path(scratch) / "cache")) as session:
                opened = session.table(table)
                opened.index.build(**kinds)
                kept = sum(
                    opened.scan(f"id = '{one}'").explain().files_kept for one in wanted
                ) / len(wanted)
                text = f"id = '{wanted[0]}'"
                seconds = median(lambda t=opened, c=text: t.scan(c).explain(), 10)  # type: ignore[misc]
            held = sum(p.stat().st_size for p in (table / ".skipbridge").rglob("*") if p.is_file())
            note = f"index {held / files:,.0f} B a file; a plan {seconds * 1e3:.1f} ms"
            found.append(
                Figure(f"UUIDs, {files} files of {rows:,}, {name}", kept, "files", "", note)
            )
    return found


def _write(table: Path, ids: list[str], files: int, rows: int) -> None:
    table.mkdir()
    for i in range(files):
        path = table / f"f{i:05}.parquet"
        pq.write_table(pa.table({"id": ids[i * rows : (i + 1) * rows]}), path, use_dictionary=False)
        os.utime(path, (1.7e9, 1.7e9))
