"""The law of tables of segments: a scan returns exactly the rows of the committed segments.

Random histories: segments are added, deleted, disabled, merged, refreshed and cleaned; commands die
at any write, or meet a rival that commits first. Fact files are never touched.
``--tier=nightly`` asks twenty times as often.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    FileChanged,
    FileUnreadable,
    SegmentConflict,
    SegmentNotFound,
    SegmentOverlap,
)
from bridge.segments.commands import add, compaction, indexes, manage, opened, refresh, tables
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.segments.log import SegmentLog
from tests.support.index_builds import Dying, Killed
from tests.tiers import examples

HISTORIES = examples(10, 10, 500)
STEPS = 10
SUCCESS, DISABLED = "Success", "Disabled"
happened: Counter[str] = Counter()
Operation = Callable[[], Any]


class Rival:
    """A storage in front of which something else commits, once, before the first version."""

    def __init__(self, storage: Any, event: Operation) -> None:
        self._storage, self._event, self._done = storage, event, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        if "/versions/" in uri and not self._done:
            self._done = True
            self._event()
        created: bool = self._storage.put_if_absent(uri, content)
        return created


class History:
    """One table and what it must hold.

    Attributes:
        rows: of each fact file as it was when it was last taken up.
        held: status and files of each segment.
        dirty: files that were rewritten and not taken up since.
    """

    def __init__(self, rng: random.Random, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng, self.root = rng, root
        self.storage: Any = LocalStorage()
        monkeypatch.setattr(opened, "storage_of", lambda _: self.storage)
        self.config, self.table = Config(), str(root / "t")
        self.rows: dict[str, list[int]] = {}
        self.held: dict[str, tuple[str, frozenset[str]]] = {}
        self.dirty: set[str] = set()
        self.moment, self.next = 0, 0
        tables.create_table(self.config, self.table, format="parquet", columns=[("x", "bigint")])
        if rng.random() < 0.7:
            indexes.create_index(self.config, self.table, name="m", kind="minmax", local=True)
        self.session = bridge.connect()

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        first = self.rng.randrange(1000)
        values = list(range(first, first + self.rng.choice((1, 3))))
        pq.write_table(pa.table({"x": pa.array(values, pa.int64())}), path)
        self.moment += 1
        os.utime(path, (1.6e9 + self.moment, 1.6e9 + self.moment))
        self.written = values

    def new_directory(self) -> tuple[str, dict[str, list[int]]]:
        self.next += 1
        where = self.root / "facts" / f"d{self.next}"
        made: dict[str, list[int]] = {}
        for i in range(self.rng.choice((1, 2, 3))):
            path = where / ("deep" if i == 2 else "") / f"f{i}.parquet"
            self.write(path)
            made[f"file://{path}"] = self.written
        return str(where), made

    # what is known of the table

    def ids(self, *statuses: str) -> list[str]:
        return [id for id, (status, _) in self.held.items() if status in statuses]

    def adopt(self) -> None:
        """Takes over the ids after a compaction; files and their states must be as before."""
        before = {status: set(self.files(status)) for status in (SUCCESS, DISABLED)}
        log = SegmentLog(LocalStorage(), f"file://{self.table}")
        self.held = {
            s.id: (s.status.value, frozenset(log.read_files(s.files).files.paths.to_pylist()))
            for s in log.latest().segments
            if s.status.value in before
        }
        assert before == {status: set(self.files(status)) for status in before}

    def files(self, *statuses: str) -> list[str]:
        return [f for status, files in self.held.values() if status in statuses for f in files]

    def check(self) -> None:
        listed = {
            s["id"]: s["status"]
            for s in manage.list_segments(self.config, self.table)["segments"]
            if s["status"] in (SUCCESS, DISABLED)
        }
        assert listed == {id: status for id, (status, _) in self.held.items()}
        files = self.files(SUCCESS)
        table = self.session.table(self.table)
        if self.dirty.intersection(files):
            happened["changed"] += 1
            with pytest.raises((FileChanged, FileUnreadable)):
                table.scan().to_arrow()
            return
        rows = sorted(value for file in files for value in self.rows[file])
        assert sorted(table.scan().to_arrow()["x"].to_pylist()) == rows
        bound = self.rng.randrange(1000)
        found = table.scan(f"x >= {bound} AND x < {bound + 50}")
        wanted = [v for v in rows if bound <= v < bound + 50]
        assert sorted(found.to_arrow()["x"].to_pylist()) == wanted
        happened["skipped"] += found.explain().files_kept < len(files)
        if (chosen := self.rng.choice([*self.ids(SUCCESS), ""])) != "":
            own = sorted(v for file in self.held[chosen][1] for v in self.rows[file])
            some = table.scan(segments=[chosen]).to_arrow()["x"].to_pylist()
            assert sorted(some) == own

    # commands; each returns what it does, and what the table holds afterwards

    def add(self) -> tuple[Operation, Operation]:
        where, made = self.new_directory()

        def run() -> Any:
            return add.add_segment(self.config, self.table, paths=[where], local=True)

        def after() -> None:
            self.rows |= made
            numbers = SegmentLog(LocalStorage(), f"file://{self.table}").latest().definition
            self.held[str(numbers.next_segment - 1)] = (SUCCESS, frozenset(made))

        return run, after

    def change(self, id: str, status: str | None) -> tuple[Operation, Operation]:
        command = {
            None: manage.delete_segments,
            SUCCESS: partial(manage.switch_segments, enabled=True),
            DISABLED: partial(manage.switch_segments, enabled=False),
        }[status]

        def after() -> None:
            files = self.held.pop(id)[1]
            if status is not None:
                self.held[id] = (status, files)

        return lambda: command(self.config, self.table, ids=[id]), after

    def compact(self) -> tuple[Operation, Operation]:
        ids = self.ids(SUCCESS)
        kind = self.rng.choice(("minor", "major", "custom")) if len(ids) > 1 else "minor"
        chosen = self.rng.sample(ids, self.rng.randint(2, len(ids))) if kind == "custom" else ()

        def run() -> Any:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(compaction, "THRESHOLD", (2, 2))
                return compaction.compact(self.config, self.table, kind=kind, ids=chosen)  # type: ignore[arg-type]

        return run, self.adopt

    def refresh(self) -> tuple[Operation, Operation]:
        def after() -> None:
            for file in self.dirty.intersection(self.files(SUCCESS, DISABLED)):
                path = file.removeprefix("file://")
                self.rows[file] = pq.read_table(path)["x"].to_pylist()
            self.dirty.difference_update(self.files(SUCCESS, DISABLED))

        return lambda: refresh.refresh_segments(self.config, self.table, local=True), after

    def clean(self) -> tuple[Operation, Operation]:
        return lambda: manage.clean(self.config, self.table, keep=1, older_than=0), lambda: None

    def command(self) -> tuple[str, Operation, Operation]:
        ids = self.ids(SUCCESS, DISABLED)
        name = self.rng.choice(("add", "add", "delete", "disable", "enable", "compact", "refresh",
                                "clean"))  # fmt: skip
        if name in ("delete", "disable", "enable"):
            if not ids:
                return "add", *self.add()
            status = {"delete": None, "disable": DISABLED, "enable": SUCCESS}[name]
            return name, *self.change(self.rng.choice(ids), status)
        return name, *getattr(self, name)()

    def step(self) -> None:
        if self.rng.random() < 0.15 and (files := self.files(SUCCESS, DISABLED)):
            file = self.rng.choice(files)
            self.write(Path(file.removeprefix("file://")))
            self.dirty.add(file)
        name, run, after = self.command()
        how = self.rng.choice(("alone", "killed", "rival"))
        if how == "rival":
            self.beside(name, run, after)
            return
        if how == "killed":
            before = self.version()
            self.storage = Dying(LocalStorage(), self.rng.randint(1, 6), done=self.coin())
            try:
                run()
            except Killed:
                happened["killed"] += 1
                self.storage = LocalStorage()
                if name == "compact":
                    after()  # it may have merged some groups
                elif self.version() > before:
                    after()
                self.check()
                return
            finally:
                self.storage = LocalStorage()
            after()
            return
        run()
        after()
        happened[name] += 1

    def beside(self, name: str, run: Operation, after: Operation) -> None:
        """Another command commits first: both hold, or this one fails and changes nothing."""
        ids = self.ids(SUCCESS, DISABLED)
        if not ids or name == "clean":
            run()
            after()
            return
        other, then = self.change(self.rng.choice(ids), self.rng.choice((None, DISABLED)))
        committed: list[bool] = []

        def first() -> None:
            self.storage = LocalStorage()
            other()
            committed.append(True)

        self.storage = Rival(LocalStorage(), first)
        try:
            run()
        except (SegmentConflict, SegmentNotFound):
            happened["refused"] += 1
            assert committed
            then()
            if name == "compact":
                self.adopt()
            return
        finally:
            self.storage = LocalStorage()
        if committed:
            happened["both"] += 1
            then()
        after()

    def version(self) -> int:
        return SegmentLog(LocalStorage(), f"file://{self.table}").versions()[-1]

    def coin(self) -> bool:
        return self.rng.random() < 0.5

    def facts(self) -> dict[str, tuple[int, int, str]]:
        """Size, time and checksum of every fact file."""
        return {
            str(path): (
                path.stat().st_size,
                path.stat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for path in (self.root / "facts").rglob("*")
            if path.is_file()
        }


@pytest.mark.rule("21")
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_scans_return_the_rows_of_committed_segments(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(random.Random(seed), tmp_path, monkeypatch)
    written: dict[str, Any] = {}
    for _ in range(STEPS):
        history.step()
        history.check()
    written = history.facts()
    for read_only in (False, True):
        if read_only:
            for path in written:
                Path(path).chmod(0o444)
        run, _ = history.clean()
        run()
        if history.dirty:
            history.refresh()[0]()
        if ids := history.ids(SUCCESS, DISABLED):
            history.change(ids[0], None)[0]()
            history.held.pop(ids[0])
    tables.drop_table(history.config, history.table)
    assert history.facts() == written
    assert not [p for p in (tmp_path / "t").rglob("*") if p.is_file() and "versions" in p.parts]


def test_all_of_it_happened() -> None:
    """The histories above are worth nothing if they never meet a rival or die."""
    assert min(happened[key] for key in ("killed", "both", "refused", "skipped", "changed")) > 0


def test_a_file_belongs_to_a_table_once(tmp_path: Path) -> None:
    config, table = Config(), str(tmp_path / "t")
    path = tmp_path / "facts" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"x": pa.array([1], pa.int64())}), path)
    (tmp_path / "link").symlink_to(path.parent)
    tables.create_table(config, table, format="parquet", columns=[("x", "bigint")])
    linked = str(tmp_path / "link" / "a.parquet")
    for paths in ([f"{path},{path}"], [str(path), str(path.parent)], [str(path), linked]):
        with pytest.raises(SegmentOverlap):
            add.add_segment(config, table, paths=paths, local=True)
    assert manage.list_segments(config, table)["segments"] == []
    add.add_segment(config, table, paths=[str(path)], local=True)
    with pytest.raises(SegmentOverlap, match="segment 0 already"):
        add.add_segment(config, table, paths=[str(path.parent)], local=True)
    manage.delete_segments(config, table, ids=["0"])
    assert add.add_segment(config, table, paths=[str(path)], local=True)["segment"] == "1"
