"""Files that cannot be read, and damaged files of the index: nothing leaks, little is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.bind import bind
from bridge.expression.builders import eq
from bridge.index.building.alter_index import change_settings, drop_index
from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.entries import live_entries
from bridge.index.generations.manifest import VERSION, Blob
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings, KindDefinition
from bridge.index.kinds.registry import kind
from bridge.kernel.errors import IndexConflict, IndexCorrupt, IndexNewer, InvalidUri
from bridge.kernel.types import BIGINT, TRINO, Field
from bridge.storage.commit_log import seal
from bridge.storage.port import Storage
from tests.support.directories import in_directories
from tests.support.index_builds import fill, kept
from tests.support.lake import Lake, age


def files_of(lake: Lake) -> set[str]:
    root = lake.path(".skipbridge")
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def corrupt(lake: Lake, name: str) -> Path:
    path = lake.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1 this is no Parquet file PAR1")
    age(path)
    return path


def problems(lake: Lake) -> list[str]:
    manifest = lake.store().latest()
    assert manifest is not None
    found = live_entries(manifest, lake.store()).files["problem"].to_pylist()
    return [text.partition(":")[0] for text in found if text]


def bloom(column: str) -> KindDefinition:
    return kind("bloom").define(column)


@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_27_a_file_that_failed_is_left_alone_until_it_changes(lake: Lake, nan: str) -> None:
    fill(lake, 3)
    path = corrupt(lake, "f001")
    first = lake.build(nan=nan)
    assert [uri[-4:] for uri, _ in first.failed] == ["f001"]
    assert problems(lake) == ["FILE_CORRUPT"]
    held = files_of(lake)
    for _ in range(5):
        again = lake.build(nan=nan)
        assert (again.committed, again.read, again.failed) == (False, 0, ())
    assert files_of(lake) == held
    assert kept(lake, 5) == ["f000", "f001"]
    age(path, 60)  # perhaps another file
    assert lake.build(nan=nan).read == 1
    assert problems(lake) == ["FILE_CORRUPT"]
    lake.write("f001", {"x": [777]})
    assert (lake.build(nan=nan).read, problems(lake)) == (1, [])
    assert kept(lake, 5) == ["f000"] and kept(lake, 777) == ["f001"]
    path = corrupt(lake, "f001")
    lake.build(nan=nan)
    path.unlink()
    lake.build(nan=nan)
    assert problems(lake) == []


def test_27_a_full_build_tries_again(lake: Lake) -> None:
    fill(lake, 2)
    corrupt(lake, "f001")
    lake.build()
    assert lake.build(full=True).read == 2
    assert problems(lake) == ["FILE_CORRUPT"]


def test_27_other_settings_try_again_once(lake: Lake) -> None:
    fill(lake, 3)
    corrupt(lake, "f001")
    lake.build()
    report = lake.build(settings=lambda held: held.adding([bloom("s")]))
    assert (report.read, len(report.failed)) == (3, 1)
    held = files_of(lake)
    assert not lake.build().committed
    assert files_of(lake) == held


def test_27_a_file_that_cannot_be_opened_is_tried_again_and_leaks_nothing(lake: Lake) -> None:
    """Rights may come back though neither size nor time changes."""
    fill(lake, 2)
    unreadable = _Refusing(lake.storage, "f001")
    lake.build(unreadable)  # type: ignore[arg-type]
    assert problems(lake) == ["FILE_UNREADABLE"]
    held = files_of(lake)
    for _ in range(3):
        again = lake.build(unreadable)  # type: ignore[arg-type]
        assert (again.committed, again.read, len(again.failed)) == (False, 1, 1)
    assert files_of(lake) == held
    assert lake.build().committed
    assert (problems(lake), kept(lake, 5)) == ([], ["f000"])


class _Refusing:
    """A storage that refuses one file, each time with another text."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name, self._times = storage, name, 0

    def __getattr__(self, method: str):  # type: ignore[no-untyped-def]
        found = getattr(self._storage, method)
        if not method.startswith("read"):
            return found

        def read(uri: str, *arguments: object) -> object:
            if uri.endswith(self._name):
                from bridge.kernel.errors import FileUnreadable

                self._times += 1
                raise FileUnreadable(f"{uri}: denied, request {self._times}", "")
            return found(uri, *arguments)

        return read


def test_19_a_file_ahead_of_the_clock_leaks_nothing(lake: Lake) -> None:
    fill(lake, 2)
    age(lake.path("f001"), -3600)
    assert lake.build().untrusted == 1
    held = files_of(lake)
    for _ in range(3):
        again = lake.build()
        assert (again.committed, again.read, again.untrusted) == (False, 1, 1)
    assert files_of(lake) == held
    age(lake.path("f001"), 7200)
    assert (lake.build().untrusted, kept(lake, 5)) == (0, ["f000"])


def test_21_settings_come_from_the_newest_manifest_that_can_be_read(lake: Lake) -> None:
    fill(lake, 3)
    lake.build(settings=lambda held: held.adding([bloom("s")]).with_modes({"x": "counts"}))
    for number in (3, 4):
        fill(lake, 1, start=number)
        lake.build()
    for generation in (2, 3):
        manifest = lake.path(f".skipbridge/generations/{generation}.json")
        manifest.write_text(manifest.read_text()[:-30])
    report = lake.build()
    assert (report.generation, report.read) == (4, 5)
    settings = lake.store().manifest(4).settings
    assert [d.name for d in settings.definitions] == ["bloom(s)"]
    assert settings.modes == (("x", "counts"),)
    assert all(s.payloads for s in lake.store().manifest(4).shards)


@pytest.mark.parametrize("part", ["files.shard", "columns.shard", "k0.shard", "k0.body"])
def test_21_a_damaged_shard_loses_no_settings(lake: Lake, part: str) -> None:
    fill(lake, 3)
    lake.build(settings=lambda held: held.adding([bloom("s"), bloom("x")]))
    for path in lake.path(".skipbridge/shards").glob(f"*{part}"):
        path.write_bytes(path.read_bytes()[:-5])
    # What is asked for is asked for once, also where the entries turn out to be damaged.
    report = lake.build(settings=lambda held: held.without("bloom(s)"), full=part != "files.shard")
    assert report.read == 3
    settings = lake.store().manifest(2).settings
    assert [d.name for d in settings.definitions] == ["bloom(x)"]
    assert kept(lake, 5) == ["f000"]


def test_21_a_change_is_made_once_in_a_build_of_many_commits(lake: Lake) -> None:
    fill(lake, 4)
    lake.build(settings=lambda held: held.adding([bloom("s")]))
    fill(lake, 4, start=4)
    report = lake.build(settings=lambda held: held.without("bloom(s)"), files_per_commit=1)
    assert report.read == 4
    latest = lake.store().latest()
    assert latest is not None and latest.settings == IndexSettings()


def test_21_a_damaged_index_can_be_dropped_and_is_not_cleaned(lake: Lake) -> None:
    for number in range(3):
        fill(lake, 1, start=number)
        lake.build()
    newest = lake.path(".skipbridge/generations/3.json")
    whole = newest.read_text()
    newest.write_text(whole[:-30])
    held = files_of(lake)
    assert lake.store().clean(keep=1, older_than=-10) == 0
    assert files_of(lake) == held
    newest.write_text(whole)  # a copy was at hand
    older = lake.path(".skipbridge/generations/2.json")
    held_by_older, text = files_of(lake), older.read_text()
    older.write_text(text[:-30])
    assert lake.store().clean(keep=2, older_than=-10) == 0
    assert files_of(lake) == held_by_older
    older.write_text(text)
    assert kept(lake, 5) == ["f000"]
    newest.write_text(whole[:-30])
    with pytest.raises(IndexCorrupt):
        change_settings(lake.store(), lambda settings: settings)
    drop_index(lake.store())
    assert files_of(lake) == set()


def test_21_what_a_later_version_wrote_is_left_alone(lake: Lake) -> None:
    fill(lake, 2)
    lake.build()
    fill(lake, 1, start=2)
    lake.build()
    path = lake.path(".skipbridge/generations/2.json")
    body = json.loads(path.read_text())
    body["version"] = 99
    del body["checksum"]
    path.write_text(seal(body).decode())
    held = files_of(lake)
    for act in (lake.build, lake.store().latest, lambda: lake.store().clean(1, -10)):
        with pytest.raises(IndexNewer, match="99"):
            act()
    assert files_of(lake) == held


@pytest.mark.parametrize("layout", [1, VERSION - 1])
def test_21_an_index_of_an_earlier_layout_is_made_anew_with_its_settings(
    lake: Lake, layout: int
) -> None:
    fill(lake, 3)
    bloom = kind("bloom").define("x")
    lake.build(settings=lambda held: held.adding([bloom]))
    path = lake.path(".skipbridge/generations/1.json")
    body = json.loads(path.read_text()) | {"version": layout}
    del body["checksum"]
    path.write_text(seal(body).decode())
    with pytest.raises(IndexCorrupt, match=f"layout {layout}, this program reads {VERSION}"):
        lake.store().latest()
    assert lake.planner().views.view(lake.table()).index is None  # nothing of it is used
    held = files_of(lake)
    assert lake.store().clean(1, -10) == 0 and files_of(lake) == held
    assert lake.build().read == 3
    manifest = lake.store().latest()
    assert manifest is not None and manifest.version == VERSION
    assert manifest.settings.definitions == (bloom,)
    assert kept(lake, 5) == ["f000"]
    lake.store().clean(1, -10)
    assert kept(lake, 5) == ["f000"]


def test_a_builder_that_always_loses_gives_up_and_clean_takes_its_files(lake: Lake) -> None:
    fill(lake, 2)
    lake.build()

    class Losing(IndexStore):
        def commit(self, manifest):  # type: ignore[no-untyped-def]
            raise IndexConflict("taken", "")

    fill(lake, 1, start=2)
    held = files_of(lake)

    with pytest.raises(IndexConflict):
        build_index(
            lake.table(),
            in_directories(lake.all_partitions(), lake.storage, recursive=True),
            Losing(lake.storage, lake.store().root),
            collector=ThreadCollector(lake.storage),
        )
    assert files_of(lake) > held
    lake.store().clean(keep=1, older_than=-10)
    assert files_of(lake) == held


class _Raising:
    """A storage whose reads of one file raise what no reader foresees."""

    def __init__(self, storage: Storage, name: str, error: BaseException) -> None:
        self._storage, self._name, self._error = storage, name, error

    def __getattr__(self, method: str):  # type: ignore[no-untyped-def]
        found = getattr(self._storage, method)
        if not method.startswith("read"):
            return found

        def read(uri: str, *arguments: object) -> object:
            if uri.endswith(self._name):
                raise self._error
            return found(uri, *arguments)

        return read


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc failed"),
        OSError(24, "Too many open files"),
        TypeError("a bug"),
        InvalidUri("a name that nothing can open", ""),
    ],
)
def test_27_what_is_not_the_files_fault_is_tried_again_and_leaks_nothing(
    lake: Lake, error: BaseException
) -> None:
    fill(lake, 2)
    failing = _Raising(lake.storage, "f001", error)
    assert len(lake.build(failing).failed) == 1  # type: ignore[arg-type]
    assert problems(lake) == ["FILE_UNREADABLE"]
    held = files_of(lake)
    for _ in range(3):
        again = lake.build(failing)  # type: ignore[arg-type]
        assert (again.committed, again.read, len(again.failed)) == (False, 1, 1)
    assert files_of(lake) == held
    assert lake.build().committed
    assert (problems(lake), kept(lake, 5)) == ([], ["f000"])


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc failed")])
def test_27_no_memory_for_a_files_data_is_not_its_damage(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fill(lake, 2)
    lake.build()

    def full(*_: object) -> object:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("bridge.index.building.collect.DEEP.read", full)
        lake.build(settings=lambda held: held.adding([bloom("s")]))
        assert kept(lake, 5) == ["f000"]  # what was known before is not lost
    assert lake.build().read == 2


def test_27_damaged_data_leaves_what_the_footer_says(lake: Lake) -> None:
    """Only the kinds read pages: min/max of the file is as good as without them."""
    fill(lake, 2)
    path = lake.path("f001")
    raw = bytearray(path.read_bytes())
    raw[4:40] = b"\xff" * 36
    path.write_bytes(bytes(raw))
    age(path)
    lake.build()
    assert kept(lake, 5) == ["f000"]
    settings = IndexSettings((kind("values").define("x"), bloom("x")))
    report = lake.build(settings=lambda _: settings)
    ((uri, reason),) = report.failed
    assert uri.endswith("f001") and reason.startswith("FILE_CORRUPT")
    assert (problems(lake), kept(lake, 5)) == (["FILE_CORRUPT"], ["f000"])
    value = pq.read_metadata(path).row_group(0).column(0).statistics.min
    assert kept(lake, value) == ["f001"]
    held = files_of(lake)
    again = lake.build()
    assert (again.committed, again.read) == (False, 0)
    assert files_of(lake) == held
    serving = lake.snapshot()
    names = [uri.rpartition("/")[2] for uri in serving.paths.to_pylist()]
    for opened in serving.kinds:
        asked = bind(eq("x", 777), (Field("x", BIGINT),), (), TRINO)
        never = opened.never(asked, np.arange(len(names)), TRINO)
        assert never is not None
        assert [n for n, mask in zip(names, never, strict=True) if mask] == ["f000"]


def test_21_a_cleaning_that_meets_a_long_build_costs_no_committed_shard(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build commits just when the cleaning has read the generations, and after it deleted."""
    fill(lake, 2)
    lake.build()
    fill(lake, 1, start=2)
    store = lake.store()
    listed = store.storage.list_all

    def late(prefix: str, **options: object) -> object:
        if prefix.endswith("shards"):
            lake.build()
        return listed(prefix, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(store.storage, "list_all", late)
        assert store.clean(older_than=-60) == 0
    assert kept(lake, 25) == ["f002"]

    fill(lake, 1, start=3)
    monkeypatch.setattr("bridge.index.building.draft._CHECKED_AFTER", -1.0)
    begun: list[int] = []
    lacks = IndexStore.lacks

    def cleaned(self: IndexStore, blobs: Iterable[Blob]) -> Blob | None:
        if not begun:
            begun.append(lake.store().clean(keep=1, older_than=-60))
        return lacks(self, blobs)

    monkeypatch.setattr(IndexStore, "lacks", cleaned)
    report = lake.build()
    assert begun and begun[0] >= 2 and report.committed
    assert kept(lake, 35) == ["f003"] and kept(lake, 5) == ["f000"]
