"""All reads of a planned file are of the version that was planned, or FILE_CHANGED is raised."""

from __future__ import annotations

import time
from email.utils import formatdate
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.app.api.file_reader import ScannedFile, read_file
from bridge.index.generations.store import IndexStore, next_generation
from bridge.kernel.errors import FileChanged
from bridge.kernel.types import parse_hive_type
from bridge.storage.port import FileStat
from bridge.storage.reading.one_version import OneVersion
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from tests.support.memory_store import Answer, Asked, MemoryStore

URI, KEY = "s3://lake/t/f.parquet", "t/f.parquet"
COLUMNS = [Column(name, parse_hive_type("bigint")) for name in "ab"]


def content(sign: int, count: int) -> bytes:
    """Equal columns; of two signs, files of one size."""
    sink, values = BytesIO(), np.arange(count) * sign
    pq.write_table(
        pa.table({"a": values, "b": values}),
        sink,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        row_group_size=count,
    )
    return sink.getvalue()


def torn(store: MemoryStore, versions: tuple[bytes, bytes], after: int, etag: str | None) -> int:
    """Reads the first version; a request puts the second one there. Returns how many there were."""
    first, second = versions
    store.put(KEY, first, modified=1_000_000, etag=etag)
    storage = open_storage(options=store.options)
    (listed,) = [storage.list_all("s3://lake/t")]
    planned = ScannedFile(
        URI,
        int(listed.sizes[0]),
        int(listed.modified[0]),
        "parquet",
        None if listed.etags is None else listed.etags[0].as_py(),
    )
    reads = 0

    def lie(asked: Asked, answer: Answer) -> Answer:
        nonlocal reads
        if asked.method == "GET" and asked.key == KEY:
            reads += 1
            if reads == after:
                store.put(KEY, second, modified=1_000_009, etag=etag)
        return answer

    store.lie = lie
    if not after:
        store.put(KEY, second, modified=1_000_009, etag=etag)
    for columns, _ in read_file(storage, planned, COLUMNS, COLUMNS, "trino"):
        assert columns["a"].equals(columns["b"])
        assert not columns["a"].to_numpy(zero_copy_only=False).min() < 0
    return reads


@pytest.mark.parametrize("etag", ["", None])
@pytest.mark.parametrize("count", [100, 700_000])
def test_19_rows_of_no_version_are_never_read(count: int, etag: str | None) -> None:
    """Small files are read at once, large ones in ranges."""
    versions = content(1, count), content(-1, count)
    assert len(versions[0]) == len(versions[1])
    with MemoryStore() as store:
        requests = torn(store, versions, 10**6, etag)
        assert (requests > 1) == (count > 100)
        for after in range(requests):
            with pytest.raises(FileChanged, match="same size"):
                torn(store, versions, after, etag)


def test_19_no_more_is_read_than_was_planned() -> None:
    with MemoryStore() as store:
        storage = open_storage(options=store.options)
        for size, now in ((0, 3), (3, 5_000_000), (3, 2), (3, 0)):
            store.put(KEY, bytes(now))
            store.asked.clear()
            planned = OneVersion.of(storage, FileStat(URI, size, -1))
            if size:
                with pytest.raises(FileChanged, match=f"has {now} bytes and not the {size}"):
                    planned.read(URI)
                assert store.asked[0].headers["range"] == f"bytes=0-{size - 1}"
            else:
                assert planned.read(URI) == b"" and not store.asked
        grown = OneVersion.of(storage, FileStat(URI, 2, -1), may_grow=True)
        store.put(KEY, b"abc", etag=None)
        assert grown.read(URI) == b"ab"


@pytest.mark.rule("46")
def test_46_an_entry_is_trusted_by_no_clock_of_another_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store's clock is ten minutes late, and tells no ETags. A file is rewritten as it was."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr("bridge.runtime.compose.CHECK_INTERVAL", 0.0)

    def file(*values: int) -> bytes:
        sink = BytesIO()
        pq.write_table(pa.table({"x": values}), sink)
        return sink.getvalue()

    for age, skipped in ((600, False), (7 * 86_400, True)):
        now = int(time.time()) - age
        with MemoryStore() as store:
            store.put(KEY, file(10, 11), modified=now, etag=None)
            with bridge.connect(
                storage_endpoint=store.endpoint,
                storage_region="us-east-1",
                storage_allow_http=True,
            ) as session:
                table = session.table("s3://lake/t")
                assert table.index.build().files == 1
                assert len(table.scan(where="x = 71").files()) == (not skipped)
                store.put(KEY, file(70, 71), modified=now + skipped, etag=None)
                assert table.scan(where="x = 71").to_arrow()["x"].to_pylist() == [71]


@pytest.mark.rule("46")
def test_46_what_is_old_enough_to_be_cleaned_is_said_by_the_store() -> None:
    """By this machine's clock, which is an hour ahead of it, all of a running build is old."""
    with MemoryStore() as store:

        def behind(asked: Asked, answer: Answer) -> Answer:
            for each in store.objects.values():
                each.modified = min(each.modified, int(time.time()) - 7_200)
            if asked.method == "HEAD" and "Last-Modified" in answer.headers:
                modified = store.objects[asked.key].modified
                answer.headers["Last-Modified"] = formatdate(modified, usegmt=True)
            return answer

        store.lie = behind
        index = IndexStore(open_storage(options=store.options), "s3://lake/t/.skipbridge")
        index.commit(next_generation(None, 1, builder="b"))
        store.put("t/.skipbridge/shards/1-files.shard", b"of a build that runs")
        assert index.clean(keep=1) == 0
        assert "t/.skipbridge/shards/1-files.shard" in store.objects
        assert not [key for key in store.objects if key.endswith(".tmp")]
        assert index.clean(keep=1, older_than=-10) == 1
