"""Builds tell installed listeners of each file that they read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.index.building import file_listeners
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.lake import Lake, age

FILES = 90  # of several chunks


class Heard:
    """Also a listener whose methods fail."""

    def __init__(self, fails: bool = False) -> None:
        self.said: list[tuple[str, str, str | None]] = []
        self.fails, self.lock = fails, threading.Lock()

    def begin(self, uri: str) -> None:
        self._hear("begin", uri, None)

    def end(self, uri: str, problem: str | None) -> None:
        self._hear("end", uri, problem)

    def _hear(self, what: str, uri: str, problem: str | None) -> None:
        with self.lock:
            self.said.append((what, uri.rpartition("/")[2], problem))
        if self.fails:
            raise RuntimeError("it is full")


class Entry:
    """An entry point of a distribution."""

    def __init__(self, name: str, plugin: Any) -> None:
        self.name, self.value, self._plugin = name, f"{name}:LISTENER", plugin

    def load(self) -> Any:
        if self._plugin is None:
            raise ImportError("no module")
        return self._plugin


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Heard, Heard]]:
    good, bad = Heard(), Heard(fails=True)
    entries = [Entry("broken", None), Entry("bad", bad), Entry("good", good)]
    found = {file_listeners.GROUP: entries}
    monkeypatch.setattr(file_listeners, "entry_points", lambda group: found[group])
    file_listeners.file_listeners.cache_clear()
    yield good, bad
    file_listeners.file_listeners.cache_clear()


def test_begin_and_end_of_each_file(
    heard: tuple[Heard, Heard], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    names = [f"f{i:03}" for i in range(FILES)]
    for i, name in enumerate(names):
        lake.write(name, {"x": [i]})
    lake.path("damaged").write_bytes(b"PAR1 and no footer")
    age(lake.path("damaged"))
    with caplog.at_level(logging.WARNING):
        report = lake.build()
    good, bad = heard
    assert report.files == FILES + 1 and len(report.failed) == 1
    assert sorted(good.said, key=str) == sorted(bad.said, key=str)
    for name in (*names, "damaged"):
        (begin, end) = [said for said in good.said if said[1] == name]
        assert (begin[0], end[0], begin[2]) == ("begin", "end", None)
        assert (end[2] is not None) == (name == "damaged")
    assert (dict(report.failed)[f"file://{lake.path('damaged')}"]) == next(
        said[2] for said in good.said if said[2]
    )
    assert "broken of broken:LISTENER cannot be loaded" in caplog.text
    assert "the build listener Heard failed: it is full" in caplog.text
    good.said.clear()
    lake.write("new", {"x": [1]})
    lake.build()
    assert [said[:2] for said in good.said if said[1] == "new"] == [
        ("begin", "new"),
        ("end", "new"),
    ]
    assert {said[1] for said in good.said} <= {"new", "damaged"}
