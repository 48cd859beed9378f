"""A table of segments has each file once, however it is spelled; own files are no facts."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidRequest, SegmentOverlap
from bridge.segments.commands import add, compaction, manage, refresh, tables
from bridge.segments.commands.places import refuse_overlap
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileTable
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import SegmentManifest
from tests.tiers import examples, seed

pytestmark = pytest.mark.rule("45")
CONFIG = Config({})


@pytest.fixture
def table(tmp_path: Path) -> str:
    name = str(tmp_path / "t")
    tables.create_table(CONFIG, name, format="csv", columns=[("a", "int")])
    for month in ("05", "06"):
        write(tmp_path / month / "a.csv", month)
    (tmp_path / "current").symlink_to(tmp_path / "05")
    return name


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return path


def lead(link: Path, to: Path) -> None:
    link.unlink()
    link.symlink_to(to)


def adds(table: str, *paths: Path | str) -> None:
    add.add_segment(CONFIG, table, paths=list(map(str, paths)), local=True)


def test_a_link_that_moved_on_doubles_nothing(table: str, tmp_path: Path) -> None:
    adds(table, tmp_path / "current")
    adds(table, tmp_path / "06")
    lead(tmp_path / "current", tmp_path / "06")
    with pytest.raises(SegmentOverlap, match="belong to segment 1 already"):
        refresh.refresh_segments(CONFIG, table, local=True, segments=["0"])
    with pytest.raises(SegmentOverlap, match="are the same file"):
        refresh.refresh_segments(CONFIG, table, local=True)
    manage.delete_segments(CONFIG, table, ids=["1"])
    assert refresh.refresh_segments(CONFIG, table, local=True)["changed_files"] == 1
    adds(table, tmp_path / "05")  # it is nobody's now


def test_a_moved_link_keeps_the_file_that_was_committed(table: str, tmp_path: Path) -> None:
    adds(table, tmp_path / "current")
    os.link(tmp_path / "05" / "a.csv", tmp_path / "hard.csv")
    lead(tmp_path / "current", tmp_path / "06")
    for path in ("05", "06", "hard.csv"):
        with pytest.raises(SegmentOverlap, match="belong to segment 0 already"):
            adds(table, tmp_path / path)


def test_a_moved_link_to_a_file_of_the_same_size_and_time_is_a_change(
    table: str, tmp_path: Path
) -> None:
    for month in ("05", "06"):
        os.utime(tmp_path / month / "a.csv", (1e9, 1e9))
    adds(table, tmp_path / "current")
    lead(tmp_path / "current", tmp_path / "06")
    assert refresh.refresh_segments(CONFIG, table, local=True)["changed_files"] == 1
    adds(table, tmp_path / "05")


def test_hard_links_are_one_file_in_one_command_and_in_two(table: str, tmp_path: Path) -> None:
    hard = tmp_path / "05" / "hard.csv"
    os.link(tmp_path / "05" / "a.csv", hard)
    with pytest.raises(SegmentOverlap, match="are the same file"):
        adds(table, tmp_path / "05")
    adds(table, hard)
    adds(table, tmp_path / "06")
    compaction.compact(CONFIG, table, kind="custom", ids=["0", "1"])
    with pytest.raises(SegmentOverlap, match=r"belong to segment 0\.1 already"):
        adds(table, tmp_path / "05" / "a.csv")
    hard.unlink()
    write(hard, "7")  # another file of that name
    with pytest.raises(SegmentOverlap):  # the rows of the link are committed still
        adds(table, tmp_path / "05" / "a.csv")
    refresh.refresh_segments(CONFIG, table, local=True)
    adds(table, tmp_path / "05" / "a.csv")


def test_45_whatever_is_done_no_file_is_there_twice(table: str, tmp_path: Path) -> None:
    rng = random.Random(seed(45))
    done: Counter[str] = Counter()
    links = [tmp_path / f"link{i}" for i in range(3)]
    number = itertools.count(10)
    for link in links:
        link.symlink_to(tmp_path / "05")
    for step in range(examples(120, 400, 4000)):
        files = [path for month in ("05", "06") for path in (tmp_path / month).iterdir()]
        try:
            match what := rng.choice(["add", "add", "add", "lead", "hard", "write", "refresh",
                                      "delete", "switch", "compact"]):  # fmt: skip
                case "add":
                    month = rng.choice([tmp_path / "05", tmp_path / "06", *links])
                    adds(table, rng.choice([month, month / rng.choice(files).name]))
                case "lead":
                    lead(rng.choice(links), tmp_path / rng.choice(["05", "06"]))
                case "hard":
                    os.link(rng.choice(files), tmp_path / rng.choice(["05", "06"]) / f"h{step}.csv")
                case "write":
                    month = rng.choice(["05", "06"])
                    hidden = write(tmp_path / f"w{step}.csv", str(next(number)))
                    hidden.replace(tmp_path / month / rng.choice([f"n{step}.csv", files[0].name]))
                case "refresh":
                    refresh.refresh_segments(CONFIG, table, local=True, forget_missing=True)
                case _:
                    held = [s.id for s in manifest(table).segments if s.status in manage.HELD]
                    ids = rng.sample(held, min(len(held), 2))
                    if what == "delete":
                        manage.delete_segments(CONFIG, table, ids=ids[:1])
                    elif what == "switch":
                        manage.switch_segments(CONFIG, table, ids=ids, enabled=rng.random() < 0.7)
                    else:
                        compaction.compact(CONFIG, table, kind="custom", ids=ids)
            done[what] += 1
        except BridgeError as error:
            done[type(error).__name__] += 1
        assert doubled(table) == [], f"step {step}: {what}"
    assert done["add"] > 5 and done["refresh"] > 3 and done["SegmentOverlap"] > 5, done


def manifest(table: str) -> SegmentManifest:
    return SegmentLog(LocalStorage(), f"file://{table}").latest()


def doubled(table: str) -> list[str]:
    """Files that would be read twice: those whose state is as committed give rows."""
    log = SegmentLog(LocalStorage(), f"file://{table}")
    found: Counter[str] = Counter()
    for segment in log.latest().readable:
        files = log.read_files(segment.files).files
        for path, size, modified in zip(
            files.paths.to_pylist(), files.sizes, files.modified, strict=True
        ):
            local = Path(path.removeprefix("file://"))
            if local.exists():
                now = local.stat()
                if (now.st_size, now.st_mtime_ns // 1000) == (size, modified):
                    found[f"{now.st_dev}:{now.st_ino}"] += 1
    return [node for node, times in found.items() if times > 1]


def test_names_of_a_cluster_are_one_place(table: str) -> None:
    log = SegmentLog(LocalStorage(), f"file://{table}")

    def files(uri: str, modified: int = 1) -> FileTable:
        size = np.array([3], np.int64)
        return FileTable(pa.array([uri], pa.large_string()), size, size * 0 + modified, None)

    spelled = ["hdfs://nn/x/f", "hdfs://nn:8020/x/f", "hdfs:///x/f"]
    for one, other in itertools.permutations(spelled, 2):
        with pytest.raises(SegmentOverlap):
            refuse_overlap(log, log.latest(), {"0": files(one), "1": files(other)})
    apart = {"0": files("hdfs://nn:8020/x/f"), "1": files("hdfs://mm:8020/x/f", 2)}
    refuse_overlap(log, log.latest(), apart)
    with pytest.raises(SegmentOverlap):  # the usual port, whatever the state
        refuse_overlap(
            log, log.latest(), {"0": files(spelled[0]), "1": files(spelled[1], modified=2)}
        )


def test_own_files_of_any_table_are_no_facts(table: str, tmp_path: Path) -> None:
    """The CLEAN FILES of that table would delete them."""
    for place in ("_segments/views/v", ".skipbridge/shards"):
        own = write(tmp_path / "other" / place / "a.csv", "1")
        (tmp_path / "to").symlink_to(own)
        (tmp_path / "dir").symlink_to(own.parent)
        for path in (own, own.parent, tmp_path / "to", tmp_path / "dir", tmp_path / "dir/a.csv"):
            with pytest.raises(InvalidRequest, match="among skipbridge's own files"):
                adds(table, path)
        with pytest.raises(InvalidRequest, match="among skipbridge's own files"):
            tables.create_table(
                CONFIG, str(tmp_path / "dir" / "u"), format="csv", columns=[("a", "int")]
            )
        (tmp_path / "to").unlink()
        (tmp_path / "dir").unlink()
    adds(table, tmp_path / "current")
    lead(tmp_path / "current", tmp_path / "other" / "_segments" / "views" / "v")
    with pytest.raises(InvalidRequest, match="among skipbridge's own files"):
        refresh.refresh_segments(CONFIG, table, local=True)
    with pytest.raises(InvalidRequest, match="among skipbridge's own files"):
        adds(table, "s3://bucket/t/_segments/files/a.csv")
