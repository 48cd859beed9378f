"""Directories that another table format keeps are not read as plain files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.foreign import refuse_foreign_files

MARK = ".hoodie_partition_metadata"


def write(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet") and not file.name.startswith("."):
            pq.write_table(pa.table({"x": [1]}), file)
        else:
            file.write_text("{}")


def look(root: Path) -> None:
    catalog = DirectoryCatalog(open_storage(), f"file://{root}")
    catalog.table(catalog.name)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a.parquet", "_delta_log/0.json"), "a Delta Lake table"),
        (("data/a.parquet", "metadata/v1.metadata.json"), "an Iceberg table"),
        (("a.parquet", MARK), "a partition of a Hudi table"),
        (("a.parquet", f"{MARK}.parquet"), "a partition of a Hudi table"),
        (("day=1/a.parquet", f"day=1/{MARK}"), "a partition of a Hudi table"),
        (("README", "day=1/a.parquet", f"day=1/{MARK}"), "a partition of a Hudi table"),
        (("t/a.parquet", f"t/{MARK}", "t/.hoodie/x"), "/t is a Hudi table below"),
        (("t/d=1/a.parquet", f"t/d=1/{MARK}", "t/.hoodie/timeline/x"), "/t is a Hudi table below"),
    ],
)
def test_files_of_another_table_format_are_refused(
    tmp_path: Path, names: tuple[str, ...], words: str
) -> None:
    write(tmp_path, *names)
    with pytest.raises(UnsupportedTable, match=words):
        look(tmp_path)
    data = sorted({str((tmp_path / n).parent) for n in names if not n.startswith("_delta")})
    with pytest.raises(UnsupportedTable, match=words):
        refuse_foreign_files(open_storage(), f"file://{tmp_path}", [f"file://{d}" for d in data])


def test_a_hudi_table_without_its_properties_is_called_damaged(tmp_path: Path) -> None:
    write(tmp_path, "d=1/a.parquet", f"d=1/{MARK}", ".hoodie/timeline/x")
    with pytest.raises(UnsupportedTable, match="a damaged Hudi table"):
        refuse_foreign_files(open_storage(), f"file://{tmp_path}", [f"file://{tmp_path}/d=1"])


@pytest.mark.parametrize(
    "names",
    [
        ("metadata=1/a.parquet", "metadata=2/a.parquet"),
        ("d=1/a.parquet", f"_old/d=1/{MARK}", "_old/.hoodie/x"),
        ("d=1/a.parquet", f".trash/{MARK}"),
    ],
)
def test_what_is_beside_the_table_refuses_nothing(tmp_path: Path, names: tuple[str, ...]) -> None:
    write(tmp_path, *names)
    look(tmp_path)
    first = (tmp_path / names[0]).parent
    refuse_foreign_files(open_storage(), f"file://{tmp_path}", [f"file://{first}"])


def test_the_level_that_is_not_key_value_is_named(tmp_path: Path) -> None:
    write(tmp_path, "flights/month=1/a.parquet")
    with pytest.raises(InvalidRequest, match="/flights is not named key=value"):
        look(tmp_path)
