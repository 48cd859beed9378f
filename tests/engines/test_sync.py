"""Sync against real metastores, 2.3.10 and 4.0.1: histories, kills, two at once, bad input."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.main import cli
from bridge.metastore._gen import ttypes
from bridge.metastore.hooks import is_hooked
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncSettings
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.engines.sync_real_lake import RealLake, RealMetastore, command, write
from tests.support.hooked_records import hook_table
from tests.support.sync_lake import (
    JUNK,
    KEY_COLUMNS,
    SCHEMAS,
    VALUES,
    Meddle,
    Remove,
    Step,
    Write,
)

_numbers = itertools.count()
BOTH = ["metastore", "metastore_401"]


@pytest.fixture(params=BOTH)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealLake]:
    running: RunningMetastore = request.getfixturevalue(request.param)
    with running.client() as client:
        made = RealLake(tmp_path, RealMetastore(client, f"synced{next(_numbers)}"))
        made.take(Write("p=1/q=1", "first"))
        yield made


def histories(seed: int, length: int) -> list[list[Step]]:
    draw = random.Random(seed)

    def values() -> tuple[str | None, str | None]:
        return draw.choice(VALUES), draw.choice(("1", "a b"))

    def step() -> Step:
        from bridge.table.partition import partition_name

        directory = partition_name(("p", "q"), values())
        if draw.random() < 0.15:
            directory = draw.choice(JUNK)
        match draw.choice(["write", "write", "write", "remove", "meddle"]):
            case "write":
                return Write(directory, draw.choice(sorted(SCHEMAS)))
            case "remove":
                return Remove(directory if draw.random() < 0.6 else "p=1", draw.random() < 0.5)
        return Meddle(draw.choice(["forget", "columns", "elsewhere", "outside"]), values())

    return [[step() for _ in range(8)] for _ in range(length)]


KEYS = {"keys": KEY_COLUMNS}


def test_the_metastore_says_what_lies_on_storage(lake: RealLake) -> None:
    lake.sync(**KEYS)
    for steps in histories(1, 4):
        for step in steps:
            lake.take(step)
        places = lake.places()
        lake.sync(full=True)
        lake.check(places)
        before = lake.metastore.client.get_table(lake.metastore.database, "t")
        assert lake.sync().outcome == "in step" and lake.sync(full=True).outcome == "in step"
        assert lake.metastore.record == before, "a sync that finds nothing to do writes nothing"


class Killed(BaseException):
    """The process is gone."""


def test_killed_at_every_write_and_completed_by_the_next(lake: RealLake) -> None:
    lake.sync(**KEYS)
    lake.settings = SyncSettings(BatchLimits(count=2), parallelism=2, recheck_after=0.0, quiet=0.0)
    steps = [*histories(2, 1)[0], *histories(3, 1)[0]]
    client, database = lake.metastore.client, lake.metastore.database
    results = []
    for k in range(30):
        client.drop_table(database, "t")
        shutil.rmtree(lake.root)
        lake.take(Write("p=1/q=1", "first"))
        lake.sync(**KEYS)
        for step in steps:
            lake.take(step)
        left = [k]

        def kill(method: str, now: str, k: int = k, left: list[int] = left) -> None:
            if now == ("before", "after")[k % 2]:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed

        lake.metastore.interfere = kill
        killed = False
        try:
            lake.sync(full=True)
        except Killed:
            killed = True
        lake.metastore.interfere = lambda method, moment: None
        report = lake.sync()
        lake.check()
        record = lake.metastore.record
        results.append(([(c.name, c.type) for c in record.sd.cols], lake.places()))
        if not killed:
            break
    assert report.outcome == "in step"
    assert k > 4 and all(r == results[-1] for r in results)


@pytest.mark.parametrize("metastore_name", BOTH)
def test_two_processes_at_once(
    metastore_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    running: RunningMetastore = request.getfixturevalue(metastore_name)
    name = f"twice{next(_numbers)}.t"
    database = name.partition(".")[0]
    root = tmp_path / "t"
    write(root, *(f"p={i}" for i in range(60)))
    # On Derby, Hive 2.3 holds up one who alters while another drops for half a minute.
    later = "longer" if metastore_name == "metastore_401" else "first"
    words = (name, "--location", root, "--drop-now", "--drop-all")
    both = command(running, *words, batch=7)
    for changed in range(2):
        done = [subprocess.Popen(both, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        reports = [json.loads(p.communicate(timeout=600)[0]) for p in done]
        assert [p.returncode for p in done] == [0, 0], reports
        with running.client() as client:
            names = set(client.get_partition_names(database, "t"))
            assert names == {p.name for p in root.glob("p=*")}, changed
            columns = [c.name for c in client.get_table(database, "t").sd.cols]
            found = client.get_partitions_by_names(database, "t", sorted(names)).partitions
            assert all([c.name for c in p.sd.cols] == columns for p in found)
        for i in range(20):
            shutil.rmtree(root / f"p={i}", ignore_errors=True)
        write(root, *(f"p={i}" for i in range(100, 120)), schema=later)
    assert columns == ["id", "name", *(["extra"] if later == "longer" else [])]


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed(
    metastore: RunningMetastore, tmp_path: Path, signal_number: signal.Signals
) -> None:
    name = f"killed{next(_numbers)}.t"
    database = name.partition(".")[0]
    root = tmp_path / "t"
    write(root, *(f"p={i}" for i in range(300)))
    words = command(metastore, name, "--location", root, batch=5)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with metastore.client() as client:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if len(client.get_partition_names(database, "t")) >= 20:
                    break
            except Exception:
                time.sleep(0.01)
        process.send_signal(signal_number)
        process.wait(30)
        begun = len(client.get_partition_names(database, "t"))
        assert 20 <= begun < 300
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)
        # A call under way is carried out though its caller is gone.
        assert 0 <= 300 - begun - report["counts"]["added"] <= 5 * 4, begun
        assert report["partitions"] == 300
        assert len(client.get_partition_names(database, "t")) == 300


# the command line, and what users and the world do wrong


@pytest.fixture
def run(metastore: RunningMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", metastore.uri)
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))

    def call(*words: object) -> Result:
        return CliRunner().invoke(cli, ["sync", *map(str, words)])

    return call


def refused(result: Result, code: str, *words: str, status: int = 2) -> None:
    assert f"error {code}: " in result.stderr, result.output
    assert "\n  -> " in result.stderr and "Traceback" not in result.output
    for word in words:
        assert word in result.stderr, (word, result.stderr)
    assert result.exit_code == status


def done(result: Result, status: int = 0) -> dict[str, Any]:
    assert result.exit_code == status, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def name() -> str:
    return f"cli{next(_numbers)}.t"


def test_a_dry_run_shows_the_difference_and_changes_nothing(
    run: Any, name: str, tmp_path: Path, metastore: RunningMetastore
) -> None:
    root = tmp_path / "t"
    write(root, *(f"p={i}" for i in range(30)))
    result = run(name, "--location", root, "--dry-run")
    assert result.exit_code == 0
    assert f"+ table {name}, partitioned by p int" in result.stdout
    assert "+ column id int" in result.stdout and "+ partition p=0" in result.stdout
    assert "+ ... and 10 more" in result.stdout and "30 partitions added" in result.stdout
    with metastore.client() as client:
        assert name.partition(".")[0] not in client.get_all_databases()
    assert run(name, "--location", root).exit_code == 0
    shutil.rmtree(root / "p=3")
    write(root, "p=40", schema="longer")
    waiting = done(run(name, "--dry-run", "--output", "json"))
    assert not waiting["dropped"] and [w["partition"] for w in waiting["waiting"]] == ["p=3"]
    found = done(run(name, "--dry-run", "--drop-now", "--output", "json"))
    assert (found["outcome"], found["added"], found["dropped"]) == ("planned", ["p=40"], ["p=3"])
    assert found["table_changes"] == ["+ column extra double"]
    assert {u["change"] for u in found["updated"]} == {"columns of the table"}
    assert done(run(name, "--drop-now", "--output", "json"))["counts"]["updated"] == 29
    assert done(run(name, "--output", "json"))["outcome"] == "in step"


def test_the_first_example_of_the_how_to_page(
    run: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/sync.md").read_text()
    example = page.split("$ skipbridge sync demo.flights --dry-run\n")[1].split("```")[0]
    root = tmp_path / "flights"

    def put(directory: str, kind: pa.DataType, file: str = "f.parquet") -> None:
        (root / directory).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"dep_delay": pa.array([1], kind)}), root / directory / file)

    days = [f"month={m}/day={d}" for m in (1, 2) for d in (1, 2, 30)]
    for directory in days:
        put(directory, pa.int32())
    assert run(name, "--location", root, "--index").exit_code == 0
    monkeypatch.setenv("SKIPBRIDGE_SYNC_DROP_AFTER", "0s")
    shutil.rmtree(root / "month=2/day=30")
    assert run(name).exit_code == 0
    put("month=1/day=1", pa.int64(), "g.parquet")
    put("month=3/day=9", pa.int64())
    put("tmp-7", pa.int64())
    told = run(name, "--dry-run").output

    def plain(text: str) -> list[str]:
        text = text.replace(name, "demo.flights").replace(f"file://{root}", "s3://lake/flights")
        *lines, last = text.strip().splitlines()
        return [*lines, re.sub(r"[\d.]+", "N", last)]

    assert plain(told) == plain(example)


def test_a_table_that_is_not_ours(
    run: Any, name: str, tmp_path: Path, metastore: RunningMetastore
) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    assert run(name, "--location", root).exit_code == 0
    database = name.partition(".")[0]
    with metastore.client() as client:
        record = client.get_table(database, "t")
        # A mark of another root, and an owner's name, prove nothing.
        record.parameters = {
            "EXTERNAL": "TRUE",
            "note": "kept",
            "skipbridge.sync.root": "file:///x",
        }
        record.owner = "skipbridge"
        client.alter_table(database, "t", record)
        write(root, "p=3")
        refused(run(name), "TABLE_ALREADY_EXISTS", "owner is skipbridge", "--adopt")
        refused(run(name, "--dry-run"), "TABLE_ALREADY_EXISTS", "--adopt")
        assert client.get_table(database, "t").parameters.get("note") == "kept"
        assert len(client.get_partition_names(database, "t")) == 2
        found = done(run(name, "--adopt", "--output", "json"))
        assert found["adopted"] and found["added"] == ["p=3"]
        assert client.get_table(database, "t").parameters["note"] == "kept"
        assert done(run(name, "--output", "json"))["outcome"] == "in step"


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [({"table_type": "ICEBERG"}, "Iceberg"), ({"transactional": "true"}, "ACID")],
)
def test_a_table_of_another_kind_is_not_even_adopted(
    run: Any,
    name: str,
    tmp_path: Path,
    metastore_401: RunningMetastore,
    parameters: dict[str, str],
    kind: str,
) -> None:
    root = tmp_path / "t"
    write(root, "p=1")
    words = (name, "--metastore-uri", metastore_401.uri)
    assert run(*words, "--location", root).exit_code == 0
    with metastore_401.client() as client:
        record = client.get_table(name.partition(".")[0], "t")
        record.parameters |= parameters
        try:
            client.alter_table(name.partition(".")[0], "t", record)
        except Exception:
            pytest.skip("this metastore lets no such table be made")
    refused(run(*words, "--adopt"), "UNSUPPORTED_TABLE", kind)


def test_a_table_elsewhere_moves_only_when_told(run: Any, name: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    write(old, "p=1", "p=2", "p=3")
    assert run(name, "--location", old).exit_code == 0
    write(new, "p=1", "p=2")
    refused(run(name, "--location", new), "TABLE_ALREADY_EXISTS", str(old), str(new), "--move")
    found = done(run(name, "--location", new, "--move", "--output", "json"))
    assert found["counts"]["updated"] == 2 and not found["dropped"]
    assert [k["partition"] for k in found["kept"]] == ["p=3"] and (old / "p=3").is_dir()
    assert all(str(new) in u["change"] for u in found["updated"])
    assert done(run(name, "--full", "--output", "json"))["outcome"] == "in step"


def test_schema_conflicts(run: Any, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root, "p=1", schema="wider")
    assert run(name, "--location", root).exit_code == 0
    (root / "p=2").mkdir()
    pq.write_table(pa.table({"id": ["text"]}), root / "p=2" / "f.parquet")
    refused(run(name), "SCHEMA_CONFLICT", "id", "bigint", "string")
    shutil.rmtree(root)
    write(root, "p=1", "p=3", schema="first")
    refused(
        run(name),
        *("SCHEMA_CONFLICT", "id would narrow from bigint to int"),
        *("table: id bigint, name string", "files: id int, name string", "--hold-wider"),
    )
    found = done(run(name, "--hold-wider", "--output", "json"))
    assert found["added"] == ["p=3"] and not found["table_changes"]


def test_unparsable_directories_and_collisions(
    run: Any, name: str, tmp_path: Path, metastore: RunningMetastore
) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=a b", "odd", "p=2/deeper")
    found = done(run(name, "--location", root, "--output", "json"), 3)
    assert found["counts"]["unparsable"] == found["counts"]["unregistered"] == 2
    assert {u["directory"] for u in found["unparsable"]} == {"odd", "p=2/deeper"}
    database = name.partition(".")[0]
    with metastore.client() as client:
        record = client.get_table(database, "t")
        record.sd.location = f"file:{root}/odd"
        odd = ttypes.Partition(
            values=["9"], dbName=database, tableName="t", sd=record.sd, parameters={}
        )
        client.add_partitions(database, "t", [odd])
    write(root, "p=a%20b", "p=c d", "p=c%20d")
    result = run(name, "--full")
    assert result.exit_code == 3, result.output
    for told in (
        "! not a partition: odd: 'odd' is not named key=value",
        "! kept p=9 at",
        "! collision: p=a b is claimed by p=a b, p=a%20b",
        "! collision: p=c d is claimed by p=c d, p=c%20d",
    ):
        assert told in result.stderr, result.stderr
    with metastore.client() as client:
        assert sorted(client.get_partition_names(database, "t")) == ["p=1", "p=9", "p=a b"]


def test_a_directory_that_vanishes_meanwhile(
    run: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was listed: its file cannot be read any more, and it is not registered."""
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    assert run(name, "--location", root).exit_code == 0
    write(root, "p=3", "p=4")
    real = LocalStorage.read_ranges

    def vanish(self: LocalStorage, uri: str, ranges: Any) -> Any:
        shutil.rmtree(root / "p=4", ignore_errors=True)
        return real(self, uri, ranges)

    monkeypatch.setattr(LocalStorage, "read_ranges", vanish)
    monkeypatch.setattr("bridge.sync.request.RECHECK_AFTER", 0.0)
    found = done(run(name, "--output", "json"))
    assert found["added"] == ["p=3"] and found["partitions"] == 3
    assert not (root / "p=4").exists()


def test_43_an_empty_place_drops_nothing_unless_told(run: Any, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    assert run(name, "--location", root).exit_code == 0
    shutil.rmtree(root)
    refused(run(name), "TABLE_NOT_FOUND", "2 partitions are registered", "--drop-all")
    assert done(run(name, "--drop-all", "--output", "json"))["counts"]["dropped"] == 2


def test_wrong_requests(run: Any, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    refused(run(name), "INVALID_REQUEST", "--location")
    refused(run(name, "--location", root), "TABLE_NOT_FOUND", str(root))
    refused(run(), "INVALID_REQUEST", "--all")
    refused(run("t", "--location", root), "INVALID_REQUEST", "DB.TABLE")
    refused(run(name, "--partition-keys", "a:"), "INVALID_REQUEST", "'a:'")
    refused(run(name, "--partition-keys", "a:array<int>"), "INVALID_REQUEST", "array<int>")
    refused(run(name, "--dry-run", "--listen"), "INVALID_REQUEST", "--dry-run")
    write(root, "2024/01/02", "2024/01/03")
    refused(run(name, "--location", root), "INVALID_REQUEST", "'2024'", "--extractor")
    refused(run(name, "--location", root, "--extractor", "dya"), "INVALID_CONFIGURATION", "day")
    assert run(name, "--location", root, "--extractor", "day").exit_code == 0
    write(root, "2024/01/04")
    found = done(run(name, "--output", "json"))  # it remembers the extractor
    assert found["added"] == ["dt=2024-01-04"]
    refused(run(name, "--partition-keys", "x"), "INVALID_REQUEST", "dt", "x")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "f.parquet").write_text("hello, I am text")
    refused(run(f"{name}2", "--location", bad), "TABLE_NOT_FOUND", "does not end as Parquet does")
    write(tmp_path / "n", "p=1")
    for named in ("a b.t", "demo.a b"):
        refused(run(named, "--location", tmp_path / "n"), "INVALID_REQUEST", "'a b'", "letters")


def test_partitions_of_many_bytes_go_in_small_requests(
    run: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.sync.request.LIMITS", BatchLimits(2048))
    root = tmp_path / "t"
    write(root, *(f"p={'x' * 150}{i}" for i in range(40)))
    words = (name, "--location", root, "--output", "json")
    assert done(run(*words))["counts"]["added"] == 40


def test_the_index_is_refreshed_in_the_same_run(run: Any, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    past = time.time() - 100
    for file in root.rglob("*.parquet"):
        os.utime(file, (past, past))
    first = done(run(name, "--location", root, "--index", "--output", "json"))
    assert (first["index"]["files"], first["index"]["committed"]) == (2, True)
    again = done(run(name, "--index", "--output", "json"))
    assert again["outcome"] == "in step" and again["index"] is None
    write(root, "p=3")
    assert done(run(name, "--index", "--output", "json"))["index"]["files"] == 3


def test_an_index_that_is_gone_is_built_again(run: Any, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    past = time.time() - 100
    for file in root.rglob("*.parquet"):
        os.utime(file, (past, past))
    made = run(name, "--location", root, "--index")
    assert "index @ generation 1: 2 files, 2 read, 0 old entries removed" in made.output
    assert "index in step" in run(name, "--index").output
    manifest = root / ".skipbridge/generations/1.json"
    manifest.write_text("{}")
    assert done(run(name, "--index", "--output", "json"))["index"]["read"] == 2
    shutil.rmtree(root / ".skipbridge")
    again = done(run(name, "--index", "--output", "json"))
    assert again["outcome"] == "in step" and again["index"]["read"] == 2
    assert "index in step" in run(name, "--index").output


def test_a_table_whose_records_are_hooked_stays_in_step(
    run: Any, name: str, tmp_path: Path, metastore: RunningMetastore
) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    database = name.partition(".")[0]
    assert run(name, "--location", root).exit_code == 0
    hook_table(metastore.uri, TableName(database, "t"))
    write(root, "p=3")
    assert done(run(name, "--output", "json"))["added"] == ["p=3"]
    with metastore.client() as client:
        names = client.get_partition_names(database, "t")
        found = client.get_partitions_by_names(database, "t", names).partitions
    assert {is_hooked(p.sd) for p in found} == {True} and len(found) == 3
    assert done(run(name, "--full", "--output", "json"))["outcome"] == "in step"


def test_many_tables_and_one_that_fails(run: Any, tmp_path: Path) -> None:
    number = next(_numbers)
    for i in range(6):
        write(tmp_path / f"t{i}", "p=1", f"p={i + 2}")
    (tmp_path / "t3" / "p=1" / "f.parquet").write_bytes(SCHEMAS["first"][0][:-9])
    (tmp_path / "t3" / "p=5" / "f.parquet").write_text("text")
    file = tmp_path / "tables.toml"
    file.write_text(
        '[defaults]\nextractor = "hive"\npartition_keys = "p:int"\n'
        + "".join(
            f'[[tables]]\nname = "many{number}.t{i}"\nlocation = "{tmp_path}/t{i}"\n'
            for i in range(6)
        )
    )
    result = run("--all", file, "--output", "json")
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["summary"] == {
        "tables": 6,
        "in_step": 0,
        "synced": 5,
        "problems": 0,
        "failed": 1,
    }
    (failed,) = [t for t in found["tables"] if t["status"] == "failed"]
    assert failed["table"].endswith(".t3") and failed["error"]["code"] == "TABLE_NOT_FOUND"
    write(tmp_path / "t3", "p=1", "p=5")
    result = run("--all", file)
    assert result.exit_code == 0 and "5 in step, 1 synced" in result.stdout
    file.write_text(file.read_text() + "locaton = 'x'\n")
    refused(run("--all", file), "INVALID_CONFIGURATION", "locaton", "did you mean location?")


def test_thirty_tables_several_at_once(
    run: Any, tmp_path: Path, metastore: RunningMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In step, out of step, and one gone: each as its directory says, whatever the others are."""
    database = f"thirty{next(_numbers)}"
    monkeypatch.setenv("SKIPBRIDGE_SYNC_TABLES_AT_ONCE", "8")
    for i in range(30):
        write(tmp_path / f"t{i}", "p=1", f"p={i + 2}")
    file = tmp_path / "tables.toml"
    file.write_text(
        "".join(
            f'[[tables]]\nname = "{database}.t{i}"\nlocation = "{tmp_path}/t{i}"\n'
            for i in range(30)
        )
    )

    def summary(*words: object) -> dict[str, int]:
        found = json.loads(run("--all", file, *words, "--output", "json").stdout)
        assert len({t["table"] for t in found["tables"]}) == 30
        return {k: n for k, n in found["summary"].items() if n}

    assert summary() == {"tables": 30, "synced": 30}
    assert summary() == {"tables": 30, "in_step": 30}
    for i in range(0, 30, 3):
        shutil.rmtree(tmp_path / f"t{i}" / "p=1")
        write(tmp_path / f"t{i}", "p=100", schema="wider")
    shutil.rmtree(tmp_path / "t29")
    after = {"tables": 30, "synced": 10, "in_step": 19, "failed": 1}
    assert summary("--drop-now") == after
    with metastore.client() as client:
        for i in range(30):
            expected = ["p=100", f"p={i + 2}"] if i % 3 == 0 else ["p=1", f"p={i + 2}"]
            assert sorted(client.get_partition_names(database, f"t{i}")) == sorted(expected)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("_delta_log/0.json", "Delta Lake"),
        ("metadata/v1.metadata.json", "Iceberg"),
        ("p=1/.hoodie_partition_metadata", "partition of a Hudi table"),
    ],
)
def test_files_of_another_table_format_are_not_registered(
    run: Any, name: str, tmp_path: Path, mark: str, words: str
) -> None:
    root = tmp_path / "t"
    write(root, "p=1")
    (root / mark).parent.mkdir(exist_ok=True)
    (root / mark).write_text("{}")
    refused(run(name, "--location", root), "UNSUPPORTED_TABLE", words)
