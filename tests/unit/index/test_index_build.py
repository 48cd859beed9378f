"""Builds, refreshes, crashes, rivals, damage."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.index.building.collect import FileTask, Reading, ThreadCollector
from bridge.index.generations import compact
from bridge.index.generations.manifest import VERSION
from bridge.index.generations.shard import Collected
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import GenerationNotFound, IndexConflict, IndexCorrupt, StorageFailure
from bridge.kernel.types import BIGINT
from bridge.storage.port import FileTable, Storage
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.model import Partition
from tests.support.index_builds import Dying, Killed, fill, kept
from tests.support.lake import Lake, age


def test_a_refresh_reads_only_what_is_new(lake: Lake) -> None:
    fill(lake, 5)
    first = lake.build()
    assert (first.generation, first.files, first.read, first.untrusted) == (1, 5, 5, 0)
    assert kept(lake, 25) == ["f002"]
    again = lake.build()
    assert (again.committed, again.read, again.generation, again.bytes_written) == (False, 0, 1, 0)
    fill(lake, 2, start=5)
    lake.path("f000").unlink()
    lake.write("f001", {"x": [777, 778]})
    seen: list[tuple[int, int]] = []
    report = lake.build(progress=lambda done, total: seen.append((done, total)))
    assert (report.generation, report.files, report.read, report.removed) == (2, 6, 3, 2)
    assert seen == [(3, 3)]
    assert kept(lake, 777) == ["f001"]
    assert kept(lake, 65) == ["f006"]
    assert lake.snapshot().num_files == 6


@pytest.mark.parametrize(("entries", "shards"), [(1, 5), (4, 3), (10, 1), (100, 1)])
def test_a_shard_ends_after_so_many_entries(lake: Lake, entries: int, shards: int) -> None:
    class OneByOne:
        def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
            for task in tasks:
                yield from ThreadCollector(lake.storage).collect([task], reading)

    fill(lake, 5)  # two columns each
    lake.build(collector=OneByOne(), shard_entries=entries)
    manifest = lake.store().latest()
    assert manifest is not None and len(manifest.shards) == shards
    assert kept(lake, 25) == ["f002"]


def test_an_old_generation_stays_readable(lake: Lake) -> None:
    fill(lake, 3)
    lake.build()
    lake.path("f000").unlink()
    lake.build()
    old = IndexSnapshot.open(lake.store().manifest(1), lake.store(), lake.root / "cache")
    assert (old.num_files, lake.snapshot().num_files) == (3, 2)
    with pytest.raises(GenerationNotFound, match="7"):
        lake.store().manifest(7)


@pytest.mark.parametrize(
    "spelling", ["/{}", "file:/{}", "file:///{}", "local:///{}", "file:///{}/"]
)
def test_pruning_happens_for_every_spelling(lake: Lake, spelling: str) -> None:
    fill(lake, 4)
    lake.build()
    location = canonical(spelling.format(lake.location.removeprefix("file:///")))
    listed = lake.storage.list_all(location, recursive=False)
    files = FileTable(listed.paths, listed.sizes, listed.modified)
    assert lake.snapshot().match(files).tolist() == [0, 1, 2, 3]


def test_rule_19_rewritten_within_a_tick_at_the_same_size(lake: Lake) -> None:
    """The clock cannot tell the two versions apart: the entry of the first must not be trusted."""
    path = lake.write("f", {"x": [1, 2]})
    now = time.time_ns() + int(2e9)
    os.utime(path, ns=(now, now))  # the writer's clock is ahead: no waiting settles it
    size = path.stat().st_size
    report = lake.build()
    assert (report.read, report.untrusted) == (1, 1)
    lake.write("f", {"x": [8, 9]})
    os.utime(path, ns=(now, now))
    assert path.stat().st_size == size
    assert lake.snapshot().match(lake.listed()).tolist() == [-1]
    assert kept(lake, 8) == ["f"]
    lake.write("g", {"x": [5]})
    lake.build()
    found = lake.column("x", BIGINT)
    assert found.lower.tolist() == [-(2**63), 5]
    assert (found.row_count[0], found.null_count[0], found.all_null) == (-1, -1, None)


def test_a_file_written_just_now_is_waited_for(lake: Lake) -> None:
    path = lake.write("f", {"x": [1]})
    age(path, -2.5)
    assert lake.build().untrusted == 0


class Rewriting(ThreadCollector):
    """Rewrites a file after it was listed, before it is read."""

    def __init__(self, storage: Storage, rewrite: Callable[[], object]) -> None:
        super().__init__(storage)
        self._rewrite = rewrite

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        self._rewrite()
        return super().collect(tasks, reading)


def test_rule_19_rewritten_while_it_is_read(lake: Lake) -> None:
    fill(lake, 2)
    collector = Rewriting(lake.storage, lambda: lake.write("f001", {"x": [777, 778, 779]}))
    report = lake.build(collector=collector)
    assert [reason.split(":")[0] for _, reason in report.failed] == ["FILE_CHANGED"]
    assert kept(lake, 777) == ["f001"]
    assert lake.build().read == 1
    assert kept(lake, 5) == ["f000"]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda raw: b"not a Parquet file at all", "FILE_CORRUPT"),
        (lambda raw: raw[:-10], "FILE_CORRUPT"),
        (lambda raw: raw[-9:], "FILE_CORRUPT"),
        (lambda raw: raw[:-40] + b"\xff" * 32 + raw[-8:], "FILE_CORRUPT"),
        (lambda raw: raw[:-8] + b"\xff\xff\xff\x7fPAR1", "FILE_CORRUPT"),
    ],
)
def test_a_damaged_file_is_kept_and_named(
    lake: Lake, damage: Callable[[bytes], bytes], code: str
) -> None:
    fill(lake, 2)
    path = lake.path("f001")
    path.write_bytes(damage(path.read_bytes()))
    age(path)
    report = lake.build()
    ((uri, reason),) = report.failed
    assert uri.endswith("/f001")
    assert reason.startswith(code)
    assert kept(lake, 5) == ["f000", "f001"]
    assert lake.snapshot().num_files == 2
    again = lake.build()
    assert (again.committed, again.read, again.bytes_written) == (False, 0, 0)


@pytest.mark.parametrize("done", [False, True])
def test_rule_21_a_builder_that_dies_at_its_kth_mutation(lake: Lake, done: bool) -> None:
    fill(lake, 4)
    lake.build()
    for k in range(1, 50):
        lake.write("f001", {"x": [1000 + k, 1001 + k]})
        shutil.rmtree(lake.path(f"m{k - 1}"), ignore_errors=True)
        lake.write(f"m{k}/f", {"x": [k]})
        before = lake.store().latest()
        assert before is not None
        try:
            lake.build(Dying(lake.storage, k, done=done))  # type: ignore[arg-type]
        except Killed:
            after = lake.store().latest()
            assert after is not None
            assert after.generation - before.generation in ((0, 1) if done else (0,))
            assert kept(lake, 25) == ["f002"] or after.generation == before.generation
            assert "f001" in kept(lake, 1000 + k)
            assert lake.build().files == 5
            assert kept(lake, 1000 + k) == ["f001"]
            continue
        assert k >= 4  # two files of a shard, tombstones, the manifest
        assert kept(lake, 1000 + k) == ["f001"]
        break
    else:
        pytest.fail("the build never completed")
    lake.store().clean(keep=1, older_than=-10)
    assert kept(lake, 25) == ["f002"]


class Timeout:
    """A storage that loses answers to conditional writes: before or after it carries them out."""

    def __init__(self, storage: Storage, *, written: bool) -> None:
        self._storage, self._written, self.left = storage, written, 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        if not self.left:
            return self._storage.put_if_absent(uri, content)
        self.left -= 1
        if self._written:
            self._storage.put_if_absent(uri, content)
        raise StorageFailure("timed out", "")


def test_an_answer_lost_is_read_back(lake: Lake) -> None:
    fill(lake, 2)
    report = lake.build(Timeout(lake.storage, written=True))  # type: ignore[arg-type]
    assert (report.generation, report.committed) == (1, True)
    fill(lake, 2, start=2)
    with pytest.raises(StorageFailure):
        lake.build(Timeout(lake.storage, written=False))  # type: ignore[arg-type]
    assert lake.build().generation == 2


def test_two_builders_at_once_lose_nothing(lake: Lake) -> None:
    fill(lake, 3)
    lake.build()
    fill(lake, 2, start=3)

    def rival() -> None:
        fill(lake, 1, start=5)
        assert lake.build().generation == 2

    report = lake.build(collector=Rewriting(lake.storage, rival))
    assert report.generation == 2  # the winner had read all that this one did
    assert not report.committed
    assert kept(lake, 55) == ["f005"]
    assert lake.snapshot().num_files == 6


def test_the_loser_adds_what_the_winner_lacks(lake: Lake) -> None:
    fill(lake, 3)

    def rival() -> None:
        moved = lake.path("f000").rename(lake.root / "aside")
        lake.build()
        moved.rename(lake.path("f000"))

    report = lake.build(collector=Rewriting(lake.storage, rival))
    assert (report.generation, report.committed) == (2, True)
    assert lake.snapshot().num_files == 3
    assert lake.snapshot().match(lake.listed()).tolist() == [0, 1, 2]
    assert kept(lake, 5) == ["f000"]


def test_a_commit_of_a_taken_number_conflicts(lake: Lake) -> None:
    fill(lake, 1)
    lake.build()
    manifest = lake.store().latest()
    assert manifest is not None
    assert lake.store().commit(manifest) == manifest  # its own: the answer was lost, say
    with pytest.raises(IndexConflict):
        lake.store().commit(dataclasses.replace(manifest, builder="other"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace(f'"version": {VERSION}', '"version": 1'),
        lambda text: text.replace('"num_files": 3', '"num_files": 4'),
        lambda text: "{}",
        lambda text: "[1]",
    ],
)
def test_a_broken_manifest_is_refused_and_replaced(
    lake: Lake, damage: Callable[[str], str]
) -> None:
    fill(lake, 3)
    lake.build()
    path = lake.path(".skipbridge/generations/1.json")
    path.write_text(damage(path.read_text()))
    with pytest.raises(IndexCorrupt):
        lake.store().latest()
    report = lake.build()
    assert (report.generation, report.read) == (2, 3)
    assert kept(lake, 25) == ["f002"]


def test_a_foreign_version_with_a_right_checksum(lake: Lake) -> None:
    fill(lake, 1)
    lake.build()
    path = lake.path(".skipbridge/generations/1.json")
    body = json.loads(path.read_text())
    body["version"] = 99
    path.write_text(json.dumps(body))
    with pytest.raises(IndexCorrupt, match="99"):
        lake.store().latest()


@pytest.mark.parametrize("part", ["files", "columns"])
def test_a_broken_shard_is_refused_and_replaced(lake: Lake, part: str) -> None:
    fill(lake, 3)
    lake.build()
    (path,) = lake.path(".skipbridge/shards").glob(f"*-{part}.shard")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(IndexCorrupt, match="checksum"):
        lake.snapshot()
    path.unlink()
    with pytest.raises(IndexCorrupt, match="gone"):
        lake.snapshot()
    assert lake.build(full=True).read == 3
    assert kept(lake, 25) == ["f002"]


def test_many_refreshes_are_compacted(lake: Lake) -> None:
    fill(lake, 3)
    for i in range(3, 3 + compact.MAX_SHARDS + 2):
        fill(lake, 1, start=i)
        lake.path(f"f{i - 3:03d}").unlink()
        lake.build()
    manifest = lake.store().latest()
    assert manifest is not None
    assert len(manifest.shards) <= compact.MAX_SHARDS
    assert manifest.num_files == lake.snapshot().num_files == 3
    assert kept(lake, 195) == ["f019"]


def test_cleaning_keeps_what_kept_generations_need(lake: Lake) -> None:
    for i in range(5):
        fill(lake, 1, start=i)
        lake.build()
    assert lake.store().clean(keep=2) == 0  # too young
    assert lake.store().clean(keep=2, older_than=-10) == 3
    assert lake.store().generations() == [4, 5]
    for number in (4, 5):
        manifest = lake.store().manifest(number)
        found = IndexSnapshot.open(manifest, lake.store(), lake.root / "other")
        assert found.num_files == number


def test_partitions_anywhere(lake: Lake, tmp_path: Path) -> None:
    lake.write("m=1/a", {"x": [1]})
    lake.write("m=2/b", {"x": [2]})
    far = tmp_path / "elsewhere"
    far.mkdir()
    lake.path("m=2/b").rename(far / "b")
    partitions = [
        Partition("m=1", ("1",), f"{lake.location}/m=1"),
        Partition("m=2", ("2",), canonical(str(far))),
    ]
    lake.all_partitions = lambda: partitions  # type: ignore[method-assign]
    lake.build()
    serving = lake.snapshot()
    names = dict(zip(serving.paths.to_pylist(), serving.partition.tolist(), strict=True))
    assert {p: serving.owners[i] for p, i in names.items()} == {
        f"{lake.location}/m=1/a": ("m=1",),
        f"file://{far}/b": ("m=2",),
    }


def test_the_local_form_is_private_and_rebuilt(lake: Lake) -> None:
    fill(lake, 2)
    lake.build()
    lake.snapshot()
    (directory,) = (lake.root / "cache").iterdir()
    assert (lake.root / "cache").stat().st_mode & 0o777 == 0o700
    assert directory.stat().st_mode & 0o777 == 0o700
    (directory / "c0.arrow").write_bytes(b"short")
    assert lake.bounds("x", BIGINT) == (0, 9)


def test_an_empty_table(lake: Lake) -> None:
    report = lake.build()
    assert (report.generation, report.files) == (1, 0)
    serving = lake.snapshot()
    assert serving.num_files == 0
    fill(lake, 1)
    assert serving.match(lake.listed()).tolist() == [-1]


def test_many_storages_are_one(lake: Lake) -> None:
    fill(lake, 2)
    lake.build(open_storage())
    assert lake.snapshot().paths_at(np.array([1])).to_pylist() == [f"{lake.location}/f001"]


def test_what_a_dead_process_left_in_the_local_cache_is_removed(lake: Lake) -> None:
    fill(lake, 2)
    lake.build()
    lake.snapshot()
    left = [lake.root / "cache" / f".building-{name}" for name in ("old", "young")]
    for path in left:
        path.mkdir()
        (path / "files.arrow").write_bytes(b"x" * 100)
    os.utime(left[0], (0, 0))
    fill(lake, 1, start=2)
    lake.build()
    lake.snapshot()
    assert [path.exists() for path in left] == [False, True]


def test_a_table_whose_files_are_all_gone(lake: Lake) -> None:
    fill(lake, 3)
    lake.build()
    for path in lake.path("").glob("f*"):
        path.unlink()
    report = lake.build()
    assert (report.files, report.removed, report.committed) == (0, 3, True)
    assert lake.snapshot().num_files == 0 and not lake.build().committed
    fill(lake, 1)
    assert lake.build().read == 1 and kept(lake, 5) == ["f000"]


@pytest.mark.parametrize("parts", [False, True])
def test_a_file_is_read_again_as_the_format_that_its_partition_has_now(
    lake: Lake, parts: bool
) -> None:
    """Until then it is kept, and a format that fails, too, is told and not tried for ever."""
    fill(lake, 3)
    orc = lake.path("f001")
    po.write_table(pa.table({"x": [10, 19], "s": ["a1", "b1"]}), orc)
    age(orc)
    every = 1 if parts else 0
    first = lake.build(files_per_commit=every)
    ((uri, reason),) = first.failed
    assert uri == f"file://{orc}" and reason.endswith(" (read as parquet)")
    assert kept(lake, 777) == ["f001"]
    lake.format = "orc"
    report = lake.build(files_per_commit=every)
    assert (report.read, report.failed, report.committed) == (1, (), True)
    assert kept(lake, 777) == [] and kept(lake, 15) == ["f001"]
    assert lake.build().read == 0
    lake.write("f003", {"x": [30], "s": ["a"]})
    ((uri, reason),) = lake.build().failed
    assert uri.endswith("f003") and reason.endswith(" (read as orc)")
    again = lake.build()
    assert (again.read, again.committed) == (0, False)
    lake.format = "parquet"
    report = lake.build(files_per_commit=every)
    assert (report.read, report.failed) == (1, ()) and kept(lake, 30) == ["f003"]
    assert kept(lake, 777) == [] and lake.snapshot().num_files == 4


def test_no_file_of_an_index_is_found_by_readers_of_parquet(lake: Lake) -> None:
    """DuckDB's ``**`` descends into hidden directories, too."""
    fill(lake, 3)
    lake.build()
    below = lake.path(".skipbridge").rglob("*")
    assert [file for file in below if file.suffix in (".parquet", ".orc")] == []
