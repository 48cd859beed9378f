"""An instant is closed once no earlier write is pending: until then nothing is said about it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bridge.kernel.errors import FileCorrupt, ReadVersionNotFound
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.incremental import changes_between
from bridge.table.hudi.timeline.clusterings import is_clustering
from bridge.table.hudi.timeline.instants import instant_at
from bridge.table.model import TableName
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.support.hudi_tables import HudiTable, plan_body
from tests.tiers import examples, seed

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
        with pytest.raises(ReadVersionNotFound, match=f"the {action} {at(20)} is inflight") as no:
            instant_at(NAME, seen, asked)
        assert f"{at(10)} is closed" in no.value.hint
    assert instant_at(NAME, seen, at(19)) == at(10)
    with pytest.raises(ReadVersionNotFound, match=at(20)):
        changes_between(seen, "", at(99))
    assert changes_between(seen, "", at(10)).instants == {at(10)}
    assert changes_between(seen, at(30)).instants == set()
    if version == 6:
        with pytest.raises(ReadVersionNotFound, match=at(20)) as no:
            changes_between(seen, at(10))
        assert "no instant before it is closed" in no.value.hint
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
        except ReadVersionNotFound as error:
            closed = re.match(r"(\d+) is closed", error.hint)
            if closed is not None:  # who ends there goes on from there
                consumed += changes_between(seen, last, closed[1]).instants
                last = closed[1]
            continue
        consumed += fresh
        done = seen.timeline.completed.values()
        last = max((i.completion or i.requested for i in done), default="")
    assert sorted(consumed) == sorted(map(at, order))


REAL = hudi_fixtures()
random.Random(seed(50)).shuffle(REAL)
REAL.sort(key=lambda one: one.name != "cow_inserts")


@pytest.mark.parametrize("fixture", REAL[: examples(4, 40, len(REAL))], ids=lambda one: one.id)
def test_a_write_of_hudi_that_has_not_ended_is_named(fixture: HudiFixture, tmp_path: Path) -> None:
    """Each of a real timeline in turn; compactions and clusterings change no answer."""
    root = fixture.unpack(tmp_path)

    def opened() -> FileSystemView:
        return FileSystemView.open(LocalStorage(), str(root))

    whole = opened()
    if whole.timeline.pending:
        return
    last, completes, refused = max(whole.timeline.completed, default=""), whole.config.completes, 0
    for instant in list(whole.timeline.completed.values())[:-1]:
        if instant.requested == last or instant.requested <= whole.timeline.first_active:
            continue
        file = Path(whole.timeline.uri_of(instant))
        file.rename(tmp_path / "held")
        seen = opened()
        (pending,) = seen.timeline.pending or (None,)
        service = pending is None or pending.action not in (
            "commit",
            "deltacommit",
            "replacecommit",
        )
        service = service or is_clustering(seen, pending)
        asks: list[Callable[[], object]] = [partial(instant_at, NAME, seen, last)]
        if not completes:
            asks.append(partial(changes_between, seen, whole.timeline.first_active))
        for ask in asks:
            try:
                ask()
            except ReadVersionNotFound as error:
                assert (instant.requested in error.message) != service, (instant, error)
                refused += 1
            else:
                assert service, instant
        (tmp_path / "held").rename(file)
    assert refused or fixture.name != "cow_inserts"
