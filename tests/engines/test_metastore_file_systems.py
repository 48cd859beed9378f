"""Locations that the metastore which skipbridge brings cannot look at: refused before anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import InvalidRequest, MetastoreFailure
from bridge.kernel.types import parse_hive_type
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import create_table, thrift_table
from bridge.servers.embedded_metastore import (
    FILE_SYSTEMS,
    MetastoreSpec,
    start_embedded_metastore,
)
from bridge.servers.process import LOOPBACK
from bridge.sync.job import SyncJob, run_job
from bridge.sync.request import SyncRequest
from bridge.table.model import CatalogTable, Column, TableName

pytestmark = pytest.mark.full

NAME = TableName("lake", "t")


@pytest.fixture(scope="module", params=["ours", "silent"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Ours, and the same as another's would be: it does not tell what it has."""
    spec = MetastoreSpec(
        tmp_path_factory.mktemp("metastore"),
        port=0,
        in_memory=True,
        properties={FILE_SYSTEMS: ""} if request.param == "silent" else None,
    )
    with start_embedded_metastore(spec) as server:
        yield f"thrift://{LOOPBACK}:{server.port}"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "abfss"])
def test_the_reason_comes_first(uri: str, scheme: str, request: pytest.FixtureRequest) -> None:
    host = "@account.dfs.core.windows.net" if scheme == "abfss" else ""
    location = f"{scheme}://bucket{host}/t"
    if "silent" in request.node.callspec.id:
        table = CatalogTable(NAME, (Column("n", parse_hive_type("bigint")),), (), location)
        with MetastoreClient(uri, MetastoreSettings()) as client:
            client.create_database("lake")
            with pytest.raises(MetastoreFailure, match="create_table") as refused:
                client.create_table(thrift_table(NAME, table))
        assert "docs/how-to/s3.md" in refused.value.hint, refused.value
        return
    config = Config({"metastore.uri": Setting(uri, "test")})
    for dry_run in (True, False):
        with pytest.raises(InvalidRequest, match=f"no file system for {scheme[:2]}") as caught:
            create_table(config, "lake.t", location, dry_run=dry_run, progress=_quiet)
        assert "docs/how-to/s3.md" in caught.value.hint
        job = SyncJob(SyncRequest(NAME, location, dry_run=dry_run))
        with pytest.raises(InvalidRequest, match=f"no file system for {scheme}://"):
            run_job(config, job, progress=_quiet, say=_quiet)
    with MetastoreClient(uri, MetastoreSettings()) as client:
        assert client.get_all_databases() == ["default"]


def _quiet(*_: object) -> None:
    pass
