"""One partition, one file or one clock that is odd does not stop the publication of the others."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bridge.app.cli.clustering.publish import News
from bridge.clustering.publication.publisher import Publisher
from bridge.clustering.publication.switches import Switches
from bridge.kernel.errors import MetastoreFailure, StorageFailure
from tests.behaviour.test_publishing_cases import by_day
from tests.behaviour.test_writers_at_each_step import listed_rows
from tests.support.clustered import clustered, read
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    SORTED,
    LakePlaces,
    Life,
    cleaned,
    every,
    fill_at,
    fill_one,
    five_files,
    groups_of,
    left,
    numbers,
    place,
    published,
    publisher,
    reverted,
    stock,
    unneeded,
)

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Refusing:
    """A storage or a metastore that fails one method for what has a text in its name."""

    thing: Any
    method: str
    text: str
    error: Exception

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.thing, name)
        if name != self.method:
            return method

        def call(*arguments: Any) -> Any:
            if any(self.text in str(each) for each in arguments):
                raise self.error
            return method(*arguments)

        return call


FAULTS = [
    ("copy", "/day=1/", StorageFailure("no access", "")),
    ("put", "/day=1/", StorageFailure("no access", "")),
    ("move", "day=1", MetastoreFailure("not authorized", "")),
]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("method", "text", "error"), FAULTS)
def test_a_partition_that_fails_is_named_and_the_others_are_switched(
    tmp_path: Path, method: str, text: str, error: Exception, back: bool
) -> None:
    lake = by_day(tmp_path)
    before = read(lake)[0]
    if back:
        if method == "copy":
            pytest.skip("a revert copies nothing")
        published(lake)
    storage: Any = Refusing(lake.storage, method, text, error)
    places: Any = Refusing(LakePlaces(lake), method, text, error)

    def run(storage: Any, places: Any) -> Any:
        made = Publisher(lake.table(), storage, places, settled=0.0)
        return made.revert() if back else made.publish(groups_of(lake))

    for expected in (["day=2"], []):
        if expected:
            report = run(storage, places)
            assert report.published == expected
            ((name, why),) = report.kept
            assert name == "day=1" and str(error) in why
        else:  # it is all that is left: an error, as of a store that fails
            with pytest.raises(type(error)):
                run(storage, places)
        lake.build()
        assert read(lake)[0] == before
    assert run(lake.storage, LakePlaces(lake)).published == ["day=1"]
    lake.build()
    assert read(lake)[0] == before and not left(lake)


@pytest.mark.parametrize("name", ["n" * 240, "é" * 120, "n" * 246, "x" * 235])
def test_a_file_with_the_longest_name_is_copied(tmp_path: Path, name: str) -> None:
    lake = Lake(tmp_path, columns=COLUMNS)
    for i in range(3):
        fill_one(lake, i)
    lake.build()
    clustered(lake, **SORTED)
    for number, each in enumerate((f"a{name}.parquet", f"b{name}.parquet"), 6):
        fill_at(place(lake) / "short", number)
        (place(lake) / "short").rename(place(lake) / each)
    before = stock(lake)
    assert published(lake).published == [""]
    assert stock(lake) == numbers(lake) == before and max(before.values()) == 1
    assert not list(place(lake).glob("*.parquet"))
    assert reverted(lake).published == [""]
    assert stock(lake) == numbers(lake) == before


def test_a_file_of_the_future_is_named_as_such(tmp_path: Path) -> None:
    """It never becomes older than --settled, and --settled 0 takes it."""
    lake = five_files(tmp_path)
    age(place(lake) / "f4.parquet", -1_000_000)
    ((_, why),) = publisher(lake, settled=0.000_001).publish(groups_of(lake)).kept
    assert "f4.parquet was written" in why and "in the future, by the clock of the store" in why
    assert published(lake).published == [""]


def test_a_switch_that_was_made_while_another_run_gave_it_up_counts(tmp_path: Path) -> None:
    """The other run took the marker away, and this one died before it left it again."""
    lake = five_files(tmp_path)
    before, home = stock(lake), place(lake)
    published(lake)
    switches = Switches(lake.storage, lake.location)
    (record,) = (home / ".skipbridge_clustered/switches").glob("*.made.json")
    record.rename(record.with_name(record.name.replace(".made.", ".undone.")))
    (home / ".skipbridge_left").unlink()
    assert published(lake).published == []
    ((each,),) = switches.load().values()
    assert each.state == "made" and switches.read_marker(each.old) == ("", each.number)
    assert stock(lake) == before and not left(lake)
    assert reverted(lake).published == [""]
    assert place(lake) == home and stock(lake) == before


def test_rows_survive_odd_things_in_the_directory(tmp_path: Path) -> None:
    """A pipe, and links that lead nowhere and in a circle."""
    lake = five_files(tmp_path)
    before, home = stock(lake), place(lake)
    (home / "loop.parquet").symlink_to(home / "loop.parquet")
    (home / "gone.parquet").symlink_to(home / "nowhere")
    os.mkfifo(home / "pipe.parquet")
    lake.build()
    clustered(lake, **SORTED)
    assert published(lake).published == [""]
    assert numbers(lake) == before
    found = [path for path in place(lake).iterdir() if path.is_file()]
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in found) == sum(before.values())


@pytest.mark.parametrize("publish", [True, False])
def test_a_partition_that_is_renamed_keeps_its_rows(tmp_path: Path, publish: bool) -> None:
    """Engines leave the directory of an external table where it is."""
    lake = by_day(tmp_path)
    if publish:
        published(lake)
    directory = lake.locations.get("day=1", place(lake) / "day=1")
    lake.partition_values[lake.partition_values.index(("1",))] = ("9",)
    lake.locations["day=9"] = directory
    lake.locations.pop("day=1", None)
    for _ in range(2):
        rows, _ = read(lake)
        assert Counter(row[0] for row in rows.elements()) == {"day=9": 3, "day=2": 3}
        assert not left(lake)  # who added it again would read its rows twice
        lake.build()
    if publish:
        fill_at(place(lake) / "day=1/late.parquet", 9)
        (late,) = left(lake)
        assert late.partition == "day=9" and late.is_file
        (place(lake) / "day=1/late.parquet").unlink()
    for i in range(5, 9):
        age(lake.write(f"f{i}.parquet", {"x": [i * 10], "s": ["a"]}, ("9",)), 50_000)
    lake.build()
    clustered(lake, **SORTED)
    assert "day=9" in published(lake).published
    rows, _ = read(lake)
    assert len(list(rows.elements())) == 10 and not left(lake)


@pytest.mark.parametrize("run", [published, reverted])
def test_an_overwrite_that_has_deleted_and_not_written_yet(tmp_path: Path, run: Any) -> None:
    """As Spark's INSERT OVERWRITE, which deletes when it begins: no directory without files is
    put in force, and what is written in the end is read or named."""
    for step in range(1, 20):
        lake = five_files(tmp_path / f"{step}")
        if run is reverted:
            published(lake)
        home = place(lake)

        def empty(home: Path = home) -> None:
            for path in home.glob("[!._]*"):
                path.unlink()

        life = Life(others={step: empty})
        run(lake, life)
        if life.mutations < step:
            break
        assert place(lake).is_dir(), step
        fill_at(home / "new.parquet", 9)
        run(lake)
        there = stock(lake)
        assert numbers(lake) == there and max(there.values()) == 1, step
        assert every(9) <= there + listed_rows(lake), step
    assert step > 5


def test_a_directory_that_is_deleted_meanwhile_is_not_put_in_force_again(tmp_path: Path) -> None:
    """Spark's static INSERT OVERWRITE deletes the usual directory of a partition, and writes to
    the one in force. Only in the instant of the switch itself nobody can look any more."""
    absent = 0
    for step in range(1, 20):
        lake = five_files(tmp_path / f"{step}")
        old = place(lake)
        published(lake)
        home = place(lake)

        def overwrite(old: Path = old, home: Path = home) -> None:
            for path in [*old.glob("[!._]*"), *home.glob("[!._]*")]:
                path.unlink()
            fill_at(home / "new.parquet", 9)

        life = Life(others={step: overwrite})
        reverted(lake, life, refresh=False)
        if life.mutations < step:
            break
        there = stock(lake)
        assert every(9) <= there + listed_rows(lake), step
        absent += not there and life.mutations > step
    assert step > 3 and absent <= 2


def test_a_copy_with_other_bytes_is_not_published(tmp_path: Path) -> None:
    """As of a store that says it has copied a file."""
    lake = five_files(tmp_path)

    class Lying:
        def __getattr__(self, name: str) -> Any:
            return getattr(lake.storage, name)

        def copy(self, source: Any, target: str) -> bool:
            assert lake.storage.copy(source, target)
            if "/f4." in target:
                path = Path(target.removeprefix("file://"))
                path.write_bytes(path.read_bytes()[:-9] + bytes(9))
            return True

    storage: Any = Lying()
    report = Publisher(lake.table(), storage, LakePlaces(lake), settled=0.0).publish(
        groups_of(lake)
    )
    ((_, why),) = report.kept
    assert not report.published and "f4.parquet-data is not what " in why
    assert numbers(lake) == stock(lake) == every(0, 1, 2, 3, 4)
    assert published(lake).published == [""]


def test_a_partition_that_waits_is_told_once(tmp_path: Path) -> None:
    """By a watch: its reason says another age in each round."""
    lake, news = five_files(tmp_path), News()
    fill_at(place(lake) / "a.parquet", 5)
    told = []
    for seconds in (70, 80, -7200, -7300):
        age(place(lake) / "a.parquet", seconds)
        made = published(lake, settled=100_000.0)
        ((_, reason),) = made.kept
        kept = [{"partition": "", "reason": reason}]
        told.append(news.are({"published": [], "left": [], "kept": kept}))
    assert told == [True, False, True, False]


@pytest.mark.parametrize("died", [1, 2, 3])
def test_originals_are_needed_by_a_revert_that_has_begun(tmp_path: Path, died: int) -> None:
    lake = five_files(tmp_path)
    home = place(lake)
    published(lake)
    cleaned(lake)
    assert len(unneeded(lake).files) == 5
    with contextlib.suppress(Killed):
        reverted(lake, Life(died, done=True))
    found = unneeded(lake)
    assert place(lake) != home and not found.files
    assert "a revert to" in found.needed[0][1]
    reverted(lake)
    assert place(lake) == home and stock(lake) == numbers(lake) == every(0, 1, 2, 3, 4)


def test_what_generations_name_is_counted(tmp_path: Path) -> None:
    lake = five_files(tmp_path)
    published(lake)
    assert (len(unneeded(lake).files), unneeded(lake).in_use) == (1, 4)
    cleaned(lake)
    assert (len(unneeded(lake).files), unneeded(lake).in_use) == (5, 0)
