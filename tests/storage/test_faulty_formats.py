"""Tables of every format on a store that fails: a scan tells the right rows, or it fails.

``--tier=nightly`` asks 120 scans of each kind of table, and clusters 25 tables of each
format, with faults at 1 to 20 % of the requests in every step.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bridge.app.api.session import Session
from bridge.clustering.commands import publish
from bridge.clustering.commands import run as cluster
from bridge.clustering.execution import DIRECTORY
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.timeline import Timeline
from bridge.index.generations.store import IndexStore
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import BridgeError, FileUnreadable, IndexConflict, StorageFailure
from bridge.segments.commands import add, indexes, tables
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.storage.test_faulty_store import some_faults
from tests.support.format_files import avro_bytes, orc_bytes
from tests.support.hudi_fixtures import hudi_fixtures
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, Versitygw
from tests.tiers import examples

pytestmark = pytest.mark.full

SCANS = examples(8, 8, 120)
TABLES = examples(1, 1, 25)
FILES, ROWS = 12, 40
WHERE = ("", "id BETWEEN 60 AND 130", "id >= 300 AND kind = 'k2'", "kind = 'k1'")
TOLD = (StorageFailure, FileUnreadable, IndexConflict)
happened: Counter[str] = Counter()


@pytest.fixture
def calm(proxy: SlowStore) -> Iterator[SlowStore]:
    proxy.behave(Behaviour())
    yield proxy
    proxy.behave(Behaviour())


@pytest.fixture
def settings(
    gateway: Versitygw, calm: SlowStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, Setting]:
    """Settings by which everything asks through the proxy, and repeats requests only twice."""
    for name, value in gateway.environment.items():
        monkeypatch.setenv(name, value)

    def opened(uri: str | None = None, options: Any = None) -> Storage:
        return open_storage(uri, {**(options or {}), "retries": "2", "timeout": "2"})

    monkeypatch.setattr("bridge.runtime.compose.open_storage", opened)
    options = gateway.through(calm.port)
    given = {f"storage.{key}": options[key] for key in ("endpoint", "region", "allow_http")}
    given["planner.cache_dir"] = str(tmp_path / "cache")
    return {key: Setting(value, "test") for key, value in given.items()}


def rows(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": [f"k{i % 3}" for i in ids]})


def parquet_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def csv_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(include_header=False, quoting_style="none"))
    return sink.getvalue()


def json_bytes(table: pa.Table) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()


def directory(config: Config, direct: Storage, root: str, name: str) -> None:
    write = {"orc": orc_bytes, "parquet": parquet_bytes}[name]
    for number in range(FILES):
        direct.put(f"{root}/f{number:02d}.{name}", write(rows(number)))
    index_table(config, root, local=True, progress=lambda *_: None, say=lambda _: None)


def segments(config: Config, direct: Storage, root: str, name: str) -> None:
    write = {"csv": csv_bytes, "json": json_bytes, "avro": avro_bytes}[name.split()[0]]
    for number in range(FILES):
        direct.put(f"{root}-facts/s{number % 3}/f{number:02d}", write(rows(number)))
    columns = [("id", "bigint"), ("kind", "string")]
    tables.create_table(config, root, format=name.split()[0], columns=columns)
    indexes.create_index(config, root, name="m", kind="minmax", local=True)
    for number in range(3):
        add.add_segment(config, root, paths=[f"{root}-facts/s{number}"], local=True)


def hudi(config: Config, direct: Storage, root: str, name: str) -> None:
    (fixture, *_) = hudi_fixtures(names=[name.split()[1]])
    path = fixture.path()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        direct.put(f"{root}/{file.relative_to(path)}", file.read_bytes())
    index_table(config, root, local=True, progress=lambda *_: None, say=lambda _: None)


KINDS: dict[str, Callable[[Config, Storage, str, str], None]] = {
    "orc": directory,
    "parquet": directory,
    "avro segments": segments,
    "csv segments": segments,
    "json segments": segments,
    "hudi cow_upserts": hudi,
    "hudi mor_upserts": hudi,
}


def scanned(config: Config, root: str, where: str) -> Counter[str]:
    with Session(config) as session:
        found = session.table(root).scan(*([where] if where else ())).to_arrow()
    return Counter(repr(sorted(row.items())) for row in found.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_costs_a_row(
    kind: str, settings: dict[str, Setting], calm: SlowStore, direct: Storage, tmp_path: Path
) -> None:
    config = Config(settings)
    root = f"s3://{BUCKET}/formats/{kind.replace(' ', '-')}"
    KINDS[kind](config, direct, root, kind)
    asked = ("",) if kind.startswith("hudi") else WHERE
    expected = {where: scanned(config, root, where) for where in asked}
    assert all(expected.values()) and (len(asked) == 1 or sum(expected[""].values()) == 480)
    rng = random.Random(kind)
    answered = failed = 0
    for number in range(SCANS):
        if number % 4 == 0:  # a planner whose copy of the index is empty
            cache = Setting(str(tmp_path / str(number)), "test")
            config = Config({**settings, "planner.cache_dir": cache})
        where = rng.choice(asked)
        faults = some_faults(rng)
        if rng.random() < 0.1:  # what the index keeps has checksums
            faults = Behaviour(rate=0.3, faults=("flip",), only="^GET .*skipbridge", seed=number)
        calm.behave(faults)
        try:
            found = scanned(config, root, where)
        except BridgeError as error:
            assert isinstance(error, TOLD), (number, where, error)
            failed += 1
        else:
            assert found == expected[where], (number, where)
            answered += 1
        calm.behave(Behaviour())
    happened["scans"] += answered
    happened["scans that failed"] += failed
    happened["faults"] += calm.take().failed
    assert answered > SCANS // 4


@pytest.mark.parametrize("seed", range(TABLES))
def test_files_are_rewritten_on_a_store_that_fails(
    seed: int, settings: dict[str, Setting], calm: SlowStore, direct: Storage
) -> None:
    """Whatever fails, the rows stay; the plan then completes, and a cleanup leaves no file without
    a name, not even of a group whose files could not be deleted when it failed."""
    config = Config(settings)
    root = f"s3://{BUCKET}/rewritten/{seed}"
    directory(config, direct, root, "parquet")
    before = {where: scanned(config, root, where) for where in WHERE}
    rng = random.Random(seed)
    limits = Limits(small=1 << 20, target=1 << 20)
    strategy = Strategy("linear", ("kind", "id"), "size", limits)
    made: dict[str, Any] = {}
    done: dict[str, Any] = {}
    for attempt in range(8):
        calm.behave(some_faults(rng) if attempt < 6 else Behaviour())
        try:
            if not made:
                made = cluster.schedule(config, root, strategy, lambda _: None)
            done = cluster.run(config, root, made["instant"], local=True, progress=lambda *_: None)
        except TOLD:
            happened["rewrites that failed"] += 1
        calm.behave(Behaviour())
        assert {where: scanned(config, root, where) for where in WHERE} == before
        if done.get("state") == "completed":
            break
        if done:  # a group that storage fails twice is left out, for a plan that comes later
            assert done["state"] == "rejected"
            happened["plans that were rejected"] += 1
            made, done = {}, {}
    happened["faults"] += calm.take().failed
    happened["rewrites"] += 1
    assert done["state"] == "completed"
    store = IndexStore(direct, f"{root}/.skipbridge")
    publish.clean(config, root, -10, dry_run=False)
    held = store.latest()
    assert held is not None
    named = {f"{store.root}/{blob.name}" for blob in held.blobs()}
    named |= {f"{store.root}/generations/{held.generation}.json"}
    timeline = Timeline(direct, store.root)
    results = [timeline.result(s.instant, g.id) for s in timeline.states(held)
               for g in timeline.plan(s.instant).groups]  # fmt: skip
    named |= {state.path for result in results if result for state in result.new}
    left = [
        path
        for path in direct.list_all(root).paths.to_pylist()
        if path not in named and f"{store.root}/clustering/" not in path
    ]
    originals = [f"{root}/f{number:02d}.parquet" for number in range(FILES)]
    assert sorted(left) == originals, [p for p in left if DIRECTORY in p]
    assert {where: scanned(config, root, where) for where in WHERE} == before


def test_the_faults_did_happen() -> None:
    if not happened["scans"]:
        pytest.skip("the law was not asked in this run")
    print(dict(happened))
    assert happened["faults"] > 10, happened
