"""The Python API on an object store with latency: parts of one large file are asked for at once.

The file has 16 row groups of 8 columns. Beside it stands pyarrow with its own client of S3. A proxy
delays each answer; ``SKIPBRIDGE_BENCH_LATENCY`` sets the milliseconds, 30 if unset.
"""

from __future__ import annotations

import os
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

import bridge
from bridge.storage.routed import open_storage
from tests.benchmark.data import root
from tests.benchmark.figures import Figure, interleaved
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_TABLE = f"s3://{BUCKET}/large"
_ROWS, _GROUPS, _PAIRS = 2_000_000, 16, 5


def run() -> list[Figure]:
    return _measured(_ROWS)


def quick() -> list[Figure]:
    return _measured(_ROWS // 8)


def _measured(rows: int) -> list[Figure]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    content, found = _content(rows), list[Figure]()
    with tempfile.TemporaryDirectory(dir=root()) as directory:
        gateway = start_versitygw(Path(directory))
        with gateway.server, SlowStore(gateway.server.port, Behaviour(latency=latency)) as proxy:
            os.environ |= gateway.environment
            options = gateway.through(proxy.port)
            open_storage(options=gateway.options).put(f"{_TABLE}/f.parquet", content)
            peer = fs.S3FileSystem(
                access_key=options["access_key_id"],
                secret_key=options["secret_access_key"],
                endpoint_override=options["endpoint"],
                region=options["region"],
            )
            with bridge.connect(
                storage_endpoint=options["endpoint"],
                storage_region=options["region"],
                storage_allow_http=True,
                planner_cache_dir=f"{directory}/cache",
            ) as session:
                for columns in (["c0"], [f"c{i}" for i in range(8)]):

                    def ours(columns: list[str] = columns) -> None:
                        read = session.table(_TABLE).scan(columns=columns).to_arrow()
                        assert read.num_rows == rows and read.num_columns == len(columns)

                    def theirs(columns: list[str] = columns) -> None:
                        whole = ds.dataset(f"{BUCKET}/large/f.parquet", filesystem=peer)
                        assert whole.to_table(columns).num_rows == rows

                    mine, other, ratio = interleaved(ours, theirs, _PAIRS)
                    proxy.take()
                    ours()
                    seen = proxy.take()
                    note = (
                        f"pyarrow {other:.2f} s, ratio {ratio:.2f}; {seen.count()} requests, at "
                        f"most {seen.most} in flight"
                    )
                    work = f"{len(columns)} of 8 columns of {len(content) >> 20} MiB"
                    found.append(Figure(work, mine, "s", "", note))
    return found


def _content(rows: int) -> bytes:
    luck, sink = np.random.default_rng(0), BytesIO()
    table = pa.table({f"c{i}": luck.random(rows) for i in range(8)})
    pq.write_table(table, sink, row_group_size=rows // _GROUPS, use_dictionary=False)
    return sink.getvalue()
