"""The listing in Hudi's metadata table: which of its blocks count, and when it is no listing."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bridge.formats.hudi.log_format import BlockType, Header
from bridge.kernel.errors import FileCorrupt
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.files.file_system_view import FileListing
from bridge.table.hudi.files.metadata_table import Incomplete, read_file_listing
from bridge.table.hudi.table_config import load_table_config
from bridge.table.hudi.timeline.timeline import load_timeline
from tests.support.hudi_writer import hfile, log_block

DELETED = -1
ALL = "__all_partitions__"
_INFO = {
    "type": "record",
    "name": "HoodieMetadataFileInfo",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
SCHEMA = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [
        {"name": "key", "type": "string"},
        {"name": "type", "type": "int"},
        {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": _INFO}]},
    ],
}
State = Mapping[str, Mapping[str, int]]


def listing_file(state: State) -> bytes:
    """An HFile with one record for each key; a size of DELETED is a deletion."""
    entries = []
    for key, files in sorted(state.items()):
        record: dict[str, Any] = {
            "key": "",
            "type": 1 if key == ALL else 2,
            "filesystemMetadata": {
                name: {"size": max(size, 0), "isDeleted": size == DELETED}
                for name, size in files.items()
            },
        }
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, SCHEMA, record)
        entries.append((key.encode(), buffer.getvalue()))
    return hfile(entries, info={b"schema": json.dumps(SCHEMA).encode()})


def time(n: int) -> str:
    return f"2024010100000{n:04}"


class Lake:
    """A Hudi table that is only a timeline and a metadata table."""

    def __init__(self, path: Path, version: int) -> None:
        self.path, self.version = path, version
        self.own = path / ".hoodie" / "metadata"
        self.files = self.own / "files"
        self.files.mkdir(parents=True)
        for home in (path, self.own):
            self.timeline(home).mkdir(parents=True, exist_ok=True)
        self.properties(partitions="files")

    def properties(self, partitions: str) -> None:
        (self.path / ".hoodie" / "hoodie.properties").write_text(
            "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\n"
            f"hoodie.table.version={self.version}\n"
            f"hoodie.timeline.layout.version={2 if self.version >= 8 else 1}\n"
            f"hoodie.table.metadata.partitions={partitions}\n"
            f"hoodie.table.checksum={zlib.crc32(b'.t')}\n"
        )

    def timeline(self, home: Path) -> Path:
        return home / ".hoodie" / "timeline" if self.version >= 8 else home / ".hoodie"

    def instant(self, home: Path, at: str, action: str, done: str | None) -> None:
        timeline = self.timeline(home)
        if done is None:
            (timeline / f"{at}.{action}.inflight").write_bytes(b"")
        elif self.version >= 8:
            (timeline / f"{at}_{done}.{action}").write_bytes(b"{}")
        else:
            (timeline / f"{at}.{action}").write_bytes(b"{}")

    def data(self, n: int, done: bool = True, action: str = "commit") -> None:
        self.instant(self.path, time(n), action, time(n + 8) if done else None)

    def meta(self, at: str, state: State | None, base: str, done: str | None) -> None:
        """A deltacommit of the metadata table, with a log."""
        self.instant(self.own, at, "deltacommit", done)
        if state is not None:
            block = log_block(
                BlockType.HFILE_DATA,
                {Header.INSTANT_TIME: at, Header.SCHEMA: json.dumps(SCHEMA)},
                listing_file(state),
            )
            name = at if self.version >= 8 else base
            at_end = len(list(self.files.iterdir())) + 1
            (self.files / f".files-0000-0_{name}.log.{at_end}_0-1-2").write_bytes(block)

    def build(self, state: State, n: int = 0) -> str:
        """The first commit; it lists what is in storage."""
        at = "0" * 17
        if self.version < 8:
            at = time(n) + "010" if n else "0" * 14 + "010"
        self.base(at, state, "deltacommit", time(n + 10))
        return at

    def base(self, at: str, state: State, action: str, done: str | None) -> None:
        self.instant(self.own, at, action, done)
        (self.files / f"files-0000-0_0-5-4_{at}.hfile").write_bytes(listing_file(state))

    def commit(self, n: int, state: State, base: str, done: bool = True) -> None:
        """A commit of the data, and of the metadata table before it."""
        self.meta(time(n), state, base, time(n + 4))
        self.data(n, done)

    def read(self, partitions: list[str] | None = None) -> dict[str, dict[str, int]] | str:
        storage = open_storage()
        config = load_table_config(storage, canonical(str(self.path)))
        timeline = load_timeline(storage, config)
        found = read_file_listing(storage, config, timeline, partitions)
        return found.reason if isinstance(found, Incomplete) else as_dict(found)


def as_dict(listing: FileListing) -> dict[str, dict[str, int]]:
    names, sizes = iter(listing.names.to_pylist()), iter(listing.sizes.tolist())
    return {
        partition: {next(names): next(sizes) for _ in range(count)}
        for partition, count in zip(listing.partitions, listing.counts.tolist(), strict=True)
    }


def added(partition: str, **files: int) -> dict[str, dict[str, int]]:
    return {partition: files, ALL: {partition: 0}}


@pytest.fixture(params=[6, 8, 9])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(tmp_path, request.param)


def test_logs_add_files_to_the_base(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10) | {"p=2": {"b": 20}, ALL: {"p=1": 0, "p=2": 0}})
    lake.commit(20, added("p=1", c=30), first)
    assert lake.read() == {"p=1": {"a": 10, "c": 30}, "p=2": {"b": 20}}


def test_deletions_remove_files_and_partitions(lake: Lake) -> None:
    first = lake.build({"p=1": {"a": 10, "b": 20}, "p=2": {"c": 5}, ALL: {"p=1": 0, "p=2": 0}})
    lake.commit(20, {"p=1": {"a": DELETED}}, first)
    assert lake.read() == {"p=1": {"b": 20}, "p=2": {"c": 5}}
    lake.commit(40, {"p=2": {"c": DELETED}, ALL: {"p=2": DELETED}}, first)
    assert lake.read() == {"p=1": {"b": 20}}
    lake.commit(60, {"p=1": {"never": DELETED, "a": 7}}, first)
    assert lake.read() == {"p=1": {"b": 20, "a": 7}}


def test_sizes_only_grow(lake: Lake) -> None:
    first = lake.build(added("p=1", log=10))
    lake.commit(20, added("p=1", log=30), first)
    lake.commit(40, added("p=1", log=20), first)
    assert lake.read() == {"p=1": {"log": 30}}


def test_a_table_without_partitions(lake: Lake) -> None:
    lake.build({".": {"a": 10}, ALL: {".": 0}})
    assert lake.read() == {"": {"a": 10}}
    assert lake.read([""]) == {"": {"a": 10}}


def test_some_partitions_only(lake: Lake) -> None:
    first = lake.build(
        {f"p={n}": {"a": n + 1} for n in range(9)} | {ALL: {f"p={n}": 0 for n in range(9)}}
    )
    lake.commit(20, {"p=3": {"b": 1}, "p=4": {"b": 1}}, first)
    assert lake.read(["p=3", "p=7", "p=none"]) == {"p=3": {"a": 4, "b": 1}, "p=7": {"a": 8}}
    assert lake.read([]) == {}


def test_a_block_counts_only_if_the_data_has_its_commit(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first, done=False)
    assert lake.read() == {"p=1": {"a": 10}}
    lake.data(20)
    assert lake.read() == {"p=1": {"a": 10, "b": 20}}


def test_a_block_counts_only_if_the_metadata_table_has_its_commit(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.meta(time(20), {"p=1": {"a": DELETED}}, first, None)
    lake.data(20, done=False)
    lake.data(10, action="clean")
    assert lake.read() == {"p=1": {"a": 10}}


def test_what_began_after_the_timeline_was_read_does_not_count(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    lake.meta(time(40), {"p=1": {"a": DELETED}}, first, time(41))
    assert lake.read() == {"p=1": {"a": 10, "b": 20}}


def test_blocks_of_commits_that_were_rolled_back_count_with_their_rollback(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.meta(time(20), added("p=1", b=20), first, time(21))
    lake.meta(time(30), {"p=1": {"b": DELETED}}, first, time(31))
    lake.data(30, action="rollback")
    assert lake.read() == {"p=1": {"a": 10}}


def test_a_compacted_base_replaces_older_files(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    at = time(40) if lake.version >= 8 else time(20) + "001"
    lake.base(at, added("p=1", b=20), "commit", time(45))
    lake.commit(60, added("p=1", c=30), at)
    assert lake.read() == {"p=1": {"b": 20, "c": 30}}


def test_a_compaction_that_is_pending_or_failed_does_not_count(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    at = time(22) if lake.version >= 8 else time(20) + "001"
    lake.base(at, {ALL: {}}, "compaction", None)
    assert lake.read() == {"p=1": {"a": 10, "b": 20}}
    lake.commit(40, added("p=1", c=30), at)
    assert lake.read() == {"p=1": {"a": 10, "b": 20, "c": 30}}


def test_a_compaction_after_the_timeline_was_read_is_told(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    at = time(80) if lake.version >= 8 else time(80) + "001"
    lake.base(at, added("p=1", b=20), "commit", time(85))
    assert lake.read() == "has a metadata table that is being compacted"


def test_a_log_that_was_completed_after_the_compaction_began_counts(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 8)
    first = lake.build(added("p=1", a=10))
    lake.meta(time(20), added("p=1", b=20), first, time(50))
    lake.base(time(30), added("p=1", a=10), "commit", time(40))
    lake.data(20)
    lake.data(60)
    lake.meta(time(60), {}, first, time(61))
    assert lake.read() == {"p=1": {"a": 10, "b": 20}}


def test_a_commit_that_the_metadata_table_lacks_is_told(lake: Lake) -> None:
    lake.build(added("p=1", a=10))
    lake.data(20)
    assert lake.read() == f"has a metadata table without the commit {time(20)}"


def test_commits_before_the_build_are_in_it(lake: Lake) -> None:
    lake.data(1)
    lake.data(2)
    first = lake.build(added("p=1", a=10), n=2)
    assert lake.read() == {"p=1": {"a": 10}}
    lake.commit(40, added("p=1", b=2), first)
    assert lake.read() == {"p=1": {"a": 10, "b": 2}}


def test_a_table_without_a_metadata_table_is_told(lake: Lake) -> None:
    assert lake.read() == "has a metadata table without a commit"
    lake.properties(partitions="")
    assert lake.read() == "has no metadata table"


def test_a_listing_that_contradicts_itself_is_told(lake: Lake) -> None:
    lake.build({"p=1": {"a": 10}, ALL: {"p=1": 0, "p=2": 0}})
    assert lake.read() == "has a metadata table without the files of 'p=2'"
    assert lake.read(["p=1"]) == {"p=1": {"a": 10}}


def test_files_of_a_partition_that_is_not_listed_are_told(lake: Lake) -> None:
    lake.build({"p=1": {"a": 10}, "p=2": {"b": 1}, ALL: {"p=1": 0}})
    assert lake.read() == "has a metadata table with files of 'p=2', which it lacks"


def test_no_list_of_partitions_is_told(lake: Lake) -> None:
    lake.build({"p=1": {"a": 10}})
    assert lake.read() == "has a metadata table without a list of partitions"


def test_damage_is_an_error_and_never_fewer_files(lake: Lake) -> None:
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    (log,) = lake.files.glob(".files*")
    whole = log.read_bytes()
    right = lake.read()
    for place in range(0, len(whole), 13):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        log.write_bytes(bytes(damaged))
        try:
            found = lake.read()
        except Exception as error:
            assert getattr(error, "code", None) in ("FILE_CORRUPT", "UNSUPPORTED_TABLE"), place
        else:
            # The instant in a block's header has no checksum.
            told = f"has a metadata table without the files of the commit {time(20)}"
            assert found in (right, told), place


def test_a_later_build_of_another_partition_lists_no_files(lake: Lake) -> None:
    """As when column statistics are switched on after a writer left the metadata table out."""
    first = lake.build(added("p=1", a=10))
    lake.commit(10, added("p=1", b=20), first)
    lake.data(20)
    later = "0" * 16 + "1" if lake.version >= 8 else time(40) + "011"
    lake.instant(lake.own, later, "deltacommit", time(50))
    assert lake.read() == f"has a metadata table without the commit {time(20)}"


def test_a_file_of_the_metadata_table_that_is_missing_is_told(lake: Lake) -> None:
    """Without it files would be missing, without a word."""
    first = lake.build(added("p=1", a=10))
    lake.commit(20, added("p=1", b=20), first)
    lake.commit(30, added("p=1", c=30), first)
    assert lake.read() == {"p=1": {"a": 10, "b": 20, "c": 30}}

    def without(pattern: str) -> object:
        (path,) = lake.files.glob(pattern)
        content = path.read_bytes()
        path.unlink()
        found = lake.read()
        path.write_bytes(content)
        return found

    assert without("*.hfile") == "has a metadata table without its first listing"
    for number, commit in ((2, 20), (3, 30)):
        told = f"has a metadata table without the files of the commit {time(commit)}"
        assert without(f"*.log.{number}_*") == told
    newest = time(35) if lake.version >= 8 else time(30) + "001"
    lake.base(newest, added("p=1", a=10, b=20, c=30), "commit", time(36))
    lake.data(40)
    lake.meta(time(40), added("p=1", d=40), newest, time(44))
    assert lake.read() == {"p=1": {"a": 10, "b": 20, "c": 30, "d": 40}}
    assert without(f"*_{newest}.hfile") == "has a metadata table without its newest HFile"


@pytest.mark.rule("32")
def test_32_logs_that_state_gigabytes_are_no_listing(lake: Lake) -> None:
    base = lake.build({ALL: {"p": 0}, "p": {"a": 1}})
    lake.commit(1, {ALL: {"p": 0}, "p": {"b": 2}}, base)
    (log,) = lake.files.glob(".*.log.*")
    os.truncate(log, 1 << 40)  # of which the disk has none
    assert lake.read() == f"has a metadata table whose logs of files have {1 << 40:,} bytes"


def test_a_record_of_another_type_is_damage(lake: Lake) -> None:
    record = {"key": "", "type": 3, "filesystemMetadata": None}
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, SCHEMA, record)
    first = lake.build(added("p=1", a=10))
    (base,) = lake.files.glob(f"*{first}.hfile")
    base.write_bytes(
        hfile([(b"p=1", buffer.getvalue())], info={b"schema": json.dumps(SCHEMA).encode()})
    )
    with pytest.raises(FileCorrupt, match="type 3"):
        lake.read()


@pytest.mark.rule("32")
def test_32_a_record_that_would_become_more_than_it_is_is_damage(lake: Lake) -> None:
    one = {"type": "record", "name": "one", "fields": [{"name": "a", "type": ["null", "long"]}]}
    objects = {"name": "more", "type": {"type": "array", "items": one}}
    schema = {**SCHEMA, "fields": [*SCHEMA["fields"], objects]}
    count = 1 << 21
    varint = bytes((0x80, 0x80, 0x80, 0x02))
    first = lake.build(added("p=1", a=10))
    (base,) = lake.files.glob(f"*{first}.hfile")
    value = b"\0\4\0" + varint + bytes(count + 1)
    base.write_bytes(hfile([(b"p=1", value)], info={b"schema": json.dumps(schema).encode()}))
    assert base.stat().st_size < 15_000
    tracemalloc.start()
    try:
        with pytest.raises(FileCorrupt, match=f"bytes state {count} values"):
            lake.read()
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def test_a_hundred_thousand_partitions_of_short_names(lake: Lake) -> None:
    names = [f"{n:05}" for n in range(100_000)]
    lake.build({ALL: dict.fromkeys(names, 0), names[7]: {"a": 10}})
    told = f"has a metadata table without the files of {names[0]!r}"
    assert lake.read() == told
