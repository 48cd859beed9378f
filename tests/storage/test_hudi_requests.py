"""Requests of a plan over a Hudi table in an object store: few, and side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.generations.store import IndexStore
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.port import Storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from tests.support.hudi_tables import HudiTable
from tests.support.lake import drained
from tests.support.slow_store import Seen, SlowStore
from tests.support.versitygw import BUCKET

pytestmark = pytest.mark.full

_FIELDS = [{"name": "id", "type": ["null", "long"], "default": None}]
_SCHEMA = json.dumps({"type": "record", "name": "t", "fields": _FIELDS})


class Stream:
    """A table of many commits, as a writer leaves it in a store."""

    def __init__(self, local: Path, storage: Storage, root: str, version: int) -> None:
        self.table = HudiTable(local, version, "COPY_ON_WRITE")
        self._storage, self._root = storage, root
        self._commits = 0
        self._put: set[str] = set()

    def write(self, commits: int) -> None:
        for _ in range(commits):
            self._commits += 1
            instant = str(20260101000000000 + self._commits)
            group = f"{self._commits:08d}-0000-0000-0000-000000000000-0"
            file = self.table.base("", group, instant)
            self.table.commit(instant, [file], action="commit", schema=_SCHEMA)
        for path in sorted(self.table.root.rglob("*")):
            name = str(path.relative_to(self.table.root))
            if path.is_file() and name not in self._put:
                self._storage.put(f"{self._root}/{name}", path.read_bytes())
                self._put.add(name)


@pytest.mark.parametrize("version", [6, 8])
def test_the_requests_of_a_plan(
    version: int, direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/hudi-{version}"
    stream = Stream(tmp_path / "t", direct, root, version)
    stream.write(40)
    catalog = DirectoryCatalog(slow, root)
    proxy.take()
    name = catalog.table(catalog.name).name
    first = proxy.take()
    views = IndexViews(lambda _: IndexStore(slow, f"{root}/.skipbridge"), tmp_path / "c", 0.0)
    planner = Planner(catalog, views, DirectoryLister(slow, 16))
    request = ScanRequest(name, parse_where("id = 1")[0], freshness="live")

    def planned(files: int) -> Seen:
        proxy.take()
        assert len(drained(planner.plan(request))) == files
        return proxy.take()

    assert first.count("GET", part="commit") == 40
    # The bodies are read side by side, and with them the history of schemas is listed.
    assert first.most > 8
    planned(40)
    unchanged = planned(40)
    assert unchanged.count("LIST", part="/.hoodie") == 1  # the timeline
    assert unchanged.count("GET", part="hoodie.properties") == 1
    assert unchanged.count(part="/.hoodie/") == 2
    assert unchanged.most == 2
    stream.write(8)
    after = planned(48)
    assert after.count("GET", part="commit") == 8
    # The timeline, whether it was archived, and the history of schemas. What is empty, twice.
    assert after.count("LIST", part="/.hoodie/") == 5
    assert after.most > 4
