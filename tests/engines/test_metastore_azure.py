"""``metastore start --azure`` takes tables on Azure: Azurite, by the words of the how-to page."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.main import cli
from bridge.metastore.client import MetastoreClient
from bridge.storage.routed import open_storage
from tests.support.azurite import KEY, URI, azurite_or_skip

pytestmark = pytest.mark.nightly
MONTHS = 4


def skipbridge(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("metastore-azure")
    azurite = azurite_or_skip(directory / "azurite")
    with azurite.server, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            **{k.upper(): v for k, v in azurite.options.items() if k != "allow_http"},
            "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
            "SKIPBRIDGE_CONFIG": str(directory / "none.toml"),
            "SKIPBRIDGE_CACHE": str(directory / "cache"),
        }.items():
            patch.setenv(name, value)
        data = str(directory / "metastore")
        start = ("metastore", "start", "--azure", "--detach", "--port", "0", "--data-dir", data)
        done = skipbridge(*start)
        assert done.exit_code == 0, done.output
        try:
            address = done.stdout.strip().splitlines()[-1]
            patch.setenv("SKIPBRIDGE_METASTORE_URI", address)
            assert not [f for f in Path(data).rglob("*.xml") if KEY in f.read_text("utf-8")]
            yield address
        finally:
            assert skipbridge("metastore", "stop", "--data-dir", data).exit_code == 0


@pytest.mark.parametrize("scheme", ["abfss", "abfs"])
def test_a_table_on_azure_is_registered_and_indexed(uri: str, scheme: str) -> None:
    storage = open_storage(options={"allow_http": "true"})
    name = f"{scheme} +ü"
    for month in range(MONTHS):
        sink = io.BytesIO()
        pq.write_table(pa.table({"n": range(month * 10, month * 10 + 10)}), sink)
        storage.put(f"{URI}/{name}/month={month}/f %20.parquet", sink.getvalue())
    location = f"{URI.replace('abfss', scheme)}/{name}"
    done = skipbridge("sync", f"lake.{scheme}", "--location", location, "--index")
    assert done.exit_code == 0, done.output
    with MetastoreClient(uri) as client:
        assert client.get_table("lake", scheme).sd.location == location
        assert len(client.get_partition_names("lake", scheme)) == MONTHS
    told = skipbridge("explain", f"lake.{scheme}", "n = 15 AND month < 3", "--output", "json")
    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    assert report["files"]["kept"] == 1, report


def test_a_container_that_does_not_exist_is_refused(uri: str) -> None:
    nowhere = URI.replace("://lake@", "://elsewhere@")
    done = skipbridge("sync", "lake.nowhere", "--location", f"{nowhere}/t")
    assert done.exit_code == 1 and "there is no container" in done.output, done.output
