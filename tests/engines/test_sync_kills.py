"""A sync whose metastore dies in the middle, or answers too late."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.kernel.errors import BridgeError, MetastoreUnavailable
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import Server, free_port
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.engines.sync_real_lake import RealLake, RealMetastore, write
from tests.support.metastore_proxy import Call, Fate, MetastoreProxy
from tests.support.sync_world import parquet

_WRITES = ("alter_table", "alter_partitions", "add_partitions", "drop_partitions")
_numbers = itertools.count()
_BATCHES = SyncSettings(BatchLimits(count=10), drop_after=0.0, quiet=0.0)


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


def _change(root: Path, number: int) -> None:
    """Storage after which a sync alters the table, and alters, adds and drops partitions."""
    for i in range(30):
        write(root, f"p={number}x{i:02}")
    (root / f"p={number}x00" / "g.parquet").write_bytes(_with_column(number))
    for directory in sorted(root.glob(f"p={number - 1}x*"))[:15]:
        shutil.rmtree(directory)


def _with_column(number: int) -> bytes:
    return parquet(**{"id": pa.array([1], pa.int32()), f"more{number}": pa.array(["x"])})


def _is_right(lake: RealLake, number: int) -> None:
    """Each directory is one partition, and each has all columns."""
    places = lake.places()
    assert sorted(places.values()) == sorted(p for p in lake.root.iterdir() if p.name[0] == "p")
    columns = {f"more{i}" for i in range(number + 1)}
    for values, partition in lake.metastore.partitions.items():
        assert columns <= {c.name for c in partition.sd.cols}, values


def _lake(uri: str, base: Path, database: str, settings: MetastoreSettings) -> RealLake:
    return RealLake(base, RealMetastore(MetastoreClient(uri, settings), database), _BATCHES)


@pytest.mark.full
@pytest.mark.rule("44", "45")
@pytest.mark.parametrize("when", ["later", "meanwhile"])
def test_a_metastore_that_is_killed_while_it_writes(tmp_path: Path, when: str) -> None:
    """It is killed during the second call of each kind that writes, and started again: after the
    run has failed, or while the run tries again.
    """
    spec = MetastoreSpec(tmp_path / "metastore", port=free_port())
    settings = MetastoreSettings(retry_deadline=0.5 if when == "later" else 300.0)
    with ExitStack() as stack:
        running = [stack.enter_context(start_embedded_metastore(spec))]
        proxy = stack.enter_context(MetastoreProxy(spec.port))
        lake = _lake(proxy.uri, tmp_path, "killed", settings)
        _change(lake.root, 0)
        lake.sync()
        for number, kind in enumerate(_WRITES, 1):
            _change(lake.root, number)
            killed = threading.Event()
            proxy.reset(_kill_in_call(kind, 1 if kind == "alter_table" else 2, running, killed))
            if when == "later":
                with pytest.raises(BridgeError):
                    lake.sync()
                running[0] = stack.enter_context(start_embedded_metastore(spec))
                proxy.reset()
                lake.sync()
            else:
                restart = threading.Thread(target=_restart, args=(stack, spec, running, killed))
                restart.start()
                lake.sync()
                restart.join()
            assert killed.is_set(), kind
            proxy.reset()
            _is_right(lake, number)
            assert lake.sync().outcome == "in step", kind
            assert lake.sync(full=True).outcome == "in step", kind


def _kill_in_call(
    kind: str, at: int, running: list[Server], killed: threading.Event
) -> Callable[[Call], Fate]:
    left = [at]

    def kill() -> None:
        running[0].kill()
        killed.set()

    def before(call: Call) -> Fate:
        if call.method.startswith(kind):
            left[0] -= 1
            if left[0] == 0:
                threading.Timer(0.02, kill).start()
        return Fate.PASS

    return before


def _restart(
    stack: ExitStack, spec: MetastoreSpec, running: list[Server], killed: threading.Event
) -> None:
    killed.wait(300)
    running[0] = stack.enter_context(start_embedded_metastore(spec))


@pytest.mark.full
@pytest.mark.rule("44", "45")
@pytest.mark.parametrize("name", ["metastore", "metastore_401"])
def test_a_metastore_that_answers_too_late(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    """The first call of each kind that writes is carried out after the client has given it up, and
    beside its repetition.
    """
    running: RunningMetastore = request.getfixturevalue(name)
    database = f"late{next(_numbers)}"
    with MetastoreProxy(running.server.port) as proxy:
        lake = _lake(proxy.uri, tmp_path, database, MetastoreSettings(call_timeout=1.0))
        _change(lake.root, 0)
        lake.sync()
        late: list[str] = []

        def before(call: Call) -> Fate:
            kind = next((k for k in _WRITES if call.method.startswith(k)), None)
            if kind is not None and kind not in late:
                late.append(kind)
                time.sleep(3)
            return Fate.PASS

        _change(lake.root, 1)
        proxy.reset(before)
        lake.sync()
        assert sorted(late) == sorted(_WRITES)
        proxy.reset()
        _is_right(lake, 1)
        assert lake.sync().outcome == "in step" and lake.sync(full=True).outcome == "in step"
