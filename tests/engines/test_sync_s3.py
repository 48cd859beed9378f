"""Sync of a table on S3, a real endpoint on loopback, into a real metastore 4.0.1."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK
from bridge.storage.object_store.odd_keys import OddKeys
from bridge.storage.routed import open_storage
from tests.support.moto_store import moto_store

pytestmark = pytest.mark.full

BUCKET, REGION = "synced", "us-east-1"
KEY, SECRET = "the-access-key", "the-secret-key"
LOCATION = f"s3a://{BUCKET}/lake/t"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_store(BUCKET) as address:
        yield address


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A metastore 4.0.1 to which the locations on S3 are directories of two other files each.

    Without Hadoop's client of S3 it takes this bucket for a mounted directory of its own: whatever
    it knows of the files on S3, it was told.
    """
    directory = tmp_path_factory.mktemp("metastore-s3")
    bucket = directory / "bucket"
    for i in range(12):
        place = bucket / "t" / f"day={i}" / "city=a b"
        place.mkdir(parents=True)
        for name in ("one", "two"):
            (place / name).write_text("other")
    overload = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    properties = {
        "fs.s3a.impl": overload,
        "fs.viewfs.overload.scheme.target.s3a.impl": overload,
        f"fs.viewfs.mounttable.{BUCKET}.link./lake": bucket.as_uri(),
    }
    spec = MetastoreSpec(directory, port=0, in_memory=True, properties=properties)
    with start_metastore_401(spec) as server:
        yield f"thrift://{LOOPBACK}:{server.port}"


@pytest.fixture
def sync(endpoint: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, with S3's settings where users have them: its report."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "SKIPBRIDGE_STORAGE_ENDPOINT": endpoint,
        "SKIPBRIDGE_STORAGE_REGION": REGION,
        "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
        "SKIPBRIDGE_METASTORE_URI": uri,
        "SKIPBRIDGE_CONFIG": str(tmp_path / "none.toml"),
        "SKIPBRIDGE_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)

    def call(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(cli, ["sync", "s3.t", *words, "--output", "json"])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return call


def test_a_table_on_s3(sync: Any, endpoint: str, uri: str) -> None:
    options = {
        "endpoint": endpoint,
        "region": REGION,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "allow_http": "true",
    }
    storage = open_storage(options=options)

    def put(directory: str, **columns: list[Any]) -> str:
        buffer = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), **columns}), buffer)
        file = f"s3://{BUCKET}/lake/t/{directory}/f.parquet"
        storage.put(file, buffer.getvalue())
        return file

    gone, *_ = [put(f"day={i}/city=a b") for i in range(12)]
    storage.put(f"s3://{BUCKET}/lake/t/_SUCCESS", b"")
    storage.put(f"s3://{BUCKET}/lake/t/day=0/city=a b/.hidden", b"x")
    bucket = storage.store(f"s3://{BUCKET}/lake/t")  # type: ignore[attr-defined]
    client, name = OddKeys(bucket._store).client_of("lake/t/day=99/city=empty/")
    obstore.put(client, name, b"")  # a directory's marker
    first = sync("--location", LOCATION, "--index")
    assert (first["counts"]["added"], first["counts"]["unparsable"]) == (12, 0)
    assert first["index"]["files"] == 12
    assert sync()["outcome"] == "in step"
    with MetastoreClient(uri) as client:
        table = client.get_table("s3", "t")
        assert table.sd.location == LOCATION  # as Hive and Spark can open it
        assert [(k.name, k.type) for k in table.partitionKeys] == [
            ("day", "int"),
            ("city", "string"),
        ]
        names = client.get_partition_names("s3", "t")
        found = client.get_partitions_by_names("s3", "t", names).partitions
        assert {p.sd.location for p in found} == {f"{LOCATION}/day={i}/city=a b" for i in range(12)}
        # The metastore has listed no directory for them: it would have counted two files.
        for partition in found:
            assert partition.parameters["numFiles"] == "1"
            assert partition.parameters["numFilesErasureCoded"] == "0"
        storage.delete(gone)
        storage.delete(f"s3://{BUCKET}/lake/t/day=0/city=a b/.hidden")
        put("day=12/city=b", extra=["x", "y"])
        again = sync("--drop-now", "--index")
        assert again["dropped"] == [names[0]] == ["day=0/city=a b"]
        assert again["added"] == ["day=12/city=b"]
        assert again["counts"]["updated"] == 11  # the new column
        assert again["index"]["files"] == 12
        assert sync("--full")["outcome"] == "in step"
        assert [c.name for c in client.get_table("s3", "t").sd.cols] == ["id", "extra"]
