"""Publishing and cleaning, case by case. `tests/laws/test_publishing.py` has the law."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.cleaning import Cleaner
from bridge.clustering.plan import parse_plan
from bridge.clustering.publications import Publications
from bridge.clustering.publishing import Publisher
from bridge.errors import FileCorrupt
from bridge.expression.builders import eq
from bridge.index.alter_index import drop_index
from bridge.index.store import now_micros
from bridge.table.model import Column, TableName
from bridge.types import STRING
from tests.support.clustered import clustered, read, timeline_of
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
    numbers,
    place,
    published,
    stock,
)

pytestmark = pytest.mark.full


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return five_files(tmp_path)


def test_the_new_directory_has_the_new_files_and_copies_of_the_others(lake: Lake) -> None:
    before = place(lake)
    report = published(lake)
    assert (report.published, report.copied, report.late, report.kept) == ([""], 2, 0, [])
    assert place(lake) != before and place(lake).is_relative_to(before)
    names = sorted(path.name for path in place(lake).glob("*.parquet"))
    assert len(names) == 2 and names[1] == "f4.parquet"
    assert stock(lake) == every(0, 1, 2, 3, 4)
    assert len(list(before.glob("*.parquet"))) == 5  # as it was


def test_the_index_knows_the_files_by_their_new_paths(lake: Lake) -> None:
    assert len(read(lake)[1]) == 2
    published(lake)
    rows, files = read(lake, eq("x", 49))
    assert [name.rpartition("/")[2] for name in files] == ["f4.parquet"] and len(rows) == 2
    assert lake.store().root.endswith("/t/.skipbridge")  # the index did not move
    assert not groups_of(lake)
    assert not lake.build().committed


def test_a_second_run_has_nothing_to_do(lake: Lake) -> None:
    published(lake)
    at = place(lake)
    report = published(lake)
    assert (report.published, report.late, place(lake)) == ([], 0, at)


def test_plans_that_were_published_stay_completed(lake: Lake) -> None:
    published(lake)
    (state,) = timeline_of(lake).states(lake.store().latest())
    assert state.state == "completed"


def test_published_files_are_clustered_and_published_again(lake: Lake) -> None:
    published(lake)
    first = place(lake)
    report = clustered(lake, **SORTED)
    assert (report.state, report.old_files) == ("completed", 2)
    assert published(lake).published == [""]
    home = lake.root / "t/.skipbridge_clustered"
    assert place(lake).parent.parent == home == first.parent.parent  # no deeper than before
    assert stock(lake) == every(0, 1, 2, 3, 4)


def test_a_late_file_is_brought_over_once(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    late = old / "late.parquet"
    pq.write_table(pq.read_table(old / "f4.parquet"), late)
    age(late)
    assert stock(lake) == every(0, 1, 2, 3, 4)
    assert published(lake).late == 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 4)
    for path in place(lake).glob("late-*"):
        path.unlink()  # a writer deletes it: it does not come back
    assert published(lake).late == 0
    assert stock(lake) == every(0, 1, 2, 3, 4)


def test_a_late_file_of_a_directory_before_the_last_is_brought_over(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    clustered(lake, **SORTED)
    published(lake)
    late = old / "late.parquet"
    pq.write_table(pq.read_table(old / "f4.parquet"), late)
    assert published(lake).late == 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 4)


def test_clean_keeps_the_way_to_a_directory_with_a_late_file(lake: Lake) -> None:
    """The directory in between is emptied, and the one before it is still looked into."""
    old = place(lake)
    published(lake)
    clustered(lake, **SORTED)
    published(lake)
    fill_at(old / "late.parquet", 9)
    cleaned(lake)
    assert [path.name for path in old.glob("*.parquet")] == ["late.parquet"]
    assert published(lake).late == 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 9)
    cleaned(lake)
    assert not list(old.glob("*.parquet"))
    assert not list((lake.root / "t/.skipbridge_clustered/publications").glob("*"))


def test_what_is_overwritten_later_is_named_and_stays(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_one_at(old / "f1.parquet")
    report = published(lake)
    assert report.overwritten == [f"file://{old}/f1.parquet"] and report.late == 0
    cleaned(lake)
    assert [path.name for path in old.glob("*.parquet")] == ["f1.parquet"]
    assert stock(lake) == every(0, 1, 2, 3, 4)


@pytest.mark.parametrize("cleans", [0, 2])
@pytest.mark.parametrize("name", ["f9.parquet", "f0.parquet"])
def test_what_replaces_files_of_an_old_directory_doubles_no_row(
    lake: Lake, name: str, cleans: int
) -> None:
    """INSERT OVERWRITE or a compaction, by a writer that looked the location up before."""
    old = place(lake)
    published(lake)
    tables = [pq.ParquetFile(path).read() for path in sorted(old.glob("*.parquet"))[:3]]
    for path in sorted(old.glob("*.parquet"))[:3]:
        path.unlink()
    pq.write_table(pa.concat_tables(tables), old / name)
    fill_at(old / "late.parquet", 8)
    for _ in range(cleans):
        cleaned(lake)
    report = published(lake)
    named = {path.rpartition("/")[2] for path in report.withheld + report.overwritten}
    assert named == {name, "late.parquet"} and report.late == 0
    assert stock(lake) == every(0, 1, 2, 3, 4) == numbers(lake)
    assert {name, "late.parquet"} <= {path.name for path in old.glob("*.parquet")}


def test_a_late_file_that_is_compacted_later_doubles_no_row(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    assert published(lake).late == 1
    (old / "late.parquet").rename(old / "compacted.parquet")
    report = published(lake)
    assert report.withheld == [f"file://{old}/compacted.parquet"] and report.late == 0
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


def test_late_files_of_a_directory_that_is_being_cleaned_are_brought_over(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    last = 0
    while len(list(old.glob("*.parquet"))) == 5:
        last += 1
        with pytest.raises(Killed):
            cleaned(lake, Life(last))
    assert len(list(old.glob("*.parquet"))) == 4
    fill_at(old / "late.parquet", 8)
    report = published(lake)
    assert (report.late, report.withheld) == (1, [])
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


def fill_one_at(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(table.slice(1), path)
    age(path, 77)


class Meanwhile(LakePlaces):
    """Places between whose reading and writing something happens."""

    def __init__(self, lake: Lake, before: Any = None, after: Any = None) -> None:
        super().__init__(lake)
        self._hooks = [before, after]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def move(self, partition: str, old: str, new: str) -> bool:
        before, after = self._hooks
        self._hooks = [None, None]
        if before is not None:
            before()
        moved = super().move(partition, old, new)
        if after is not None:
            after()
        return moved


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.rule("44")
def test_an_overwrite_during_the_switch_wins(lake: Lake, when: str) -> None:
    """INSERT OVERWRITE by a writer that looked the location up before."""
    old = place(lake)

    def overwrite() -> None:
        for path in old.glob("*.parquet"):
            path.unlink()
        fill_at(old / "f9.parquet", 9)

    places = Meanwhile(lake, **{when: overwrite})
    report = Publisher(lake.table(), lake.storage, places).run(groups_of(lake))
    assert (report.published, len(report.kept)) == ([], 1)
    assert place(lake) == old and stock(lake) == every(9)
    assert read(lake)[0].total() == 2
    assert cleaned(lake).attempts == 2  # what was prepared goes
    assert published(lake).published == [] and stock(lake) == every(9)


def test_a_file_that_appears_during_the_switch_is_brought_over_at_once(lake: Lake) -> None:
    old = place(lake)
    places = Meanwhile(lake, before=lambda: fill_at(old / "f9.parquet", 9))
    report = Publisher(lake.table(), lake.storage, places).run(groups_of(lake))
    assert (report.published, report.late) == ([""], 1)
    assert stock(lake) == every(0, 1, 2, 3, 4, 9)


def test_of_two_publishers_one_gives_up(lake: Lake) -> None:
    groups = groups_of(lake)
    other = Publisher(lake.table(), lake.storage, LakePlaces(lake))
    places = Meanwhile(lake, before=lambda: other.run(groups))
    report = Publisher(lake.table(), lake.storage, places).run(groups)
    assert other.report.published == [""] and report.published == []
    assert "location changed" in report.kept[0][1]
    assert stock(lake) == every(0, 1, 2, 3, 4)
    at = place(lake)
    cleaned(lake)
    assert place(lake) == at and stock(lake) == every(0, 1, 2, 3, 4)


def test_a_publisher_that_is_overtaken_leaves_the_way_to_old_directories(lake: Lake) -> None:
    """Another run publishes the new directory before this one has looked back."""
    old = place(lake)

    def overtake() -> None:
        lake.build()
        clustered(lake, **SORTED)
        assert published(lake).published == [""]

    places = Meanwhile(lake, after=overtake)
    report = Publisher(lake.table(), lake.storage, places).run(groups_of(lake))
    assert report.published == [] and "somebody else" in report.kept[0][1]
    fill_at(old / "late.parquet", 9)
    assert published(lake).late == 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 9)


def test_a_partition_that_is_dropped_and_registered_anew_keeps_its_files(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [("1",), ("2",)]
    for values in lake.partition_values:
        for i in range(3):
            lake.write(f"f{i}.parquet", {"x": [i], "s": ["a"]}, values)
    lake.build()
    clustered(lake, **SORTED)
    assert sorted(published(lake).published) == ["day=1", "day=2"]
    new = lake.locations.pop("day=2")  # registered anew at its own directory
    fill_at(new / "more.parquet", 7)  # of a writer that knew the published one
    lake.partition_values = [("1",)]
    cleaned(lake)  # dropped: its files may be wanted
    lake.partition_values = [("1",), ("2",)]
    cleaned(lake)
    assert len(list((lake.root / "t/day=2").glob("*.parquet"))) == 3
    assert not list((lake.root / "t/day=1").glob("*.parquet"))
    assert len(list(new.glob("*.parquet"))) == 2
    assert sum(read(lake)[0].values()) == 6


def test_only_partitions_with_clustered_files_are_published(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [("1",), ("2",)]
    for i in range(3):
        lake.write(f"f{i}.parquet", {"x": [i], "s": ["a"]}, ("1",))
    lake.write("alone.parquet", {"x": [9], "s": ["a"]}, ("2",))
    lake.build()
    clustered(lake, **SORTED)
    assert published(lake).published == ["day=1"]
    assert "day=2" not in lake.locations


def test_data_in_subdirectories_is_not_left_behind(lake: Lake) -> None:
    (lake.root / "t/HIVE_UNION_SUBDIR_1").mkdir()
    fill_at(lake.root / "t/HIVE_UNION_SUBDIR_1/f.parquet", 8)
    report = published(lake)
    assert report.published == [] and "subdirectory" in report.kept[0][1]


def test_partitions_that_share_a_directory_are_left(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [("1",), ("2",)]
    for i in range(3):
        lake.write(f"f{i}.parquet", {"x": [i], "s": ["a"]}, ("1",))
    lake.build()
    clustered(lake, **SORTED)
    lake.locations["day=2"] = lake.root / "t/day=1"
    report = published(lake)
    assert report.published == [] and "lies there, too" in report.kept[0][1]


def test_clean_keeps_what_is_younger_than_the_retention(lake: Lake) -> None:
    published(lake)
    report = cleaned(lake, older_than=3600)
    assert (report.replaced, report.rewritten, report.generations) == (0, 0, 0)
    told = cleaned(lake, dry_run=True)
    assert (told.replaced, told.rewritten) == (5, 1)
    assert len(list((lake.root / "t").glob("*.parquet"))) == 5
    done = cleaned(lake)
    assert (done.replaced, done.rewritten, done.bytes) == (5, 1, told.bytes)
    assert not list((lake.root / "t").glob("*.parquet"))
    assert stock(lake) == every(0, 1, 2, 3, 4)
    assert sum(read(lake)[0].values()) == 10


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.rule("38")
def test_clean_deletes_nothing_that_another_table_reads(tmp_path: Path, partitioned: bool) -> None:
    """Two tables share a location: one is published, and each of them is cleaned."""
    keys = (Column("day", STRING),) if partitioned else ()
    values = ("1",) if partitioned else ()
    lake, twin = (Lake(tmp_path, columns=COLUMNS, keys=keys) for _ in range(2))
    lake.partition_values = twin.partition_values = [values]
    for i in range(3):
        lake.write(f"f{i}.parquet", {"x": [i], "s": ["a"]}, values)
    lake.build()
    clustered(lake, **SORTED)
    published(lake)
    directories = [each.directory(values) for each in (lake, twin)]
    before = [sorted(d.glob("*.parquet")) for d in directories]
    for this, other, name in ((twin, lake, "other"), (lake, twin, "t")):
        places = LakePlaces(this, {"db.another": other.location})
        table = this.table(TableName("db", name))
        report = Cleaner(table, lake.store(), places, now_micros() + 5_000_000).run()
        assert report.shared == ["db.another"] and not report.replaced and not report.attempts
        assert [sorted(d.glob("*.parquet")) for d in directories] == before
    report = cleaned(lake)  # the other table was dropped
    assert report.shared == [] and report.replaced == 3
    assert sum(read(lake)[0].values()) == 3


def test_clean_deletes_nothing_that_a_partition_of_another_table_reads(lake: Lake) -> None:
    home = place(lake)
    published(lake)
    places = LakePlaces(lake, {"db.far": "file:///far"}, {"db.far": (f"file://{home}",)})
    report = Cleaner(lake.table(), lake.store(), places, now_micros() + 5_000_000).run()
    assert report.shared == ["db.far"] and not report.replaced
    assert len(list(home.glob("*.parquet"))) == 5
    far = LakePlaces(lake, {"db.far": "file:///far"}, {"db.far": ("file:///far/day=1",)})
    report = Cleaner(lake.table(), lake.store(), far, now_micros() + 5_000_000).run()
    assert report.shared == [] and report.replaced == 5
    assert stock(lake) == every(0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Watched(LakePlaces):
    """Calls a function before, or after, each switch."""

    before: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None

    def move(self, partition: str, old: str, new: str) -> bool:
        self.before()
        moved = super().move(partition, old, new)
        self.after()
        return moved


def test_clean_without_a_retention_while_a_location_is_switched_loses_no_row(lake: Lake) -> None:
    """Files that clean deletes are no reason to switch back to where they were."""
    home = place(lake)
    places = Watched(lake, after=lambda: cleaned(lake))
    report = Publisher(lake.table(), lake.storage, places).run(groups_of(lake))
    assert report.published == [""] and report.overwritten == []
    assert not (home / "f4.parquet").exists()
    assert stock(lake) == every(0, 1, 2, 3, 4)
    cleaned(lake)
    assert stock(lake) == every(0, 1, 2, 3, 4)


@pytest.mark.parametrize("when", ["before", "after"])
def test_clean_while_a_location_is_switched_back_loses_no_row(lake: Lake, when: str) -> None:
    """A writer has overwritten a file; clean runs just before, or just after, the switch back."""
    moves = []

    def meet() -> None:
        moves.append(1)
        if len(moves) == 1:
            fill_at(old / "f3.parquet", 7)
        elif len(moves) == 2:
            cleaned(lake)

    old = place(lake)
    places = Watched(lake, before=meet) if when == "before" else Watched(lake, after=meet)
    report = Publisher(lake.table(), lake.storage, places).run(groups_of(lake))
    lake.build()
    cleaned(lake)
    now = every(0, 1, 2, 4)
    if report.published:  # the rows of the new directory, as they were
        now += every(3)
    else:
        now += every(7)
    assert stock(lake) == now == numbers(lake)
    assert bool(report.published) == (when == "before")


@pytest.mark.rule("38")
def test_clean_leaves_alone_what_a_broken_table_may_read(lake: Lake) -> None:
    """Nobody can tell where it lies. All that only clustering knows is cleaned nevertheless."""
    home = place(lake)
    published(lake)
    places = LakePlaces(lake, {"db.Broken": "file:///far"}, unreadable=frozenset({"db.Broken"}))
    soon = now_micros() + 5_000_000
    for _ in range(2):
        report = Cleaner(lake.table(), lake.store(), places, soon).run()
        assert (report.unreadable, report.withheld, report.replaced) == (["db.Broken"], 5, 0)
        assert len(list(home.glob("*.parquet"))) == 5
    assert not list((home / ".skipbridge_clustered").glob("2*/*.parquet"))
    names = ("db.broken", "db.other")
    report = Cleaner(lake.table(), lake.store(), places, soon, elsewhere=names).run()
    assert (report.unreadable, report.withheld, report.replaced) == ([], 0, 5)
    assert stock(lake) == every(0, 1, 2, 3, 4)


def test_clean_deletes_drafts_of_runs_that_died(lake: Lake) -> None:
    """A run is killed between the draft of a late file and its copy."""
    old = place(lake)
    published(lake)
    drafts = [
        place(lake) / f".{'0a' * 16}{end}" for end in (".tmp", "-late-0123456789ab-x.parquet")
    ]
    others = [place(lake) / name for name in (".hidden", f".{'0a' * 16}-x", "_SUCCESS")]
    young = place(lake) / f".{'0b' * 16}.tmp"
    for path in (*drafts, *others, young):
        path.write_bytes(b"x")
        age(path, 1000 if path == young else 7000)
    told = cleaned(lake, dry_run=True)
    assert told.attempts == 2 and all(path.exists() for path in drafts)
    assert cleaned(lake).attempts == 2
    assert not any(path.exists() for path in drafts)
    assert all(path.exists() for path in (*others, young))
    assert stock(lake) == every(0, 1, 2, 3, 4) and not list(old.glob("*.parquet"))
    age(young, 6000)  # the record, by which the directory is known, has waited for it
    assert cleaned(lake).attempts == 1 and not young.exists()
    assert not list((lake.root / "t/.skipbridge_clustered/publications").glob("*"))


def test_clean_deletes_nothing_that_a_link_leads_to(lake: Lake, tmp_path: Path) -> None:
    """The table lies behind a link, and another one where the link leads to."""
    (lake.root / "t").rename(tmp_path / "real")
    (lake.root / "t").symlink_to(tmp_path / "real")
    published(lake)
    places = LakePlaces(lake, {"db.another": f"file://{tmp_path}/real"})
    report = Cleaner(lake.table(), lake.store(), places, now_micros() + 5_000_000).run()
    assert report.shared == ["db.another"] and not report.replaced
    assert len(list((tmp_path / "real").glob("*.parquet"))) == 5
    assert cleaned(lake).replaced == 5  # the other one was dropped


def test_a_partition_behind_a_link_is_not_published_or_cleaned(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [("1",), ("2",), ("3",)]
    for i in range(3):
        for values in (("1",), ("2",)):
            lake.write(f"f{i}.parquet", {"x": [i], "s": ["a"]}, values)
    (lake.root / "t/day=2").rename(tmp_path / "elsewhere")
    (lake.root / "t/day=2").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(lake.root / "t/day=1")
    lake.build()
    clustered(lake, **SORTED)
    lake.locations["day=3"] = tmp_path / "link"  # is that of day=1
    reasons = dict(published(lake).kept)
    assert "lies there, too" in reasons["day=1"] and "outside" in reasons["day=2"]
    lake.partition_values = [("1",), ("2",)]
    assert published(lake).published == ["day=1"]
    lake.partition_values = [("1",), ("2",), ("3",)]
    assert cleaned(lake).replaced == 0
    assert len(list((tmp_path / "link").glob("*.parquet"))) == 3


def test_clean_before_publishing_deletes_no_row(lake: Lake) -> None:
    report = cleaned(lake)
    assert (report.replaced, report.rewritten) == (0, 0)
    assert len(read(lake)[1]) == 2


def test_files_of_plans_that_wait_are_kept_and_those_of_cancelled_ones_go(lake: Lake) -> None:
    instant = "20200101000000000"
    stray = lake.root / f"t/.skipbridge_clustered/{instant}/c.parquet"
    stray.parent.mkdir()
    fill_at(stray, 1)
    assert cleaned(lake).unknown == [instant]
    timeline = timeline_of(lake)
    (state,) = timeline.states(lake.store().latest())
    raw = json.loads(
        (lake.root / f"t/.skipbridge/clustering/{state.instant}.requested.json").read_text()
    )
    plan = parse_plan(json.dumps(raw).encode(), "plan")
    timeline.request(replace(plan, instant=instant))
    assert cleaned(lake).rewritten == 0 and stray.exists()
    timeline.end(instant, "cancelled")
    assert cleaned(lake).rewritten == 1 and not stray.exists()


def test_losing_the_index_loses_nothing_of_a_published_table(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    drop_index(lake.store())
    fill_at(old / "late.parquet", 9)
    assert stock(lake) == every(0, 1, 2, 3, 4)
    assert published(lake).late == 1
    lake.build()
    assert stock(lake) == every(0, 1, 2, 3, 4, 9)
    cleaned(lake)
    assert stock(lake) == every(0, 1, 2, 3, 4, 9)


def test_a_damaged_record_stops_everything(lake: Lake) -> None:
    published(lake)
    (record,) = (lake.root / "t/.skipbridge_clustered/publications").glob("*.ended.json")
    body = json.loads(record.read_text())
    body["covered"][0]["path"] = f"file://{lake.root}/elsewhere.parquet"
    record.write_text(json.dumps(body))
    with pytest.raises(FileCorrupt, match="outside of its directories"):
        published(lake)
    with pytest.raises(FileCorrupt, match="nothing is published or deleted"):
        cleaned(lake)


@pytest.mark.parametrize("done", [False, True])
def test_a_run_may_die_at_every_mutation(tmp_path: Path, done: bool) -> None:
    """Publishing after each death continues; cleaning after each death, too."""
    expected = every(0, 1, 2, 3, 4)
    last, ended = 0, False
    while not ended:
        last += 1
        lake = Lake(tmp_path / f"{last}", columns=COLUMNS)
        for i in range(4):
            fill_one(lake, i)
        lake.build()
        clustered(lake, **SORTED)
        fill_one(lake, 4)
        ended = True
        for run in (published, cleaned):
            try:
                run(lake, Life(last, done=done))
            except Killed:
                ended = False
            assert stock(lake) == expected == numbers(lake)
        published(lake)
        assert stock(lake) == expected == numbers(lake)
        assert place(lake) != lake.root / "t"
        cleaned(lake)
        cleaned(lake)  # records of failed attempts go with their files
        assert stock(lake) == expected == numbers(lake)
        directories = {p.parent for p in (lake.root / "t").rglob("*.parquet")}
        assert {d for d in directories if ".skipbridge/" not in f"{d}/"} == {place(lake)}
    assert last > 12


def test_records_of_other_partitions_are_not_read(lake: Lake) -> None:
    published(lake)
    publications = Publications(lake.storage, lake.location)
    assert set(publications.load()) == {""} and publications.load(["day=1"]) == {}
