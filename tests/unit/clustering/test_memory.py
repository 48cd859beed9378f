"""The rows that a rewrite holds are bounded by its memory and by parts, not by a new file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MIB = 1 << 20
FILES, ROWS, WIDTH = 12, 8_000, 500
OF_A_FILE = ROWS * WIDTH
_PEAK = """
import json, sys
import pyarrow as pa
from pathlib import Path
from bridge.clustering.rewriting.rewrite import Effort
from tests.unit.clustering.test_rewrite import rewritten
root, memory, group = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
found = rewritten(
    root, *sorted(root.glob("*.parquet")), effort=Effort(1, memory), row_group_bytes=group
)
print(json.dumps([found.rejected, len(found.new), pa.default_memory_pool().max_memory()]))
"""


def test_one_new_file_does_not_need_all_its_rows_in_memory(tmp_path: Path) -> None:
    """As Arrow counts them, in a process of its own: 46 MiB of rows go to one file."""
    rng = np.random.default_rng(5)
    order = rng.permutation(FILES * ROWS).reshape(FILES, ROWS)
    for i in range(FILES):
        text = [rng.bytes(WIDTH // 2).hex() for _ in range(ROWS)]
        table = pa.table({"k": order[i], "s": text})
        pq.write_table(table, tmp_path / f"f{i}.parquet", compression="none", use_dictionary=False)
    words = [str(tmp_path), str(MIB), str(2 * MIB)]
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *words], capture_output=True, text=True, check=True
    )
    rejected, files, peak = json.loads(done.stdout)
    assert (rejected, files) == ("", 1)
    # An old file is decoded and ordered, then a row group gathered and encoded.
    assert 2 * MIB < peak < MIB + 3 * OF_A_FILE
