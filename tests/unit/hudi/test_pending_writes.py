"""An instant is closed once no earlier write is pending: until then nothing is said about it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bridge.errors import FileCorrupt, ReadVersionNotFound
from bridge.storage.local import LocalStorage
from bridge.table.hudi.file_system_view import FileSystemView
from bridge.table.hudi.incremental import changes_between
from bridge.table.hudi.instants import instant_at
from bridge.table.model import TableName
from tests.support.hudi_tables import HudiTable, plan_body
from tests.tiers import examples

pytestmark = pytest.mark.rule("50")
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
NAME = TableName("d", "t")


def at(number: int) -> str:
    return f"202401010000{number:02d}000"


def made(root: Path, version: int, done: list[int], pending: dict[int, str]) -> HudiTable:
    table = HudiTable(root, version)
    for number in done:
        table.commit(at(number), [table.base("p", f"g{number}", at(number))])
    for number, action in pending.items():
        table.begin(at(number), action, inflight=number % 2 == 0)
    return table


def view(table: HudiTable) -> FileSystemView:
    return FileSystemView.open(LocalStorage(), table.uri)


@VERSIONS
@pytest.mark.parametrize("action", ["commit", "deltacommit", "replacecommit"])
def test_an_older_write_that_is_pending_is_named(tmp_path: Path, version: int, action: str) -> None:
    table = made(tmp_path / "t", version, [10, 30], {20: action})
    seen = view(table)
    for asked in (at(20), at(25), at(30), at(99)):
        with pytest.raises(ReadVersionNotFound, match=f"the {action} {at(20)} is inflight"):
            instant_at(NAME, seen, asked)
    assert instant_at(NAME, seen, at(19)) == at(10)
    with pytest.raises(ReadVersionNotFound, match=at(20)):
        changes_between(seen, "", at(99))
    assert changes_between(seen, "", at(10)).instants == {at(10)}
    assert changes_between(seen, at(30)).instants == set()
    if version == 6:
        with pytest.raises(ReadVersionNotFound, match=at(20)):
            changes_between(seen, at(10))
    else:  # it will be completed later than all others, whenever it was requested
        assert changes_between(seen, at(10)).instants == {at(30)}
        assert changes_between(seen, at(10), at(30)).instants == {at(30)}


@VERSIONS
def test_services_change_no_rows(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version, [10, 30], {})
    table.begin(at(20), "compaction")
    action = "replacecommit" if version == 6 else "clustering"
    table.begin(at(21), action)
    table.state(f"{at(21)}.{action}.requested", plan_body("CLUSTER"))
    table.begin(at(22), "clean")
    assert instant_at(NAME, view(table), at(30)) == at(30)
    assert changes_between(view(table), "").instants == {at(10), at(30)}


@VERSIONS
@pytest.mark.parametrize("body", ["", "overwrite", "damaged", "gone"])
def test_a_request_that_does_not_show_a_clustering_is_a_write(
    tmp_path: Path, version: int, body: str
) -> None:
    table = made(tmp_path / "t", version, [10, 30], {20: "replacecommit"})
    name = f"{at(20)}.replacecommit.requested"
    content = {"overwrite": plan_body("INSERT_OVERWRITE"), "damaged": plan_body("CLUSTER")[:-9]}
    path = table.state(name, content.get(body, b""))
    if body == "gone":
        path.unlink()
    code = FileCorrupt if body == "damaged" else ReadVersionNotFound
    with pytest.raises(code, match=at(20)):
        instant_at(NAME, view(table), at(30))
    with pytest.raises(code, match=at(20)):
        changes_between(view(table), at(10), at(40))
    assert instant_at(NAME, view(table), at(19)) == at(10)
    assert len(view(table).slices()) == 2


@VERSIONS
@pytest.mark.parametrize("seed", range(examples(20, 100, 1000)))
def test_an_answer_does_not_change_later(tmp_path: Path, version: int, seed: int) -> None:
    """Windows that follow each other hold each write once, whenever writers complete them."""
    luck = random.Random(seed)
    order = list(range(10, 22))
    luck.shuffle(order)
    table, asof = HudiTable(tmp_path / "t", version), dict[str, str]()
    last, consumed = "", list[str]()
    for step, number in enumerate(order):
        if luck.random() < 0.5:
            table.begin(at(number), "deltacommit")
        for other in order[step + 1 :]:
            # What was requested before the newest is on the timeline already.
            if other < max(order[: step + 1]):
                table.begin(at(other), "deltacommit")
        table.commit(at(number), [table.base("p", f"g{number}", at(number))], end=at(50 + step))
        seen = view(table)
        for asked in map(at, range(9, 23)):
            try:
                found = instant_at(NAME, seen, asked)
            except ReadVersionNotFound:
                continue
            if asked <= at(max(order[: step + 1])):
                assert asof.setdefault(asked, found) == found
        try:
            fresh = changes_between(seen, last).instants
        except ReadVersionNotFound:
            continue
        consumed += fresh
        done = seen.timeline.completed.values()
        last = max((i.completion or i.requested for i in done), default="")
    assert sorted(consumed) == sorted(map(at, order))
