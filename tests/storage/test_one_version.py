"""All reads of a planned file are of the version that was planned, or FILE_CHANGED is raised."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.api.file_reader import DataFile, read_file
from bridge.errors import FileChanged
from bridge.storage.one_version import OneVersion
from bridge.storage.port import FileStat
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from bridge.types import parse_hive_type
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
    planned = DataFile(
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
