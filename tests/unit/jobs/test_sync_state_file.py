"""Where the state of a sync lies, and what follows when it is lost or of another record."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.kernel.errors import StorageFailure
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.state import STATE_PROPERTY
from bridge.sync.state_file import StateFiles
from tests.support.sync_lake import Meddle, Remove, SyncLake, Write
from tests.unit.jobs.test_sync_absence import lake_of, many, sync


def state_of(lake: SyncLake) -> Path:
    (found,) = (lake.root / ".skipbridge" / "sync").iterdir()
    return found


@pytest.mark.rule("44")
def test_runs_that_change_partitions_leave_the_record(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(4))
    before = copy.deepcopy(lake.metastore.record)
    altered: list[str] = []
    lake.metastore.interfere = lambda method, moment: (
        altered.append(method) if method == "alter_table" else None
    )
    lake.take(Write("p=9/q=1", "first"))
    lake.take(Remove("p=1"))
    lake.take(Meddle("columns", ("2", "1")))
    report = sync(lake, drop_now=True, full=True)
    assert (report.added, report.dropped) == (["p=9/q=1"], ["p=1/q=1"]) and report.updated
    assert sync(lake).outcome == "in step" and sync(lake).compared == "changes"
    assert lake.metastore.record == before and not altered
    assert before.parameters[STATE_PROPERTY] == state_of(lake).stem


def _of_another(file: Path) -> None:
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "record": found["record"] + "1"}))


def _of_deep_lists(file: Path) -> None:
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "state": "[" * 100_000}))


@pytest.mark.rule("44")
@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda file: file.write_text(""),
        lambda file: file.write_text('{"record": 1}'),
        lambda file: file.write_text("[1]"),
        lambda file: file.write_text("[" * 100_000),
        _of_deep_lists,
        lambda file: file.write_bytes(b"\xff" * 9),
        lambda file: file.write_bytes(file.read_bytes()[:-40]),
        _of_another,
        lambda file: shutil.rmtree(file.parent.parent),
    ],
)
def test_a_state_that_cannot_be_trusted_costs_a_comparison(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    lake = lake_of(tmp_path, *many(4))
    lake.take(Meddle("columns", ("2", "1")))
    assert sync(lake).outcome == "in step", "nothing tells that others altered a partition"
    spoil(state_of(lake))
    report = sync(lake)
    assert report.compared == "all" and [n for n, _ in report.updated] == ["p=2/q=1"]
    assert sync(lake).compared == "changes"


@pytest.mark.rule("44")
def test_a_copy_of_the_record_has_no_state(tmp_path: Path) -> None:
    """With all its fields but the name, as tools copy it to another database."""
    lake = lake_of(tmp_path, *many(4))
    states = StateFiles(LocalStorage(), f"file://{lake.root}")
    record = lake.metastore.record
    assert states.read(record)
    for field in ("dbName", "tableName"):
        copied = copy.deepcopy(record)
        setattr(copied, field, "other")
        assert states.read(copied) is None


@pytest.mark.rule("44")
def test_copies_over_one_directory_do_not_share_a_state(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(4))
    original = lake.metastore.record
    first = state_of(lake)
    written = first.read_bytes()
    lake.metastore.record = copy.deepcopy(original)
    lake.metastore.record.createTime += 1
    sync(lake)
    token = lake.metastore.record.parameters[STATE_PROPERTY]
    assert token != original.parameters[STATE_PROPERTY]
    assert first.read_bytes() == written, "the original's state stays"
    assert sync(lake).compared == "changes"
    assert lake.metastore.record.parameters[STATE_PROPERTY] == token
    lake.metastore.record = original
    assert sync(lake).compared == "changes"


@pytest.mark.rule("44")
def test_a_table_made_anew_with_the_same_properties_has_no_state(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(4))
    lake.metastore.record.createTime += 1
    lake.take(Meddle("columns", ("2", "1")))
    assert [n for n, _ in sync(lake).updated] == ["p=2/q=1"]


@pytest.mark.rule("43")
def test_the_brake_holds_where_the_number_of_drops_is_lost(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(40))
    for some in range(3):
        for i in range(4 * some, 4 * some + 4):
            lake.take(Remove(f"p={i}"))
        state_of(lake).unlink()
        report = sync(lake, drop_now=True)
        assert not report.dropped and report.held == 4 * some + 4 and report.problems
        assert "a lost number" in report.waiting[0][2]
    assert len(sync(lake, drop_now=True, drop_all=True).dropped) == 12
    assert sync(lake).outcome == "in step"


def test_a_place_that_takes_no_state_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, *many(4))
    state_of(lake).unlink()

    def refuse(self: LocalStorage, uri: str, content: bytes) -> None:
        raise StorageFailure(f"{uri}: read-only file system", "write elsewhere")

    monkeypatch.setattr(LocalStorage, "put", refuse)
    for number in range(2):
        lake.take(Write(f"p=new{number}/q=1", "first"))
        report = sync(lake)
        assert report.added == [f"p=new{number}/q=1"] and not report.problems
        (line,) = report.table_changes
        assert "cannot be written" in line and "index.root" in line
    assert not (lake.root / ".skipbridge" / "sync").exists() or not list(
        (lake.root / ".skipbridge" / "sync").iterdir()
    )
