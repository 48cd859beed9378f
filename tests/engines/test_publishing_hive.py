"""Hive's statements around publications: no row of them is lost, or it is named."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.clustering.commands.publish import list_left_files, revert
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH
from tests.engines.test_publishing_others import Published

pytestmark = [pytest.mark.full, pytest.mark.engine]
SETTINGS = {**FETCH, "hive.stats.column.autogather": "false"}
"""The metastore's database has no table for such statistics yet."""
MUTATIONS = ("put", "put_if_absent", "copy", "delete")
DAY_2 = Counter(range(400, 800))


class Met:
    """Does something before one of the writes that this process makes from now on."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int, meet: Callable[[], Any]) -> None:
        self.writes, lock = 0, threading.Lock()
        for name in MUTATIONS:
            method = getattr(LocalStorage, name)

            def write(storage: Any, *rest: Any, _method: Any = method) -> Any:
                with lock:
                    self.writes += 1
                    if self.writes == number:
                        meet()
                return _method(storage, *rest)

            patch.setattr(LocalStorage, name, write)


def rows_of(paths: list[Path]) -> Counter[int]:
    found: Counter[int] = Counter()
    for path in paths:
        found.update(pq.ParquetFile(path).read()["x"].to_pylist())
    return found


def read(found: Published) -> Counter[int]:
    """The rows in the locations in force, which are those of the Python API, too."""
    places = [Path(place.removeprefix("file://")) for place in found.places().values()]
    listed = rows_of([path for place in places for path in place.glob("[!._]*")])
    with bridge.connect(metastore_uri=found.metastore.uri) as session:
        of_api = session.table(str(found.name)).scan(columns=["x"]).to_arrow()["x"].to_pylist()
    assert Counter(of_api) == listed
    return listed


def named(found: Published) -> Counter[int]:
    entries = [each["path"] for each in list_left_files(found.config, str(found.name))]
    return rows_of([Path(each.removeprefix("file://")) for each in entries])


@pytest.mark.parametrize("back", [False, True])
def test_insert_overwrite_before_each_step(
    metastore_401: RunningMetastore, hiveserver2: RunningHiveServer2, tmp_path: Path, back: bool
) -> None:
    step = 0
    while True:
        step += 1
        name = f"overwritten_{'back' if back else 'there'}_{step}"
        found = Published(metastore_401, name, tmp_path / name, True)
        found.clustered()
        run: Callable[[], Any] = found.published
        if back:
            assert sorted(found.published()) == ["day=1", "day=2"]

            def run(found: Published = found) -> Any:
                return revert(
                    found.config, str(found.name), local=True, settled=0.0,
                    progress=lambda *_: None, say=print,
                )  # fmt: skip

        new, into = 9000 + step, f"{found.name} PARTITION (day='1')"

        def overwrite(into: str = into, new: int = new) -> None:
            hiveserver2.query(f"INSERT OVERWRITE TABLE {into} VALUES ({new}, 'hive')", SETTINGS)

        with pytest.MonkeyPatch.context() as patch:
            met = Met(patch, step, overwrite)
            run()
        if met.writes < step:
            break
        for _ in range(2):
            there = read(found)
            assert there + named(found) >= DAY_2 + Counter([new]), step
            assert max(there.values()) == 1 and there >= DAY_2, step
            run()  # what was begun is ended
        in_hive = hiveserver2.query(f"SELECT count(*), sum(x) FROM {found.name}", FETCH)
        assert in_hive == [(sum(there.values()), sum(there.elements()))], step
    assert step > 10


def shown(found: Published, status: int) -> str:
    told = CliRunner().invoke(
        cli, ["cluster", "show", str(found.name), "--metastore-uri", found.metastore.uri]
    )
    assert told.exit_code == status, told.output
    return told.output


def test_a_dropped_and_added_partition_is_named_until_it_is_where_its_rows_are(
    metastore_401: RunningMetastore, hiveserver2: RunningHiveServer2, tmp_path: Path
) -> None:
    found = Published(metastore_401, "dropped", tmp_path / "t", True)
    found.clustered()
    assert sorted(found.published()) == ["day=1", "day=2"]
    hiveserver2.query(f"INSERT INTO {found.name} PARTITION (day='1') VALUES (9000, 'x')", FETCH)
    whole = DAY_2 + Counter(range(400)) + Counter([9000])
    assert read(found) == whole
    shown(found, 0)
    hiveserver2.query(f"ALTER TABLE {found.name} DROP PARTITION (day='1')", FETCH)
    assert read(found) == DAY_2
    (entry,) = list_left_files(found.config, str(found.name))
    assert entry["statement"] in shown(found, 3) and "dropped" in entry["why"]
    hiveserver2.query(f"ALTER TABLE {found.name} ADD PARTITION (day='1')", FETCH)
    assert read(found) == whole - Counter([9000])  # the directory of before
    (entry,) = list_left_files(found.config, str(found.name))
    assert entry["statement"] in shown(found, 3) and "in force again" in entry["why"]
    assert "day=1" not in found.published()
    hiveserver2.query(entry["statement"].rstrip(";"), FETCH)
    assert read(found) == whole
    shown(found, 0)
    hiveserver2.query(f"ALTER TABLE {found.name} DROP PARTITION (day='1')", FETCH)
    (entry,) = list_left_files(found.config, str(found.name))
    hiveserver2.query(entry["statement"].rstrip(";"), FETCH)
    assert read(found) == whole
    shown(found, 0)


def test_a_renamed_table_keeps_its_word(
    metastore_401: RunningMetastore, hiveserver2: RunningHiveServer2, tmp_path: Path
) -> None:
    """Hive leaves the directory of an external table where it is."""
    found = Published(metastore_401, "named", tmp_path / "t", True)
    found.clustered()
    assert sorted(found.published()) == ["day=1", "day=2"]
    hiveserver2.query(f"ALTER TABLE {found.name} RENAME TO others.renamed", FETCH)
    found.name = TableName("others", "renamed")
    found.table = replace(found.table, name=found.name)
    assert read(found) == DAY_2 + Counter(range(400))
    shown(found, 0)
    late = found.root / "day=1/late.parquet"
    late.write_bytes((found.root / "day=1/f0.parquet").read_bytes())
    assert late.name in shown(found, 3) and "`others`.`renamed`" in shown(found, 3)
    late.unlink()
    made = revert(
        found.config, str(found.name), local=True, settled=0.0,
        progress=lambda *_: None, say=print,
    )  # fmt: skip
    assert sorted(made["published"]) == ["day=1", "day=2"]
    assert read(found) == DAY_2 + Counter(range(400))
    assert not any(".skipbridge_clustered" in place for place in found.places().values())
