"""Sync that stays: batches that a metastore refuses, storage watched, events listened to."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.kernel.errors import TableNotFound
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.maven import Artifact, artifact_file
from bridge.sync.state import MISSING_PROPERTY
from bridge.sync.watch import Events
from tests.engines.conftest import RunningMetastore
from tests.engines.sync_real_lake import command, write

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMetastore]:
    """Hive 2.3.10's metastore that records events; one of 200 partitions is too long for it."""
    directory = tmp_path_factory.mktemp("sync-recording")
    listener = "org.apache.hive.hcatalog.listener.DbNotificationListener"
    jar = Artifact("org.apache.hive.hcatalog", "hive-hcatalog-server-extensions", "2.3.10")
    spec = MetastoreSpec(
        directory,
        port=0,
        in_memory=True,
        properties={
            "hive.metastore.transactional.event.listeners": listener,
            # It tries a refused call ten times, two seconds apart, unless told otherwise.
            "hive.hmshandler.retry.attempts": "1",
            "hive.hmshandler.retry.interval": "10ms",
        },
        class_path=(artifact_file(jar),),
    )
    with start_embedded_metastore(spec) as server:
        yield RunningMetastore(server, directory / "warehouse")


def test_batches_that_the_metastore_refuses_are_halved(
    recording: RunningMetastore, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    write(root, *(f"p={i}" for i in range(100)))
    done = subprocess.run(
        command(recording, "halved.t", "--location", root),
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["counts"]["added"] == report["partitions"] == 100
    assert not report["failed"]


def test_watching_and_listening(recording: RunningMetastore, tmp_path: Path) -> None:
    name = "watched.t"
    database = name.partition(".")[0]
    root = tmp_path / "t"
    write(root, "p=1")
    words = command(recording, name, "--location", root, "--watch", "2s", "--listen")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with recording.client() as client:

            def partitions(wanted: set[str]) -> None:
                deadline = time.monotonic() + 60
                found: set[str] = set()
                while time.monotonic() < deadline and process.poll() is None:
                    try:
                        found = set(client.get_partition_names(database, "t"))
                    except Exception:
                        found = set()
                    if found == wanted:
                        return
                    time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                raise AssertionError((found, wanted, process.communicate(timeout=30)))

            partitions({"p=1"})
            write(root, "p=2")
            partitions({"p=1", "p=2"})
            client.drop_partitions(database, "t", ["p=1"])  # by somebody else
            partitions({"p=1", "p=2"})
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    statuses = [json.loads(line)["status"] for line in _documents(out)]
    assert statuses.count("synced") >= 3


def test_a_table_dropped_while_storage_is_watched(
    recording: RunningMetastore, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    write(root, "p=1")
    words = command(recording, "dropped.t", "--location", root, "--watch", "1s")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        with recording.client() as client:
            assert process.stdout is not None
            told = (line for line in process.stdout if '"status"' in line or '"code"' in line)
            assert "synced" in next(told)
            client.drop_table("dropped", "t")
            for _ in range(3):
                while "TABLE_NOT_FOUND" not in next(told):
                    pass
                with pytest.raises(TableNotFound):
                    client.get_table("dropped", "t")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_a_mark_of_missing_data_is_no_change_by_others(
    recording: RunningMetastore, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    words = command(recording, "marked.t", "--location", root)
    subprocess.run(words, capture_output=True, check=True)
    with recording.client() as client:
        events = Events(client)
        events.begin()

        def marks() -> bool:
            (found,) = client.get_partitions_by_names("marked", "t", ["p=2"]).partitions
            return MISSING_PROPERTY in found.parameters

        shutil.rmtree(root / "p=2")
        for there in (True, False):  # and data returns
            subprocess.run(words, capture_output=True, check=True)
            touched = events.find_touched()
            assert marks() is there
            assert "marked.t" in touched.changed and not touched.altered
            write(root, "p=2")
        (other,) = client.get_partitions_by_names("marked", "t", ["p=2"]).partitions
        other.sd.location = f"file:{root}/p=1"
        client.alter_partitions("marked", "t", [other], {"DO_NOT_UPDATE_STATS": "true"})
        assert events.find_touched().altered == {"marked.t"}


def _documents(text: str) -> list[str]:
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text.rstrip()):
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end + 1
    return found
