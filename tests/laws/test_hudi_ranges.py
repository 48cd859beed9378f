"""What changed in a range of a Hudi table's timeline, and what it held at each instant.

A model writer as in `test_hudi_merged_pruning`, also in version 6, where one log holds blocks of
several instants and of writers that died. Rows are those of the model as of the range's end whose
last change lies in the range, with predicates and an index, and after archival.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridge
from bridge.kernel.errors import ReadVersionNotFound
from tests.laws.test_hudi_merged_pruning import (
    COMMIT_TIME,
    EVENT_TIME,
    Group,
    Row,
    Table,
    condition,
    ids,
)
from tests.support.hudi_evolving import PAYLOADS
from tests.support.hudi_tables import Written


class Ranges(Table):
    """Keeps the rows as of each instant, in ``states``."""

    def __init__(self, root: Path, version: int, mode: str, random: Random) -> None:
        super().__init__(root, version, mode, random)
        self._clock = 20260101000000000
        self.states: list[tuple[str, list[Row]]] = []
        self._open: dict[str, tuple[str, str]] = {}
        if version < 8:
            with (self.hudi.meta / "hoodie.properties").open("a") as file:
                file.write(f"hoodie.compaction.payload.class={PAYLOADS[mode]}\n")
        (root / ".hoodie_partition_metadata").touch()

    def step(self) -> None:
        """One write, or a writer that dies."""
        before = self._clock
        choices = [self._insert, *[self._update] * 5, self._compact, self._fail]
        (self._random.choice(choices) if self.groups else self._insert)()
        if self._clock > before and not self.is_pending(str(self._clock)):
            self.states.append((str(self._clock), self.rows()))

    def is_pending(self, instant: str) -> bool:
        return not any(
            path.suffix in (".commit", ".deltacommit")
            for path in self.hudi.timeline.glob(f"{instant}[._]*")
        )

    def pending(self, until: str) -> list[str]:
        """Instants of writers that died, up to and with one."""
        begun = (path.name for path in self.hudi.timeline.glob("*.requested"))
        found = sorted(name.partition(".")[0] for name in begun)
        return [instant for instant in found if instant <= until and self.is_pending(instant)]

    def archive(self) -> None:
        """Moves some of the oldest instants to the archived timeline, not past a pending one."""
        names = (path.name for path in self.hudi.timeline.iterdir() if path.is_file())
        known = sorted({n.partition(".")[0].partition("_")[0] for n in names} - {"hoodie"})
        known = [instant for instant in known if instant < self.states[-1][0]]
        able = next((n for n, i in enumerate(known) if self.is_pending(i)), len(known))
        if able:
            self.hudi.archive(*known[: self._random.randint(1, able)])

    def _log(self, group: Group, instant: str, rows: list[Row]) -> Written:
        """Before version 8 named after the base file, perhaps at the end of the one before."""
        if self.hudi.version >= 8:
            return super()._log(group, instant, rows)
        assert group.base is not None
        named = group.base.name.rpartition("_")[2].partition(".")[0]
        held, name = self._open.get(group.id, ("", ""))
        if held != named or self._random.random() < 0.5:
            number = len(list(self._root.glob(f".{group.id}_{named}.log.*"))) + 1
            name = self.hudi.log("", group.id, named, number=number).name
            self._open[group.id] = named, name
        path = self._root / name
        offset = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            file.write(self._block(instant, rows))
        group.logs += 1
        return Written("", name, path.stat().st_size, named, offset)


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("mode", [COMMIT_TIME, EVENT_TIME])
@settings(max_examples=max(settings.default.max_examples // 100, 3))
@given(random=st.randoms(use_true_random=False))
def test_ranges_and_versions_hold_what_was_written(version: int, mode: str, random: Random) -> None:
    with tempfile.TemporaryDirectory() as directory, bridge.connect() as session:
        table = Ranges(Path(directory) / "t", version, mode, random)
        for _ in range(random.randint(2, 16)):
            table.step()
        opened = session.table(str(Path(directory) / "t"))
        if random.random() < 0.7:
            opened.index.build()
        for _ in range(random.randint(0, 3)):
            table.step()  # the index does not know these
        if random.random() < 0.5:
            table.archive()
        for _ in range(5):
            at = random.randrange(len(table.states))
            until, rows = table.states[at]
            after = random.choice(["", *(instant for instant, _ in table.states[: at + 1])])
            text, holds = condition(random)
            kept = [row for row in rows if holds(row)]
            changed = [row for row in kept if row["_hoodie_commit_time"] > after]
            is_newest = at == len(table.states) - 1
            open_writes = table.pending(until)
            if open_writes:  # their rows would belong to the version
                with pytest.raises(ReadVersionNotFound, match=open_writes[0]):
                    opened.scan(text, version=until).to_arrow()
            in_range = [i for i in open_writes if i > after and version < 8]
            if in_range:  # a consumer that goes on from the end would never see them
                with pytest.raises(ReadVersionNotFound, match=in_range[0]):
                    opened.scan(text, changes=(after, until)).to_arrow()
            try:
                if not in_range:
                    found = opened.scan(text, changes=(after, until)).to_arrow().to_pylist()
                    assert ids(found) == ids(changed), (text, after, until)
                if is_newest and not in_range:
                    found = opened.scan(text, changes=(after, "")).to_arrow().to_pylist()
                    assert ids(found) == ids(changed), (text, after)
                if not open_writes:
                    found = opened.scan(text, version=until).to_arrow().to_pylist()
                    assert ids(found) == ids(kept), (text, until)
            except ReadVersionNotFound as error:
                assert not is_newest and "is not closed" not in error.message
