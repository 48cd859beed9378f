"""Tables that change while they are read: no row is lost, and no two states are mixed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import (
    FileCorrupt,
    PartitionAbsent,
    ReadVersionNotFound,
    SnapshotExpired,
    UnsupportedTable,
)
from bridge.kernel.types import STRING
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileTable
from bridge.sync.hudi.files import HudiFiles
from bridge.table.directory.freshness import Cached, Freshness, Live
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.format import HudiFormat
from bridge.table.hudi.merging.reader_properties import _valid, log_properties
from bridge.table.hudi.open_tables import OpenTable
from bridge.table.hudi.schema.columns import KeySource, TableColumns, layout
from bridge.table.hudi.table_config import load_table_config
from bridge.table.model import CatalogTable, Column, OneBatch, Partition, PartitionBatch, TableName
from bridge.table.read_version import AsOfTime, AsOfVersion, ChangesBetween, ReadVersion
from bridge.table.snapshot import TableContext
from tests.support.hudi_tables import HudiTable, avro_body

LIVE = Live()
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
_SCHEMA = '{"type": "record", "name": "t", "fields": [{"name": "a", "type": "string"}]}'


class Disturbed(LocalStorage):
    """Calls a function once, after a listing of one directory was taken."""

    def __init__(self, directory: str, then: Callable[[], None]) -> None:
        super().__init__()
        self._directory, self._then = directory, then
        self._done = False

    def list_all(self, uri: str, *arguments: Any, **more: Any) -> FileTable:
        found = super().list_all(uri, *arguments, **more)
        if uri == self._directory and not self._done:
            self._done = True
            self._then()
        return found


def materialise(table: HudiTable) -> None:
    """Writes all data files, so that storage can be listed."""
    for path, size in table.sizes.items():
        file = table.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(size))
        (file.parent / ".hoodie_partition_metadata").touch()


def clean(table: HudiTable, at: str, partition: str, name: str, *, done: bool) -> None:
    plan = {"filePathsToBeDeletedPerPartition": {partition: [{"filePath": f"/t/{name}"}]}}
    table.begin(at, "clean")
    table.state(f"{at}.clean.requested", avro_body("clean.requested", plan))
    if done:
        gone = {partition: {"deletePathPatterns": [name], "successDeleteFiles": [name]}}
        table.complete(at, "clean", {"partitionMetadata": gone})
    (table.root / partition / name).unlink()


def read(
    storage: LocalStorage,
    table: HudiTable,
    format: HudiFormat | None = None,
    at: ReadVersion | None = None,
    id: str = "",
    freshness: Freshness = LIVE,
) -> tuple[str, set[str]]:
    """The id and the base files of a snapshot."""
    described = CatalogTable(
        TableName("d", "t"), (Column("a", STRING),), (), table.uri, "parquet", {}
    )
    context = TableContext(storage, None, None, None, lambda _: None, freshness)  # type: ignore[arg-type]
    snapshot = (format or HudiFormat()).snapshot(described, at or ReadVersion(), context, id)
    (batch,) = snapshot.partitions(snapshot.partition_names())
    names = [p for s in snapshot.slices(batch, None) for p in s.files.paths.to_pylist()]
    return snapshot.id, {name.rpartition("/")[2] for name in names}


@VERSIONS
@pytest.mark.parametrize("done", [True, False])
def test_a_clean_while_storage_is_listed(tmp_path: Path, version: int, done: bool) -> None:
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    table.commit("0", [], action="commit")
    table.archive("0")
    old = table.base("p", "a", "1")
    table.commit("1", [old], action="commit", schema=_SCHEMA)
    materialise(table)

    def then() -> None:
        new = table.base("p", "a", "2", previous="1")
        table.commit("2", [new], action="commit", schema=_SCHEMA)
        materialise(table)
        clean(table, "3", "p", old.name, done=done)

    timeline = f"{table.uri}/.hoodie" + ("" if version == 6 else "/timeline")
    with ThreadPoolExecutor(2) as pool:
        opened = OpenTable(Disturbed(timeline, then), table.uri, pool, pool)
        with pytest.raises(SnapshotExpired):
            opened.slices(opened.view())
        assert opened.slices(opened.view()).base_paths.to_pylist() == ["p/a_0-1-2_2.parquet"]


@VERSIONS
def test_commits_that_are_undone_while_storage_is_listed(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    table.commit("0", [], action="commit")
    table.archive("0")
    table.commit("1", [table.base("p", "a", "1")], action="commit", schema=_SCHEMA)
    second = table.base("p", "a", "2", previous="1")
    table.commit("2", [second], action="commit", schema=_SCHEMA)
    materialise(table)

    def then() -> None:
        table.forget("2")
        table.complete("3", "restore", {"instantsToRollback": ["2"]})
        (table.root / second.path).unlink()

    timeline = f"{table.uri}/.hoodie" + ("" if version == 6 else "/timeline")
    with ThreadPoolExecutor(2) as pool:
        opened = OpenTable(Disturbed(timeline, then), table.uri, pool, pool)
        with pytest.raises(SnapshotExpired):
            opened.slices(opened.view())
        assert opened.slices(opened.view()).base_paths.to_pylist() == ["p/a_0-1-2_1.parquet"]


@pytest.mark.parametrize("version", [6, 8])
def test_a_table_that_is_being_upgraded_or_downgraded(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")])
    table.commit("2", [table.base("p", "b", "2")])
    opened = FileSystemView.open(LocalStorage(), table.uri)
    table.forget("2")
    if version == 6:
        (table.meta / "timeline").mkdir()
        (table.meta / "timeline" / "2_2.deltacommit").write_bytes(b"x")
    else:
        (table.meta / "2.deltacommit").write_bytes(b"x")
    with pytest.raises(UnsupportedTable, match="upgrade"):
        FileSystemView.open(LocalStorage(), table.uri)
    with pytest.raises(UnsupportedTable, match="upgrade"):
        opened.refresh()


@pytest.mark.parametrize("version", [8, 9])
def test_a_named_version_is_reopened_as_it_was(tmp_path: Path, version: int) -> None:
    first, late, last = (f"2024010100000{i}000" for i in range(1, 4))
    table = HudiTable(tmp_path / "t", version, hoodie__table__timeline__timezone="UTC")
    table.commit(first, [table.base("p", "a", first)], schema=_SCHEMA)
    at = ReadVersion(AsOfTime(1704067262000))
    storage, other = LocalStorage(), HudiFormat()
    id, found = read(storage, table, at=at)
    table.commit(late, [table.base("p", "b", late)], end=last, schema=_SCHEMA)
    assert read(storage, table, other, at)[1] != found
    assert read(storage, table, other, at, id)[1] == found
    changes = ReadVersion(ChangesBetween("", "20990101000000000"))
    id = f"completed:{first}"
    assert read(storage, table, other, changes, id)[1] == found


@VERSIONS
@pytest.mark.parametrize("point", ["as of", "changes"])
def test_an_older_timeline_does_not_tell_what_is_closed(
    tmp_path: Path, version: int, point: str
) -> None:
    """A consumer that goes on from the end would lose what was requested since it was read."""
    first, open_, last, end = (f"2024010100000{i}000" for i in range(1, 5))
    table, format = HudiTable(tmp_path / "t", version), HudiFormat()
    table.commit(first, [table.base("p", "a", first)], schema=_SCHEMA)
    storage, hour = LocalStorage(), Cached(3600)
    newest = read(storage, table, format, freshness=hour)
    table.begin(open_, "deltacommit")
    table.commit(last, [table.base("p", "b", last)], schema=_SCHEMA)
    assert read(storage, table, format, freshness=hour) == newest
    at = ReadVersion(AsOfVersion(end) if point == "as of" else ChangesBetween(first, end))
    with pytest.raises(ReadVersionNotFound, match=open_):
        read(storage, table, format, at, freshness=hour)


@pytest.mark.parametrize("version", [8, 9])
def test_a_write_that_is_archived_as_soon_as_it_ends(tmp_path: Path, version: int) -> None:
    """It took so long that others ended before it, which are not archived yet."""
    table = HudiTable(tmp_path / "t", version)
    old, new = table.base("p", "a", "1"), table.base("p", "a", "2", previous="1")
    table.commit("1", [old], schema=_SCHEMA)
    table.commit("3", [table.base("p", "b", "3")], end="4", schema=_SCHEMA)
    table.commit("5", [table.base("p", "c", "5")], end="6", schema=_SCHEMA)
    table.commit("2", [new], end="7", schema=_SCHEMA)
    materialise(table)
    storage, before = LocalStorage(), ReadVersion(ChangesBetween("", "6"))
    told = read(storage, table, at=before)[1]
    assert old.name in told
    table.archive("1", "2")
    id, newest = read(storage, table)
    assert new.name in newest
    assert read(storage, table, at=before)[1] == told
    table.commit("8", [table.base("p", "d", "8")], schema=_SCHEMA)
    materialise(table)
    assert read(storage, table, HudiFormat(), id=id)[1] == newest
    table.delete(old)
    (table.root / old.path).unlink()
    deleted = {"p": {"deletePathPatterns": [old.name], "successDeleteFiles": []}}
    body = {"earliestCommitToRetain": "3", "partitionMetadata": deleted}
    table.complete("9", "clean", body)
    with pytest.raises(ReadVersionNotFound, match="cleaned up"):
        read(storage, table, at=before)


@pytest.mark.parametrize("version", [8, 9])
def test_an_archive_without_writes_has_no_newest(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.complete("09", "rollback", {"commitsRollback": ["08"]})
    table.commit("10", [table.base("p", "a", "10")], end="11", schema=_SCHEMA)
    table.archive("09")
    assert FileSystemView.open(LocalStorage(), table.uri).last_completion == "11"


@VERSIONS
def test_archived_versions_after_a_savepoint_are_not_the_savepoint(
    tmp_path: Path, version: int
) -> None:
    saved, archived, first, second = (f"2024010100000{i}000" for i in range(1, 5))
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    kept = table.base("p", "a", saved)
    table.commit(saved, [kept], action="commit", schema=_SCHEMA)
    table.complete(saved, "savepoint", {"comments": ""})
    table.commit(archived, [table.base("p", "b", archived)], action="commit", schema=_SCHEMA)
    table.commit(first, [table.base("p", "c", first)], action="commit", schema=_SCHEMA)
    table.commit(second, [table.base("p", "d", second)], action="commit", schema=_SCHEMA)
    table.archive(archived)
    materialise(table)
    for at in (saved, saved[:14], "20240101000001500"):
        assert read(LocalStorage(), table, at=ReadVersion(AsOfVersion(at)))[1] == {kept.name}
    for at in (archived, archived[:14], "20240101000002500"):
        with pytest.raises(ReadVersionNotFound, match="starts at 20240101000003000"):
            read(LocalStorage(), table, at=ReadVersion(AsOfVersion(at)))
    assert len(read(LocalStorage(), table, at=ReadVersion(AsOfVersion(first)))[1]) == 3


def _with_archive(root: Path, version: int) -> HudiTable:
    table = HudiTable(root, version, "COPY_ON_WRITE")
    for instant, partition in (("1", "p"), ("2", "q"), ("3", "p"), ("4", "p")):
        file = table.base(partition, f"g{instant}", instant)
        table.commit(instant, [file], action="commit", schema=_SCHEMA)
    table.archive("1", "2")
    materialise(table)
    return table


def _delete_archive(table: HudiTable) -> None:
    for path in table.history.iterdir():
        path.unlink()


@VERSIONS
def test_an_archive_that_was_deleted_takes_no_rows_along(tmp_path: Path, version: int) -> None:
    """Hudi's users are told that they may delete it."""
    table = _with_archive(tmp_path / "t", version)
    every, newer = set(map(os.path.basename, table.sizes)), ReadVersion(ChangesBetween("3", ""))
    assert read(LocalStorage(), table)[1] == every
    changed = read(LocalStorage(), table, at=newer)[1]
    _delete_archive(table)
    assert read(LocalStorage(), table)[1] == every
    assert read(LocalStorage(), table, at=newer)[1] == changed == {"g4_0-1-2_4.parquet"}
    assert set(HudiFiles(LocalStorage(), table.uri).partitions().rows["path"].to_pylist()) == {
        "p",
        "q",
    }
    for point in (ChangesBetween("", ""), ChangesBetween("1", "3")):
        with pytest.raises(ReadVersionNotFound, match="archive was deleted"):
            read(LocalStorage(), table, at=ReadVersion(point))
    view = FileSystemView.open(LocalStorage(), table.uri).with_lost_history()
    with pytest.raises(ReadVersionNotFound, match="not known what was cleaned"):
        view.slices(as_of="3", files=FileListing.of(table.listing()))


@pytest.mark.parametrize("version", [8, 9])
def test_a_log_of_which_only_a_deleted_archive_knew_the_age(tmp_path: Path, version: int) -> None:
    """A compaction that was requested after it may have ended before it."""
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")], schema=_SCHEMA)
    log, base = table.log("p", "a", "2", previous="1"), table.base("p", "a", "3", previous="1")
    table.commit("3", [base], action="commit", operation="COMPACT", end="4")
    table.commit("2", [log], schema=_SCHEMA, end="5")
    table.commit("6", [table.base("p", "b", "6")], schema=_SCHEMA)
    table.archive("1", "2", "3")
    materialise(table)
    assert read(LocalStorage(), table)[1] == {base.name, "b_0-1-2_6.parquet"}
    _delete_archive(table)
    with pytest.raises(FileCorrupt, match="archive was deleted"):
        read(LocalStorage(), table)
    table.delete(log)
    (table.root / log.path).unlink()
    assert read(LocalStorage(), table)[1] == {base.name, "b_0-1-2_6.parquet"}


@pytest.mark.parametrize("version", [8, 9])
def test_older_logs_of_an_upgraded_table_without_its_archive(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    older, log = table.base("p", "a", "1"), table.log("p", "a", "1", previous="1")
    table.commit("1", [older, log], schema=_SCHEMA)
    table.commit("3", [table.base("p", "a", "3", previous="1")], action="commit")
    table.commit("6", [table.base("p", "b", "6")], schema=_SCHEMA)
    table.archive("1", "3")
    materialise(table)
    _delete_archive(table)
    assert read(LocalStorage(), table)[1] == {"a_0-1-2_3.parquet", "b_0-1-2_6.parquet"}


@VERSIONS
def test_partitions_that_begin_with_a_dot_are_listed(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    for instant, partition in (("1", ".jpg"), ("2", "a/.b"), ("3", "_c")):
        file = table.base(partition, f"g{instant}", instant)
        table.commit(instant, [file], action="commit", schema=_SCHEMA)
    table.archive("1")
    materialise(table)
    names = {"g1_0-1-2_1.parquet", "g2_0-1-2_2.parquet", "g3_0-1-2_3.parquet"}
    assert read(LocalStorage(), table)[1] == names


@VERSIONS
def test_an_archive_that_is_deleted_while_the_table_is_open(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, "COPY_ON_WRITE")
    for instant in ("1", "2"):
        file = table.base("", f"g{instant}", instant)
        table.commit(instant, [file], action="commit", schema=_SCHEMA)
    materialise(table)
    with ThreadPoolExecutor(2) as pool:
        opened = OpenTable(LocalStorage(), table.uri, pool, pool)
        assert opened.files(opened.view()) is None
        table.commit("3", [table.base("", "g3", "3")], action="commit", schema=_SCHEMA)
        materialise(table)
        assert opened.files(opened.view()) is None
        table.archive("1")
        _delete_archive(table)
        assert len(opened.slices(opened.view())) == 3


def test_an_older_table_is_reopened_as_it_was(tmp_path: Path) -> None:
    first, second, third = (f"2024010100000{i}000" for i in range(1, 4))
    table = HudiTable(tmp_path / "t", 6, hoodie__table__timeline__timezone="UTC")
    table.commit(first, [table.base("p", "a", first)], schema=_SCHEMA)
    at = ReadVersion(AsOfTime(1704067262000))
    storage, other = LocalStorage(), HudiFormat()
    id, found = read(storage, table, at=at)
    table.commit(third, [table.base("p", "b", third)], schema=_SCHEMA)
    assert read(storage, table, other, at, id)[1] == found
    # Another set of as many instants.
    id, _ = read(storage, table)
    table.commit(second, [table.base("p", "c", second)], schema=_SCHEMA)
    table.forget(third)
    with pytest.raises(SnapshotExpired):
        read(storage, table, id=id)


def test_an_older_instant_that_comes_in_while_another_is_archived(tmp_path: Path) -> None:
    """As many instants as before, and not the same."""
    table = HudiTable(tmp_path / "t", 6)
    for instant in ("1", "3", "4"):
        table.commit(instant, [table.base("p", f"g{instant}", instant)], schema=_SCHEMA)
    table.begin("2", "deltacommit")
    id, _ = read(LocalStorage(), table)
    table.commit("2", [table.base("p", "g2", "2")], schema=_SCHEMA)
    table.archive("1")
    materialise(table)
    with pytest.raises(SnapshotExpired):
        read(LocalStorage(), table, id=id)


@pytest.mark.parametrize("version", [8, 9])
def test_a_snapshot_that_was_restored_away_is_gone(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base("p", "a", "1")], schema=_SCHEMA)
    table.commit("2", [table.base("p", "b", "2")], schema=_SCHEMA)
    id, _ = read(LocalStorage(), table)
    table.forget("2")
    table.complete("3", "restore", {"instantsToRollback": ["2"]})
    table.commit("4", [table.base("p", "c", "4")], schema=_SCHEMA)
    with pytest.raises(SnapshotExpired):
        read(LocalStorage(), table, id=id)


def test_blocks_of_archived_instants_after_a_savepoint(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 6)
    table.commit("1", [table.base("p", "a", "1")], schema=_SCHEMA)
    table.complete("1", "savepoint", {"comments": "keep"})
    table.commit("2", [table.log("p", "a", "1", previous="1")], schema=_SCHEMA)
    table.archive("2")
    table.begin("3", "deltacommit")
    table.commit("4", [table.base("p", "b", "4")], schema=_SCHEMA)
    table.commit("6", [table.base("p", "c", "6")], schema=_SCHEMA)
    view = FileSystemView.open(LocalStorage(), table.uri)
    counts = _valid({**dict(log_properties(view, "6")), "hoodie.table.version": "6"})
    assert [i for i in "1234567" if counts(i)] == ["1", "2", "4", "6"]


def test_fields_that_rows_are_merged_by_are_spelled_as_in_the_schema(tmp_path: Path) -> None:
    names = ("day", "ts", "op")
    fields = [{"name": name, "type": ["null", "string"]} for name in names]
    told = {
        "hoodie.table.ordering.fields": "TS,Day",
        "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
    }
    given = {name.replace(".", "__"): text for name, text in told.items()}
    table = HudiTable(tmp_path / "t", 9, **given)
    schema = json.dumps({"type": "record", "name": "t", "fields": fields})
    table.commit("1", [table.base("p", "a", "1")], schema=schema)
    found = dict(log_properties(FileSystemView.open(LocalStorage(), table.uri), "1"))
    assert {name: found[name] for name in told} == dict(zip(told, ("ts,day", "op"), strict=True))


@VERSIONS
def test_a_commit_that_names_a_file_of_another_kind(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    odd = table.base("p", "a", "1")
    odd = type(odd)("p", "a.b_0-1-2_1.lance", 1)
    table.commit("1", [odd])
    with pytest.raises(UnsupportedTable, match="lance"):
        FileSystemView.open(LocalStorage(), table.uri).slices()


def test_a_body_that_was_rewritten_is_read_again(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 6)
    first, second = table.base("p", "a", "1"), table.base("p", "bb", "1")
    table.commit("1", [first])
    view = FileSystemView.open(LocalStorage(), table.uri)
    assert len(view.slices()) == 1
    table.commit("1", [first, second])
    assert len(view.refresh().slices()) == 2


@pytest.mark.parametrize(
    ("path", "value"),
    [("x", "x"), ("day=x", "x"), ("DAY=x", "x"), ("default", "default"), ("a%20b", "a b")],
)
def test_values_of_paths(tmp_path: Path, path: str, value: str) -> None:
    written = HudiTable(
        tmp_path / "t",
        6,
        hoodie__table__partition__fields="day",
        hoodie__table__keygenerator__class="org.apache.hudi.keygen.SimpleKeyGenerator",
    )
    config = load_table_config(LocalStorage(), written.uri)
    day = Column("day", STRING)
    table = CatalogTable(TableName("d", "t"), (), (day,), written.uri, "parquet", {})
    found = layout(table, config, (day,), (path,), True)
    assert found.values == {path: (value,)}


@pytest.mark.parametrize("dropped", [False, True], ids=["in files", "in paths alone"])
@pytest.mark.parametrize(
    ("flag", "paths"),
    [
        ("hive_style_partitioning", ("day=x", "Day=x")),
        ("partitionpath.urlencode", ("a:b", "a%3Ab")),
    ],
)
def test_paths_with_the_same_value_are_two_partitions(
    tmp_path: Path, flag: str, paths: tuple[str, ...], dropped: bool
) -> None:
    """By its value alone only one of them would be found."""
    found = _layout(tmp_path, {f"hoodie.datasource.write.{flag}": "true"}, paths, dropped)
    assert found.source is KeySource.PATHS
    assert list(found.names().values()) == [list(paths)]


def test_paths_in_hive_style_by_a_writer_of_its_own(tmp_path: Path) -> None:
    """Spark shows what stands after the column's name."""
    for dropped in (False, True):
        found = _layout(tmp_path, {}, ("day=x", "y", "other=z"), dropped)
        assert found.values == {"day=x": ("x",), "y": ("y",), "other=z": ("other=z",)}


class Registered:
    """A catalog of partitions, by their paths in a table."""

    def __init__(self, base: str, partitions: dict[str, str]) -> None:
        self._found = tuple(
            Partition(f"dt={value}", (value,), f"{base}/{path}")
            for path, value in partitions.items()
        )

    def partition_names(self, *_: Any) -> list[str]:
        return [partition.name for partition in self._found]

    def partitions(self, *_: Any) -> OneBatch:
        return OneBatch(PartitionBatch(self._found))


def _registered(table: HudiTable, partitions: dict[str, str]) -> list[tuple[str | None, ...]]:
    """The values of the partitions of a table with the key ``dt``, which no file has."""
    dt, own = Column("dt", STRING), (Column("a", STRING),)
    described = CatalogTable(TableName("d", "t"), own, (dt,), table.uri, "parquet", {})
    catalog: Any = Registered(table.uri, partitions)
    context = TableContext(LocalStorage(), catalog, None, None, lambda _: None, LIVE)  # type: ignore[arg-type]
    snapshot = HudiFormat().snapshot(described, ReadVersion(), context)
    (batch,) = snapshot.partitions(snapshot.partition_names())
    return [partition.values for partition in batch.partitions]


@pytest.mark.parametrize("field", ["day", ""], ids=["another field", "an old release"])
def test_keys_of_other_names_than_the_writers_have_the_values_that_were_registered(
    tmp_path: Path, field: str
) -> None:
    """Hudi's sync with an extractor of days registers ``2024-01-31``."""
    table = HudiTable(tmp_path / "t", 6, hoodie__table__partition__fields=field)
    table.commit("1", [table.base("2024/01/31", "a", "1")], schema=_SCHEMA)
    assert _registered(table, {"2024/01/31": "2024-01-31"}) == [("2024-01-31",)]
    with pytest.raises(PartitionAbsent):
        _registered(table, {})


@VERSIONS
def test_a_deleted_partition_need_not_be_registered(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version, hoodie__table__partition__fields="day")
    table.commit("1", [table.base("x", "a", "1"), table.base("y", "b", "1")], schema=_SCHEMA)
    gone = {"x": ["a"]}
    table.commit("2", [], action="replacecommit", operation="DELETE_PARTITION", replaced=gone)
    assert _registered(table, {"y": "Y"}) == [("Y",)]


def test_dates_in_slashes_are_the_dates_that_were_written(tmp_path: Path) -> None:
    told = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    found = _layout(tmp_path, told, ("2024/01/31",), True)
    assert found.values == {"2024/01/31": ("2024-01-31",)}


def _layout(
    tmp_path: Path, properties: dict[str, str], paths: tuple[str, ...], dropped: bool
) -> TableColumns:
    told = {
        "hoodie.table.partition.fields": "day",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.drop.partition.columns": str(dropped).lower(),
        **properties,
    }
    root = tmp_path / f"t{len(list(tmp_path.iterdir()))}"
    written = HudiTable(root, 6, **{name.replace(".", "__"): text for name, text in told.items()})
    config = load_table_config(LocalStorage(), written.uri)
    day = Column("day", STRING)
    table = CatalogTable(TableName("d", "t"), (), (day,), written.uri, "parquet", {})
    return layout(table, config, () if dropped else (day,), paths, True)


@VERSIONS
def test_a_table_that_was_made_anew(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [])
    table.archive("1")
    table.commit("2", [table.base("p", "a", "2")])
    with ThreadPoolExecutor(2) as pool:
        view = FileSystemView.open(LocalStorage(), table.uri, pool)
        assert not view.history_is_empty
        shutil.rmtree(table.root)
        table = HudiTable(tmp_path / "t", version)
        view = view.refresh()
        assert len(view.slices()) == 0
        table.commit("3", [table.base("p", "b", "3")])
        assert len(view.refresh().slices()) == 1
