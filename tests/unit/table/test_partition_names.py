"""Names of directories that are easily lost, or taken for what they are not; each is told of."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import InvalidRequest, SchemaConflict
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from tests.support.sync_lake import NAME, ModelMetastore


def lake(root: Path, *directories: str) -> Path:
    for number, directory in enumerate(directories):
        (root / directory).mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), root / directory / "a.parquet")
    return root


def ids(root: Path) -> list[int]:
    return sorted(bridge.connect().table(f"{root}/").scan().to_arrow()["id"].to_pylist())


def sync(root: Path) -> SyncReport:
    request = SyncRequest(NAME, str(root))
    found = TableSync(ModelMetastore(), LocalStorage(), request, SyncSettings())  # type: ignore[arg-type]
    return found.run()


def test_partitions_whose_key_begins_with_an_underscore(tmp_path: Path) -> None:
    root = lake(tmp_path / "t", "_p=1/q=1", "_p=2/q=1")
    assert ids(root) == [0, 1] and len(sync(root).added) == 2


def test_such_a_partition_beside_others_is_not_passed_over(tmp_path: Path) -> None:
    root = lake(tmp_path / "t", "p=1", "_p=2")
    with pytest.raises(SchemaConflict, match="_p"):
        ids(root)
    assert sync(root).unparsable


@pytest.mark.parametrize("more", [(), ("p=3",)])
@pytest.mark.parametrize("hidden", ["_x/p=2", "p=1/_x"])
def test_hidden_directories_with_data_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hidden: str, more: tuple[str, ...]
) -> None:
    root = lake(tmp_path / "t", "p=1", hidden, *more)
    (root / "_SUCCESS").touch()
    (root / "_temporary").mkdir()
    (root / "_temporary" / "a").write_text("x")
    for ask in (ids, sync):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            ask(root)  # type: ignore[operator]
        (told,) = [r.getMessage() for r in caplog.records]
        assert f"{root}/{hidden.partition('_x')[0]}_x is left out" in told


def test_leading_zeros_make_a_text_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = lake(tmp_path / "t", *(f"year=2024/month={m:02}/h=1" for m in range(1, 13)))
    for ask in (ids, sync):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            ask(root)  # type: ignore[operator]
        (told,) = [r.getMessage() for r in caplog.records]
        assert "month is a string" in told and told.endswith("--partition-keys year,month:int,h")


@pytest.mark.parametrize("directory", ["a=1/a=2", "a=1/A=2", "a=1/b=3/a=2"])
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, directory: str) -> None:
    root = lake(tmp_path / "t", directory)
    with pytest.raises(InvalidRequest, match="twice"):
        ids(root)
