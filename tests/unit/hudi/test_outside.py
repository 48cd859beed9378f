"""Nothing outside of a Hudi table's directory is read or planned, whatever its files name, and no
body of an instant that is too large to be held.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from tests.support.hudi_tables import HudiTable

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


@VERSIONS
@pytest.mark.parametrize("partition", ["../other", "p/../../other", "..", "\0", "p\0q"])
def test_partitions_outside_the_table(tmp_path: Path, version: int, partition: str) -> None:
    table = HudiTable(tmp_path / "t", version)
    table.commit("1", [table.base(partition, "a", "1")])
    view = FileSystemView.open(LocalStorage(), table.uri)
    with pytest.raises(FileCorrupt, match="outside"):
        view.slices()
    with pytest.raises(FileCorrupt, match="outside"):
        view.slices(files=FileListing.of(table.listing()))


@pytest.mark.parametrize(
    ("version", "name", "place"),
    [
        (6, "hoodie__archivelog__folder", "../../other"),
        (8, "hoodie__timeline__path", "../other"),
        (8, "hoodie__timeline__history__path", ".."),
        (8, "hoodie__timeline__history__path", "\\u0000"),
    ],
)
def test_a_timeline_outside_the_table(tmp_path: Path, version: int, name: str, place: str) -> None:
    table = HudiTable(tmp_path / "t", version, **{name: place})
    with pytest.raises(UnsupportedTable, match="outside the table"):
        FileSystemView.open(LocalStorage(), table.uri)


@pytest.mark.parametrize("name", ["../../../../other.parquet", "/etc/x.parquet", 7])
def test_an_archive_that_names_a_file_outside(tmp_path: Path, name: object) -> None:
    table = HudiTable(tmp_path / "t", 8)
    for instant in "123":
        table.commit(instant, [table.base("p", "a", instant)])
    table.archive("1")
    (table.history / "manifest_1").write_text(json.dumps({"files": [{"fileName": name}]}))
    view = FileSystemView.open(LocalStorage(), table.uri)
    with pytest.raises(FileCorrupt, match="archived timeline cannot be read"):
        view.read_archived()


@VERSIONS
@pytest.mark.rule("32")
def test_32_a_body_that_states_gigabytes_is_not_read(tmp_path: Path, version: int) -> None:
    table = HudiTable(tmp_path / "t", version)
    path = table.commit("1", [table.base("p", "a", "1")])
    os.truncate(path, 1 << 40)  # of which the disk has none
    view = FileSystemView.open(LocalStorage(), table.uri)
    with pytest.raises(FileCorrupt, match=rf"{path.name} has {1 << 40} bytes"):
        view.slices()
