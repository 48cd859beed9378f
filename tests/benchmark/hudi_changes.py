"""An incremental query over the last of 1,000 commits of a Hudi table, in Trino 476.

The table is copy-on-write, of version 8, and written here: its timeline is never archived, which is
the longest one that a planner has to read.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from bridge.table.hudi.format import TABLE_FORMAT
from bridge.table.hudi.open_tables import OpenTables
from tests.benchmark.figures import Figure, median
from tests.benchmark.hudi import cluster
from tests.support.hudi_tables import HudiTable

COMMITS, FILES, ROWS = 1_000, 4, 500
_META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        table = Path(scratch) / "stream"
        instants = _write(table)
        figures = _anew(table, instants)
        query = cluster(stack, Path(scratch), ("stream",))

        def changes(start: str) -> str:
            return (
                "SELECT count(*), sum(n), min(id) FROM "
                f"TABLE(bridge.system.table_changes('hudi', 'stream', '{start}'))"
            )

        ids = COMMITS * FILES * ROWS
        (last,) = query("bridge", changes(instants[-2]))
        assert last[0] == FILES * ROWS and last[2] == ids - FILES * ROWS, last
        figures += [
            Figure(
                f"changes of the last of {COMMITS:,} commits, planner warm",
                median(lambda: query("bridge", changes(instants[-2])), 9, 5),
                "s",
                "≤ 0.5",
            ),
            Figure(
                "changes of the last 100 commits",
                median(lambda: query("bridge", changes(instants[-101])), 5, 2),
            ),
        ]
    return figures


def _anew(table: Path, instants: list[str]) -> list[Figure]:
    """The plan of the same query in a process that never saw the table."""
    with bridge.connect() as session:
        opened = session.table(str(table))

        def plan() -> None:
            TABLE_FORMAT._tables = OpenTables()
            assert opened.scan(changes=(instants[-2], "")).files().num_rows == FILES

        return [Figure("its plan in process, timeline read anew", median(plan, 7, 1) * 1e3, "ms")]


def _write(directory: Path) -> list[str]:
    """Writes the table; returns its instants, which are its completion times too."""
    directory.mkdir()
    settings = {
        "hoodie.table.recordkey.fields": "id",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
    }
    table = HudiTable(
        directory, 8, "COPY_ON_WRITE", **{k.replace(".", "__"): v for k, v in settings.items()}
    )
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in _META]
    fields += [{"name": name, "type": ["null", "long"], "default": None} for name in ("id", "n")]
    schema = json.dumps({"type": "record", "name": "stream", "fields": fields})
    instants = []
    for commit in range(COMMITS):
        instant = f"202601{1 + commit // 86_400:02d}{commit // 3600:02d}{commit // 60 % 60:02d}"
        instant += f"{commit % 60:02d}000"
        files = []
        for part in range(FILES):
            group = f"{commit:08d}-0000-0000-0000-{part:012d}-0"
            base = table.base("", group, instant)
            first = (commit * FILES + part) * ROWS
            ids = range(first, first + ROWS)
            text = [pa.array([instant] * ROWS)] * 2 + [pa.array([str(i) for i in ids])]
            text += [pa.array([""] * ROWS), pa.array([base.name] * ROWS)]
            rows = pa.table([*text, pa.array(ids), pa.array(ids)], names=[*_META, "id", "n"])
            pq.write_table(rows, directory / base.name)
            files.append(
                table.base("", group, instant, size=(directory / base.name).stat().st_size)
            )
        table.commit(instant, files, action="commit", operation="INSERT", schema=schema)
        instants.append(instant)
    (directory / ".hoodie_partition_metadata").write_text("partitionDepth=0\n")
    return instants
