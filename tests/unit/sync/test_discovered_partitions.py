from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING, UNKNOWN
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.discovered_partitions import DiscoveredPartitions, read_directories
from bridge.sync.extractors import find_extractor
from bridge.table.directory.discovered import Discovered, list_directories
from bridge.table.model import Column


def lake(root: Path, *files: str) -> Discovered:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (len(path.name)))
    return list_directories(LocalStorage(), f"file://{root}")


def stored(root: Path, *files: str, keys: tuple[Column, ...] | None = None) -> DiscoveredPartitions:
    return read_directories(lake(root, *files), find_extractor("hive"), keys)


def test_directories_with_data(tmp_path: Path) -> None:
    (tmp_path / "p=3").mkdir()
    found = lake(
        tmp_path,
        "p=1/a",
        "p=1/bb",
        "p=1/_c",
        "p=2/.d",
        "_tmp/p=4/e",
        "_k=1/f",
        ".skipbridge/1.json",
        "root file",
    )
    (tmp_path / "p=5").mkdir()
    (tmp_path / "p=5" / "empty").touch()
    rows = found.rows.select(["path", "files", "bytes"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("", 1, 9), ("_k=1", 1, 1), ("p=1", 2, 3)]
    assert found.uri("p=1") == f"file://{tmp_path}/p=1" and found.uri("") == f"file://{tmp_path}"


def test_the_sample_is_the_newest_file(tmp_path: Path) -> None:
    import os

    lake(tmp_path, "p=1/a", "p=1/b", "p=1/c")
    for name, time in (("a", 10), ("b", 30), ("c", 20)):
        os.utime(tmp_path / "p=1" / name, (time, time))
    (row,) = list_directories(LocalStorage(), f"file://{tmp_path}").rows.to_pylist()
    assert (row["sample"], row["newest"]) == ("b", 30_000_000)


def test_listings_agree_however_many_directories_there_are(tmp_path: Path) -> None:
    files = [f"p={i}/q={j}/f" for i in range(300) for j in range(2)]
    assert len(lake(tmp_path / "many", *files)) == 600
    few = lake(tmp_path / "few", *files[:20])
    assert few.paths == sorted({f.rpartition("/")[0] for f in files[:20]})


def test_keys_and_types_of_a_new_table(tmp_path: Path) -> None:
    found = stored(tmp_path, "y=2024/d=2024-01-02/f", "y=2025/d=2025-01-02/f", "odd/f")
    assert found.keys == (Column("y", INTEGER), Column("d", DATE))
    assert set(found.partitions) == {("2024", "2024-01-02"), ("2025", "2025-01-02")}
    assert found.unparsable == (("odd", "'odd' is not named key=value"),)


def test_declared_types_win(tmp_path: Path) -> None:
    directories = lake(tmp_path, "y=2024/m=01/f")
    declared = (Column("y", BIGINT), Column("m", UNKNOWN))
    found = read_directories(directories, find_extractor("hive", ("y", "m")), None, declared)
    assert found.keys == (Column("y", BIGINT), Column("m", STRING))


def test_values_that_a_key_cannot_hold_are_told(tmp_path: Path) -> None:
    found = stored(tmp_path, "y=2024/f", "y=abc/f", "y=01/f", keys=(Column("y", INTEGER),))
    assert set(found.partitions) == {("2024",), ("01",)}
    assert found.unparsable == (("y=abc", "y is 'abc', no int"),)


@pytest.mark.rule("45")
def test_two_spellings_of_one_value_collide(tmp_path: Path) -> None:
    found = stored(tmp_path, "p=a b/f", "p=a%20b/f", "P=c/f", "p=c/f", "p=d/f")
    assert set(found.partitions) == {("d",)}
    assert dict(found.collisions) == {
        ("a b",): ("p=a b", "p=a%20b"),
        ("c",): ("P=c", "p=c"),
    }


def test_other_levels_than_the_table_has(tmp_path: Path) -> None:
    found = stored(tmp_path, "p=1/f", "p=1/q=2/f", "f", keys=(Column("p", INTEGER),))
    assert set(found.partitions) == {("1",)}
    assert [d for d, _ in found.unparsable] == ["", "p=1/q=2"]
    assert found.unparsable[1][1] == "its keys are p/q, the table's are p"


def test_files_in_the_root_of_a_partitioned_table_are_named(tmp_path: Path) -> None:
    found = stored(tmp_path / "one", "p=1/f", "README.md", "_SUCCESS")
    told = "README.md in the root, above the partitions (p)"
    assert found.unparsable == (("", told),)
    found = stored(tmp_path / "more", "p=1/f", "p=2/f", "a", "b", keys=(Column("p", INTEGER),))
    assert " and 1 more in the root" in found.unparsable[0][1]


def test_files_below_a_partition_belong_to_it_where_engines_read_them(tmp_path: Path) -> None:
    directories = lake(tmp_path, "p=1/a/f", "p=1/f", "p=2/b/c/f", "odd/f")
    found = read_directories(directories, find_extractor("hive"), recursive=True)
    assert {k: (p.directory, p.files) for k, p in found.partitions.items()} == {
        ("1",): ("p=1", 2),
        ("2",): ("p=2", 1),
    }
    assert [d for d, _ in found.unparsable] == ["odd"]
    assert not found.collisions


def test_a_failing_extractor_of_a_package(tmp_path: Path) -> None:
    def broken(directory: str) -> dict[str, str | None]:
        raise ZeroDivisionError(directory)

    found = read_directories(lake(tmp_path, "p=1/f"), broken)
    assert "the extractor failed: ZeroDivisionError" in found.unparsable[0][1]


def test_no_keys(tmp_path: Path) -> None:
    found = stored(tmp_path, "a", "b")
    assert found.keys == () and found.partitions[()].files == 2
