"""Entries of readers that believed more of what writers state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.config import Config, Setting
from bridge.expression.bind import bind
from bridge.expression.builders import eq
from bridge.expression.nodes import AlwaysTrue
from bridge.index.manifest import BELIEVED
from bridge.index.registry import kind
from bridge.jobs.doctor import _index
from bridge.planner.request import ScanRequest
from bridge.report.remedies import spelled
from bridge.table.model import Column
from bridge.types import BIGINT, STRING, TRINO, Field
from tests.support.clustered import clustered
from tests.support.index_builds import fill, kept
from tests.support.lake import NAME, Lake, age

Older = Callable[[], Any]


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Older:
    """A context in which builds are those of an older reader."""

    @contextmanager
    def of_older() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr("bridge.index.build.READER", BELIEVED - 1)
            yield

    return of_older


def reasons(lake: Lake) -> list[tuple[str, str]]:
    """Codes and remedies of what a scan does not use."""
    planner = lake.planner()
    try:
        plan = planner.plan(ScanRequest(NAME, AlwaysTrue()))
        list(plan.batches())
        return [(each.reason, spelled(each.remedy)) for each in plan.report().not_used]
    finally:
        planner.lister.close()


@pytest.mark.rule("37")
def test_min_and_max_are_unknown_until_the_files_are_read_again(lake: Lake, older: Older) -> None:
    fill(lake, 3)
    with older():
        lake.build(settings=lambda held: held.adding([kind("bloom").define("x")]))
    assert kept(lake, 5) == ["f000", "f001", "f002"]
    assert reasons(lake) == [("OLD_READER", "skipbridge index refresh db.t")]
    serving = lake.snapshot()
    assert serving.rows.tolist() == [2, 2, 2] and serving.all_trusted
    (filters,) = serving.kinds  # what was made of the data is used
    asked = bind(eq("x", 10), (Field("x", BIGINT),), (), TRINO)
    never = filters.never(asked, np.arange(3), TRINO)
    assert never is not None and never.tolist() == [True, False, True]
    assert lake.build().read == 3
    assert kept(lake, 5) == ["f000"] and reasons(lake) == []
    assert lake.build().read == 0


@pytest.mark.rule("37")
def test_only_entries_of_older_readers_are_doubted(
    lake: Lake, older: Older, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted refresh leaves both."""
    fill(lake, 3)
    with older():
        lake.build()
    fill(lake, 2, start=3)
    with monkeypatch.context() as patched:
        patched.setattr("bridge.index.build.believes", lambda *_: True)
        assert lake.build().read == 2
    assert lake.snapshot().num_doubted == 3
    assert kept(lake, 35) == ["f000", "f001", "f002", "f003"]
    assert kept(lake, 5) == ["f000", "f001", "f002"]
    assert lake.build().read == 3
    assert kept(lake, 35) == ["f003"]


@pytest.mark.rule("37")
def test_a_column_that_a_file_lacks_is_still_null(lake: Lake, older: Older) -> None:
    lake.write("f0", {"y": [1]})
    lake.write("f1", {"x": [5]})
    with older():
        lake.build()
    assert kept(lake, 7) == ["f1"]


@pytest.mark.rule("37")
def test_entries_that_were_read_from_the_data_stay(lake: Lake, older: Older) -> None:
    lake.format = "orc"
    lake.columns = (Column("x", BIGINT), Column("s", STRING))
    for i in range(2):
        path = lake.path(f"f{i}")
        po.write_table(pa.table({"x": [i * 10, i * 10 + 9], "s": ["a", "b"]}), path)
        age(path)
    with older():
        lake.build()
    assert lake.snapshot().num_doubted == 0
    assert reasons(lake) == [] and lake.build().read == 0


@pytest.mark.rule("37")
def test_clustered_files_too(tmp_path: Path, older: Older) -> None:
    lake = Lake(tmp_path, columns=(Column("x", BIGINT), Column("s", STRING)))
    fill(lake, 4)
    with older():
        lake.build()
        clustered(lake, layout="linear", columns=("x",), grouping="time")
    index = lake.snapshot()
    assert index.clustered is not None
    assert (index.num_doubted, index.clustered.index.num_doubted) == (4, 1)  # type: ignore[attr-defined]
    assert reasons(lake) == [("OLD_READER", "skipbridge index refresh db.t")]
    lake.build()
    index = lake.snapshot()
    assert index.clustered is not None
    assert (index.num_doubted, index.clustered.index.num_doubted) == (0, 0)  # type: ignore[attr-defined]
    assert reasons(lake) == []


def test_doctor_names_the_command(tmp_path: Path, lake: Lake, older: Older) -> None:
    fill(lake, 2)
    with older():
        lake.build()
    place = str(lake.root / "t")
    config = Config({"planner.cache_dir": Setting(str(tmp_path / "copies"), "test")})
    found = _index(config, place)
    assert found.status == "warning" and "2 files were indexed" in found.detail
    assert found.remedy == f"skipbridge index refresh {place}"
    lake.build()
    assert _index(config, place).status == "ok"
