"""Records that cannot be made anew from files: every later release reads these bytes.

A change of what a record holds adds its files here under a new number, and edits none.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.clustering.hudi.planning import kept_in_plan, plan_options
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.publication.switches import Switches
from bridge.index.generations.replacements import FileState
from bridge.kernel.errors import FileCorrupt, SegmentLogCorrupt
from bridge.storage.commit_log import seal
from bridge.storage.routed import open_storage
from bridge.table.hudi.timeline.clusterings import HudiClustering
from bridge.table.hudi.timeline.instant import Instant, State
from bridge.table.segments.manifest import Status, parse_manifest

RECORDS = Path(__file__).parents[1] / "vectors" / "records"


def test_a_version_of_a_table_of_segments() -> None:
    raw = (RECORDS / "segment_log_1.json").read_bytes()
    found = parse_manifest(raw, "it")
    assert (found.version, found.root, found.operation) == (
        4,
        "file:///lake/t",
        "DISABLE SEGMENT 0",
    )
    assert [(c.id, c.name, str(c.type)) for c in found.definition.columns] == [
        (0, "k", "bigint"),
        (1, "s", "string"),
    ]
    assert [(i.name, i.kind, i.columns) for i in found.definition.indexes] == [
        ("i", "bloom", ("k",))
    ]
    (segment,) = found.segments
    assert (segment.id, segment.status, segment.format) == ("0", Status.DISABLED, "parquet")
    assert segment.files.blob.name.startswith("_segments/files/") and segment.files.count == 1
    body = json.loads(raw) | {"format_version": 99}
    del body["checksum"]
    later = seal(body)
    with pytest.raises(SegmentLogCorrupt, match="format version 99") as refused:
        parse_manifest(later, "it")
    assert refused.value.hint == "upgrade this program"


def test_a_version_of_a_table_with_partition_columns() -> None:
    found = parse_manifest((RECORDS / "segment_log_2.json").read_bytes(), "it").definition
    assert [(c.id, c.name, str(c.type), c.comment) for c in found.partition_columns] == [
        (2, "day", "date", None),
        (3, "city", "string", "where"),
    ]
    assert found.next_column == 4 and [c.name for c in found.columns] == ["k", "s"]


@pytest.fixture
def published(tmp_path: Path) -> Switches:
    records = tmp_path / ".skipbridge_clustered/switches"
    records.mkdir(parents=True)
    for kind in ("begun", "ended", "made"):
        name = f"5123495753a7b3e5-00001.{kind}.json"
        shutil.copy(RECORDS / f"switch_1.{kind}.json", records / name)
    shutil.copy(RECORDS / "switch_1.accepted.json", records / f"accepted-{'0' * 32}.json")
    (tmp_path / "day=1").mkdir()
    shutil.copy(RECORDS / "left_1.json", tmp_path / "day=1/.skipbridge_left")
    return Switches(open_storage(), f"file://{tmp_path}", "d.t")


def test_a_publication(published: Switches, tmp_path: Path) -> None:
    ((switch,),) = published.load().values()
    old, new = (
        f"file://{tmp_path}/day=1",
        ".skipbridge_clustered/published-20260101000000000-1/day=1",
    )
    went = FileState(f"{old}/a.parquet", 10, 1700000000000000, None)
    wrote = FileState(f"file://{tmp_path}/{new}/b.parquet-data", 11, 1700000001000000, '"e"')
    assert (switch.partition, switch.number, switch.state) == ("day=1", 1, "made")
    assert (switch.old, switch.new, switch.back) == (old, f"file://{tmp_path}/{new}", False)
    assert (switch.went, switch.wrote) == ((went,), (wrote,))
    assert published.read_marker(old) == ("day=1", 1)
    assert published.load_accepted() == [went]


def test_a_publication_of_a_later_version_is_refused(published: Switches, tmp_path: Path) -> None:
    path = tmp_path / ".skipbridge_clustered/switches/5123495753a7b3e5-00001.ended.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(FileCorrupt, match="has version 2, this program reads 1"):
        published.load()


def test_the_options_of_a_plan_of_hudi() -> None:
    kept = {
        "skipbridge.version": "1",
        "skipbridge.layout": "linear",
        "skipbridge.columns": '["k"]',
        "skipbridge.options": '{"hoodie.parquet.block.size": "1024", "other": "x"}',
    }
    written = kept_in_plan(
        Strategy("linear", ("k",)), {"hoodie.parquet.block.size": "1024", "other": "x"}
    )
    assert written == kept
    plan = HudiClustering(Instant("1", "clustering", State.REQUESTED, None, ""), (), (), kept)
    assert plan_options(plan) == {"hoodie.parquet.block.size": "1024"}
    later = replace(plan, extra={**kept, "skipbridge.version": "2"})
    with pytest.raises(FileCorrupt, match="options of version 2, this program reads 1"):
        plan_options(later)
