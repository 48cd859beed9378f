"""The law of rewriting ORC: random files keep every value and type, or are rejected by name.

Files differ in the order, the names, the width and the number of their columns, in compression,
and in whether their text is declared with lengths.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest
from hypothesis import HealthCheck, given, settings

from bridge.clustering.checksum import row_hashes
from bridge.clustering.orc_tail import OrcTail
from bridge.clustering.registry import layout
from bridge.clustering.rewrite import GroupTask, rewrite_group
from tests.laws.test_orc import OrcLake, write
from tests.support.strategies import Case, cases, table
from tests.tiers import examples
from tests.unit.clustering.test_orc import described
from tests.unit.clustering.test_rewrite import STORAGE, state_of

EXAMPLES = examples(25, 25, 400)
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
seen: Counter[str] = Counter()


def hashes(path: Path) -> list[tuple[str, int]]:
    """A hash of each row, with the schema of its file."""
    file = po.ORCFile(path)
    batches = file.read().to_batches()
    found = [row_hashes(batch) for batch in batches] or [np.empty(0, np.uint64)]
    shape = repr(OrcTail(path.read_bytes()).raw_types)
    return [(shape, int(each)) for each in np.concatenate(found)]


def declared(path: Path, rng: random.Random) -> None:
    """The file with other codecs, and with lengths of some text columns."""
    whole = po.ORCFile(path).read()
    texts = [f.name for f in whole.schema if pa.types.is_string(f.type)]
    kinds = {name: (rng.choice((16, 17)), 30) for name in texts if rng.random() < 0.5}
    once = len(set(whole.column_names)) == whole.num_columns
    described(path, whole, kinds if once else {}, compression=rng.choice(CODECS))


def is_refused(path: Path) -> bool:
    """Whether a file has instants, times beyond nanoseconds, or fractions of early seconds."""
    if any(t.kind.endswith("zone") for t in OrcTail(path.read_bytes()).types):
        return True
    try:
        columns = po.ORCFile(path).read().flatten().columns
    except pa.ArrowInvalid:
        return True
    for column in columns:
        if pa.types.is_timestamp(column.type):
            held = column.cast(pa.int64()).drop_null().to_numpy()
            if ((held < 0) & (held % 10**9 != 0)).any():
                return True
    return False


@settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_every_row_is_kept_or_the_group_is_rejected(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    rng = case.rng()
    data = table(rng, case.types, 5)
    root = tmp_path_factory.mktemp("orc")
    lake = OrcLake(root)
    for i, rows in enumerate(data.files):
        try:
            write(lake, f"f{i}.orc", data, rows, rng)
        except (pa.ArrowException, OSError):  # a time that ORC's writer does not take
            lake.path(f"f{i}.orc").unlink(missing_ok=True)
            continue
        if rng.random() < 0.6 and not is_refused(lake.path(f"f{i}.orc")):
            declared(lake.path(f"f{i}.orc"), rng)
    files = sorted(lake.path("").glob("*.orc"))
    if not files:
        return
    names = [c.name for c in data.columns if not c.type.is_nested]
    by = tuple(rng.sample(names, rng.randint(0, min(2, len(names)))))
    name = rng.choice(("hilbert", "zorder", "linear")) if len(by) == 2 else "linear"
    task = GroupTask(
        0,
        "",
        tuple(state_of(path) for path in files),
        rng.randint(1, 3),
        name if by else "binpack",
        by,
        f"file://{root}/.new",
        rng.choice((None, None, "zstd")),
        1 << 20,
        "orc",
        tuple(names.index(each) for each in by),
    )
    result = rewrite_group(task, STORAGE, layout(task.layout, len(by)))
    new = [Path(state.path.removeprefix("file://")) for state in result.new]
    if result.rejected:
        seen["rejected"] += 1
        assert not list((root / ".new").glob("*"))
        assert any(is_refused(path) for path in files), result.rejected
        return
    left = {Path(path.removeprefix("file://")) for path, _ in result.aside}
    assert all(is_refused(path) for path in left), result.aside
    before = Counter(each for path in files if path not in left for each in hashes(path))
    assert Counter(each for path in new for each in hashes(path)) == before
    seen["rewritten"] += 1
    seen["rows"] += result.rows


def test_most_tables_were_rewritten() -> None:
    assert not seen or (seen["rewritten"] > seen["rejected"] and seen["rows"] > 20)
