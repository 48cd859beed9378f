"""The law of damaged files: one that cannot be decoded stays where it is, and the rest of its group
is clustered. No row of another file is lost or doubled.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.execution import DIRECTORY
from bridge.expression.nodes import AlwaysTrue
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.table.model import Column
from tests.support.clustered import executed, rows_in, scheduled, timeline_of
from tests.support.lake import NAME, Lake, age, owned
from tests.tiers import examples

pytestmark = pytest.mark.full

EXAMPLES = examples(12, 12, 200)
LAYOUTS: list[dict[str, Any]] = [
    {"layout": "linear", "columns": ("x",), "grouping": "time"},
    {"layout": "kdtree", "columns": ("x", "s"), "grouping": "size"},
    {"layout": "binpack"},
]
Rows = Counter[tuple[Any, ...]]


def decoded(path: Path) -> Rows | None:
    """The rows of a file; None if it cannot be decoded."""
    try:
        return Counter(tuple(map(repr, row.values())) for row in rows_in(path))
    except (pa.ArrowException, OSError, ValueError):
        return None


def damage(path: Path, begin: int, length: int, byte: int) -> None:
    """Overwrites some bytes before the footer; size and time stay."""
    raw = bytearray(path.read_bytes())
    begin = 4 + begin % max(len(raw) // 4, 1)  # a quarter of the file is data, at the least
    raw[begin : begin + length] = bytes([byte]) * length
    overwrite(path, raw)


def overwrite(path: Path, raw: bytes | bytearray) -> None:
    stat = path.stat()
    path.write_bytes(raw)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def all_of(lake: Lake) -> ScanPlan:
    return lake.planner().plan(ScanRequest(NAME, AlwaysTrue()))


def seen(lake: Lake) -> tuple[Rows, set[Path]]:
    """The rows of all files that a scan reads and that can be decoded; and the other files."""
    rows: Rows = Counter()
    bad = set()
    for _, uri in owned(all_of(lake)):
        path = Path(uri.removeprefix("file://"))
        found = decoded(path)
        if found is None:
            bad.add(path)
        else:
            rows.update(found)
    return rows, bad


def made(root: Path, count: int) -> tuple[Lake, list[Path]]:
    lake = Lake(root, (Column("x", BIGINT), Column("s", STRING)))
    paths = []
    for i in range(count):
        path = lake.root / f"t/f{i}.parquet"
        table = pa.table({"x": [n * 7919 % 997 for n in range(i, 400, 3)]})
        text = [f"row {n} of {i}, {n * 104729 % 8191}" for n in range(len(table))]
        table = table.append_column("s", pa.array(text))
        pq.write_table(table, path, compression="snappy", write_page_checksum=i % 2 == 0)
        age(path, 100 + i)
        paths.append(path)
    lake.build()
    return lake, paths


@settings(max_examples=EXAMPLES)
@given(
    st.integers(2, 5),
    st.sampled_from(LAYOUTS),
    st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 4000), st.integers(1, 300), st.integers(0, 255)
        ),
        max_size=4,
    ),
)
def test_the_rest_of_the_group_is_clustered(
    count: int, layout: dict[str, Any], damages: list[tuple[int, int, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        lake, paths = made(Path(root), count)
        plan = scheduled(lake, **layout)
        assert [len(group.files) for group in plan.groups] == [count]
        for number, *where in damages:
            damage(paths[number % count], *where)
        before, bad = seen(lake)
        report = executed(lake, plan)
        assert seen(lake) == (before, bad)
        assert {Path(p.removeprefix("file://")) for _, p, _ in report.aside} == bad
        whole = count - len(bad)
        if whole >= 2:
            assert (report.state, report.old_files) == ("completed", whole)
            names = {uri for _, uri in owned(all_of(lake))}
            old = {uri for uri in names if f"/{DIRECTORY}/" not in uri}
            assert old == {f"file://{path}" for path in bad}
        else:
            assert report.state == "rejected"
        # They are not tried again, and the others are not held up by them.
        refused = {Path(f.path.removeprefix("file://")) for f in timeline_of(lake).list_refused()}
        assert refused == bad
        again = executed(lake, plan) if report.state == "completed" else report
        assert again.rows == report.rows and again.aside == report.aside
        assert seen(lake) == (before, bad)


def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path) -> None:
    lake, paths = made(tmp_path, 4)
    plan = scheduled(lake, **LAYOUTS[0])
    damage(paths[2], 0, 300, 0xFF)
    raw = paths[2].read_bytes()
    report = executed(lake, plan)
    assert (report.state, report.old_files, report.rejected) == ("completed", 3, ())
    ((group, path, reason),) = report.aside
    assert (group, path) == (0, f"file://{paths[2]}") and reason
    assert paths[2].read_bytes() == raw
    lake.build()
    assert scheduled(lake, **LAYOUTS[0]).groups == ()


def test_a_file_that_was_mended_joins_the_next_plan(tmp_path: Path) -> None:
    lake, paths = made(tmp_path, 3)
    plan = scheduled(lake, **LAYOUTS[0])
    damage(paths[0], 0, 300, 0xFF)
    assert executed(lake, plan).old_files == 2
    for i in (0, 9):
        lake.write(f"f{i}.parquet", {"x": [i], "s": ["new"]})
    lake.build()
    report = executed(lake, scheduled(lake, **LAYOUTS[0]))
    assert (report.state, report.old_files, report.aside) == ("completed", 2, ())


def test_a_page_that_does_not_fit_its_checksum_is_damage(tmp_path: Path) -> None:
    """It can be decoded, but a new file with a checksum of its own would hide the damage."""
    lake, paths = made(tmp_path, 3)
    table = pa.table({"x": list(range(100)), "s": ["a"] * 100})
    pq.write_table(table, paths[1], compression="none", use_dictionary=False,
                   write_page_checksum=True)  # fmt: skip
    age(paths[1], 500)
    lake.build()
    plan = scheduled(lake, **LAYOUTS[0])
    raw = paths[1].read_bytes()
    at = raw.index((42).to_bytes(8, "little"))
    overwrite(paths[1], raw[:at] + (41).to_bytes(8, "little") + raw[at + 8 :])
    assert pq.read_table(paths[1]).num_rows == 100
    report = executed(lake, plan)
    assert (report.state, report.old_files) == ("completed", 2)
    assert [path for _, path, _ in report.aside] == [f"file://{paths[1]}"]
    assert f"file://{paths[1]}" in {uri for _, uri in owned(all_of(lake))}


@pytest.mark.rule("32")
def test_a_page_with_fewer_rows_than_its_footer_says_is_damage(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    for i in range(3):
        lake.write(f"f{i}.parquet", pa.table({"x": list(range(i, i + 100))}))
    path = lake.root / "t/f1.parquet"
    table = pa.table({"x": pa.array(range(1, 101), pa.int64())})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    age(path, 500)
    lake.build()
    plan = scheduled(lake, **LAYOUTS[0])
    raw = path.read_bytes()
    assert raw.count(b"\x15\xc8\x01") == 1  # 100 values, in the page's header
    overwrite(path, raw.replace(b"\x15\xc8\x01", b"\x15\xc6\x01"))
    report = executed(lake, plan)
    assert (report.state, report.old_files) == ("completed", 2)
    assert [path for _, path, _ in report.aside] == [f"file://{path}"]
    assert f"file://{path}" in {uri for _, uri in owned(all_of(lake))}
