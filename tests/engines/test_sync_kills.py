"""A sync whose metastore dies in the middle."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from bridge.kernel.errors import MetastoreUnavailable
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import free_port
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import TableName
from tests.engines.sync_real_lake import RealMetastore, write


@pytest.mark.full
def test_a_metastore_that_dies_between_batches(tmp_path: Path) -> None:
    """It has a metastore of its own, which it kills."""
    spec = MetastoreSpec(tmp_path / "metastore", port=free_port())
    root = tmp_path / "t"
    write(root, *(f"p={i}" for i in range(60)))
    settings = SyncSettings(BatchLimits(count=10), parallelism=1)
    request = SyncRequest(TableName("dies", "t"), str(root))
    client = MetastoreClient(
        f"thrift://127.0.0.1:{spec.port}", MetastoreSettings(retry_deadline=0.5)
    )
    with client:
        with start_embedded_metastore(spec) as server:
            dying = RealMetastore(client, "dies")
            batches = itertools.count()

            def die(method: str, moment: str) -> None:
                if method == "add_partitions" and moment == "after" and next(batches) == 2:
                    server.kill()

            dying.interfere = die
            with pytest.raises(MetastoreUnavailable):
                TableSync(dying, LocalStorage(), request, settings).run()  # type: ignore[arg-type]
        with start_embedded_metastore(spec):
            assert len(client.get_partition_names("dies", "t")) == 30
            report = TableSync(client, LocalStorage(), request, settings).run()
            assert (len(report.added), report.partitions) == (30, 60)
