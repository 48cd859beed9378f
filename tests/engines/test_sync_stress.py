"""A client sets a table's properties all the time, and syncs change the table beside it."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from bridge.kernel.errors import MetastoreFailure
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.support.hudi_fixtures import hudi_fixtures
from tests.support.hudi_sync import commit_json, sync_hudi
from tests.support.metastore_proxy import Call, Fate, MetastoreProxy
from tests.support.sync_rivals import Outcome, sync
from tests.support.sync_world import DDL_TIME, World, parquet
from tests.tiers import examples

pytestmark = [pytest.mark.full, pytest.mark.rule("44")]

T = TypeVar("T")
_numbers = itertools.count()
_SYNCS = 12
_PARTITIONS = 4000
_WITH_COLUMNS = examples(100, 100, _PARTITIONS)
_PAUSE = 0.05
_KEPT = 20  # properties; older ones are taken away, so that the record stays small


@dataclass(slots=True)
class Setter:
    """Another client: reads the record, adds a property, writes it back, as ALTER TABLE does.

    Attributes:
        confirmed: when each property's write began and was answered.
        lost: properties that the metastore had confirmed and no longer has.
    """

    client: MetastoreClient
    database: str
    confirmed: dict[str, tuple[float, float]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    _held: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Setter:
        self._thread = threading.Thread(target=self._set_all, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._thread is not None
        self._ended.set()
        self._thread.join(60)
        self._look()

    def _look(self) -> None:
        now: dict[str, str] = self.client.get_table(self.database, "t").parameters
        self.lost |= {name for name in self._held if name not in now}
        self._held = [name for name in self._held if name in now]

    def _set_all(self) -> None:
        for number in itertools.count():
            if self._ended.wait(_PAUSE):
                return
            began = time.monotonic()
            record = self.client.get_table(self.database, "t")
            self.lost |= {name for name in self._held if name not in record.parameters}
            self._held = [n for n in self._held if n in record.parameters][-_KEPT:]
            ours = {n: v for n, v in record.parameters.items() if n[:6] != "rival-"}
            held = {n: record.parameters[n] for n in self._held}
            record.parameters = {**ours, **held, f"rival-{number}": str(number)}
            del record.parameters[DDL_TIME]
            try:
                self.client.alter_table(self.database, "t", record)
            except MetastoreFailure:
                continue  # Derby rolled it back for the sync's: it was not confirmed
            self._held.append(f"rival-{number}")
            self.confirmed[f"rival-{number}"] = (began, time.monotonic())


class Watched:
    """Syncs of a table, through a proxy that records their calls.

    Attributes:
        windows: from a sync's last look at the table's record to the answer of its write.
    """

    def __init__(self, running: RunningMetastore) -> None:
        self.proxy = MetastoreProxy(running.server.port)
        self.windows: list[tuple[float, float]] = []

    def run(self, sync_once: Callable[[], T]) -> T:
        looked = written = 0.0

        def before(call: Call) -> Fate:
            nonlocal looked, written
            now = time.monotonic()
            if written:
                self.windows.append((written, now))
                written = 0.0
            if call.method.startswith("get_table"):
                looked = now
            elif call.method.startswith("alter_table"):
                written = looked
            return Fate.PASS

        self.proxy.reset(before)
        ended = sync_once()
        if written:
            self.windows.append((written, time.monotonic()))
        return ended

    def judge(self, setter: Setter) -> None:
        """Properties are lost in windows only."""
        mean = sum(end - begin for begin, end in self.windows) / max(1, len(self.windows))
        lost, confirmed = len(setter.lost), len(setter.confirmed)
        print(f"{lost} of {confirmed} lost, {len(self.windows)} writes of {mean:.3f} s")
        for name in setter.lost:
            began, answered = setter.confirmed[name]
            assert any(began <= end and answered >= begin for begin, end in self.windows), name


class Stress(Watched):
    """A table of directories."""

    def __init__(self, running: RunningMetastore, base: Path, partitions: int) -> None:
        super().__init__(running)
        self.world = World(base, running.client(), f"stress{next(_numbers)}", None)  # type: ignore[arg-type]
        self._file = base / "file.parquet"
        base.mkdir(exist_ok=True)
        self._file.write_bytes(parquet(id=pa.array([1], pa.int32())))
        for number in range(partitions):
            self.add(number)
        created = sync(self.world, self.proxy.uri)
        assert created.report is not None and len(created.report.added) == partitions, created

    def add(self, number: int) -> None:
        place = self.world.root / f"p={number:05}"
        place.mkdir(parents=True)
        os.link(self._file, place / "f.parquet")

    def sync(self) -> Outcome:
        return self.run(lambda: sync(self.world, self.proxy.uri))


@pytest.fixture(params=["metastore", "metastore_401"])
def running(request: pytest.FixtureRequest) -> Iterator[RunningMetastore]:
    yield request.getfixturevalue(request.param)


def test_syncs_that_change_partitions_lose_no_property(
    running: RunningMetastore, tmp_path: Path
) -> None:
    stress = Stress(running, tmp_path / "t", _PARTITIONS)
    with Setter(running.client(), stress.world.database) as setter:
        for number in range(_SYNCS):
            stress.add(_PARTITIONS + number)
            (stress.world.root / f"p={number:05}" / "f.parquet").unlink()
            ended = stress.sync()
            assert ended.report is not None and ended.status == 0, ended
            assert (len(ended.report.added), len(ended.report.dropped)) == (1, 1), ended.report
    stress.judge(setter)
    assert len(setter.confirmed) > _SYNCS and not setter.lost
    assert not stress.windows, "partitions are not in the table's record"
    assert stress.sync().in_step


def test_syncs_that_change_columns_lose_properties_in_their_window_only(
    running: RunningMetastore, tmp_path: Path
) -> None:
    """Of a record that is written to all the time; the window is from one read to one write."""
    stress = Stress(running, tmp_path / "t", _WITH_COLUMNS)
    refused = 0
    with Setter(running.client(), stress.world.database) as setter:
        for number in range(_SYNCS):
            file = stress.world.root / "p=00000" / f"column-{number}.parquet"
            file.write_bytes(parquet(**{f"c{number}": pa.array([1.5])}))
            refused += stress.sync().report is None  # five rounds met the other
    print(f"{refused} of {_SYNCS} syncs gave up")
    stress.judge(setter)
    assert len(stress.windows) >= _SYNCS
    stress.sync()
    record = stress.world.table()
    assert record is not None
    columns = {c.name for c in record.sd.cols}
    assert columns == {"id", *(f"c{number}" for number in range(_SYNCS))}
    assert stress.sync().in_step


def test_syncs_of_a_hudi_table_lose_properties_in_their_window_only(
    running: RunningMetastore, tmp_path: Path
) -> None:
    """Each new instant is written to the record, as Hudi's own sync does."""
    (fixture,) = hudi_fixtures(bundle="0.15.0", names=["cow_upserts"])
    root = fixture.unpack(tmp_path)
    newest = max((root / ".hoodie").glob("*.commit"))
    schema = json.loads(newest.read_text())["extraMetadata"]["schema"]
    name = TableName(f"stress{next(_numbers)}", "t")
    watched = Watched(running)
    with MetastoreClient(watched.proxy.uri) as client:
        sync_hudi(client, root, name)
        with Setter(running.client(), name.schema) as setter:
            for number in range(_SYNCS):
                instant, day = f"209901{number + 10}000000000", f"2024-05-{number + 10}"
                file = f"11111111-1111-1111-1111-111111111111-0_0-1-2_{instant}.parquet"
                commit_json(root, instant, schema=schema, written={day: [file]})
                report = watched.run(lambda: sync_hudi(client, root, name))
                assert len(report.added) == 1, report.to_dict()
        watched.judge(setter)
        assert len(watched.windows) >= _SYNCS
        sync_hudi(client, root, name)  # the other's last write may have undone its last one
        assert sync_hudi(client, root, name).outcome == "in step"
