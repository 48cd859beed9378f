"""Random tables that others change between any two calls of a sync; nothing of theirs is lost."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.metastore.client import MetastoreClient
from tests.engines.conftest import RunningMetastore
from tests.support.metastore_proxy import Call, Fate, MetastoreProxy
from tests.support.sync_rivals import Outcome, Rivals, failing_store, small_batches, sync
from tests.support.sync_world import KEYS, World, clear
from tests.tiers import examples, seed

_numbers = itertools.count()
_DRAWS = examples(1, 10, 1500)
BOTH = ["metastore", "metastore_401"]


class Draw:
    """One table's story, by its seed.

    Attributes:
        last: how the story's last sync ended, if it came so far.
    """

    def __init__(self, number: int, base: Path, running: RunningMetastore, quiet: bool) -> None:
        self.random = random.Random(number)
        self.quiet = quiet
        self.client = MetastoreClient(running.uri)
        self.proxy = MetastoreProxy(running.server.port)
        database = f"rivals{next(_numbers)}"
        self.world = World(base, self.client, database, self.random)
        self.world.keys = KEYS[self.random.choice(sorted(KEYS))]
        self.rivals = Rivals(self.world, running.uri)
        self.seen = self.world.seen
        self.last: Outcome | None = None

    def close(self) -> None:
        self.proxy.__exit__(None, None, None)
        self.client.close()

    def tell(self) -> list[str]:
        """Everything that is wrong."""
        wrong = self._prepare()
        if wrong:
            return wrong
        ended = self._disturbed()
        if ended.status == 0:
            self.seen.append("ends with 0")
        wrong += self._crashed("disturbed", ended)
        status = ended.status if self.quiet else 1  # a rival may have come after the listing
        wrong += [f"disturbed {w}" for w in self.rivals.faults(status)]
        full = self.rivals.alone or self.world.chance(50)
        second = sync(self.world, self.rivals.uri, full=full)
        wrong += self._crashed("quiet", second)
        wrong += [f"quiet {w}" for w in self.rivals.faults(second.status)]
        if second.report is None:
            return [*wrong, f"quiet: {second.error}"]
        before = self.world.table(), self.world.partitions()
        self.last = third = sync(self.world, self.rivals.uri)
        if (self.world.table(), self.world.partitions()) != before:
            wrong.append("third: it changed the metastore once more")
        if third.status != second.status or not third.in_step:
            report = third.report.to_dict() if third.report else third.error
            wrong.append(f"third: status {second.status} -> {third.status}: {report}")
        wrong += [f"third {w}" for w in self.rivals.faults(third.status)]
        return wrong

    def _crashed(self, when: str, ended: Outcome) -> list[str]:
        if ended.error is not None and self.quiet:
            return [f"{when}: {ended.error}"]
        return []

    def _prepare(self) -> list[str]:
        world, rivals = self.world, self.rivals
        world.fill()
        origin = self.random.choice(["sync", "sync", "hive", "trino", "spark"])
        self.seen.append(f"table: {origin}")
        if origin != "sync":
            world.create(origin)
            world.repair(self.random.choice([origin, "hive"]))
            world.register_by_hand()
        rivals.remember()
        rivals.others = set(rivals.partitions)
        if world.chance(60):
            self.seen.append("synced before")
            ended = sync(world, rivals.uri)
            wrong = [f"first {w}" for w in rivals.faults(ended.status)]
            if wrong or ended.report is None:
                return wrong or [f"first: {ended.error}"]
            rivals.remember()
        for _ in range(self.random.randint(0, 3)):  # storage goes on
            if world.chance(30):
                gone = sorted(d for d in world.data_directories() if world.values(d))
                gone = [d for d in gone if world.values(d) != world.steady()]
                if gone:
                    clear(world.root / self.random.choice(gone))
                    self.seen.append("storage: directory removed")
                continue
            directory = world.directory()
            values = {world.values(d) for d in world.data_directories()}
            if world.values(directory) in values:
                directory = self.random.choice(sorted(world.data_directories()))
            kind, old = self.random.choice(["first", "longer", "wider"]), world.chance(30)
            world.write(world.root / directory, kind, old=old)
            self.seen.append(f"storage: new file, {kind}{' with an old time' if old else ''}")
        return []

    def _disturbed(self) -> Outcome:
        """A sync, with rivals and faults at some of its calls."""
        acts: set[int] = set()
        fates: dict[int, Fate] = {}
        failing = 10**9
        if not self.quiet:
            acts = {self.random.randrange(20) for _ in range(self.random.randint(1, 3))}
            if self.random.randrange(3) == 0:
                fate = self.random.choice([Fate.LOSE, Fate.CUT, Fate.REFUSE])
                fates[self.random.randrange(12)] = fate
            if self.random.randrange(4) == 0:
                failing = self.random.randrange(6)
                self.seen.append("fault: of the store")

        def before(call: Call) -> Fate:
            if call.number in acts:
                acts.remove(call.number)
                moment = "write" if call.writes else "read"
                self.seen.append(f"rival before a {moment}: {self.rivals.act(call)}")
            fate = fates.get(call.number, Fate.PASS)
            if fate is not Fate.PASS:
                self.seen.append(f"fault: {fate.name} of a {'write' if call.writes else 'read'}")
            return fate

        self.proxy.reset(before)
        with failing_store(failing), small_batches(self.random.choice([1, 2, 200])):
            ended = sync(self.world, self.proxy.uri, full=self.world.chance(30))
        for _ in acts:
            self.seen.append(f"rival after it: {self.rivals.act(None)}")
        return ended


@pytest.fixture(params=BOTH)
def running(request: pytest.FixtureRequest) -> Iterator[RunningMetastore]:
    yield request.getfixturevalue(request.param)


def ask(running: RunningMetastore, base: Path, numbers: range, *, quiet: bool) -> Counter[str]:
    """Tells many stories; fails with all seeds whose end is wrong. Returns what was drawn."""
    counts: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    for number in numbers:
        draw = Draw(number, base / str(number), running, quiet)
        try:
            found = draw.tell()
        finally:
            draw.close()
        counts.update(set(draw.seen))
        if found:
            wrong[number] = found
    print(f"{len(numbers)} tables", dict(sorted(counts.items())))
    assert not wrong, "\n".join(f"seed {n}: {w}" for n, found in wrong.items() for w in found)
    return counts


@pytest.mark.rule("43", "44", "45", "48")
def test_nothing_that_others_did_is_lost(running: RunningMetastore, tmp_path: Path) -> None:
    start = seed(0)
    ask(running, tmp_path, range(start, start + _DRAWS), quiet=False)


def test_most_tables_that_are_left_alone_end_in_step(
    running: RunningMetastore, tmp_path: Path
) -> None:
    start = seed(10_000)
    counts = ask(running, tmp_path, range(start, start + _DRAWS), quiet=True)
    assert counts["ends with 0"] >= 0.8 * _DRAWS, counts
