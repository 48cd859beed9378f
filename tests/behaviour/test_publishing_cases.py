"""Publishing, case by case. `tests/laws/test_publishing.py` has the law."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bridge.clustering.cleaning import Cleaner
from bridge.clustering.plan import parse_plan
from bridge.clustering.publication.left import AGAIN, BEYOND, DROPPED, GONE
from bridge.clustering.publication.switches import Switches
from bridge.index.building.alter_index import drop_index
from bridge.index.generations.store import now_micros
from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.kernel.types import STRING
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.foreign import LEFT
from bridge.table.model import Column
from tests.support.clustered import clustered, read, timeline_of
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    SORTED,
    LakePlaces,
    Life,
    by_path,
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
ALL = every(0, 1, 2, 3, 4)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return five_files(tmp_path)


def by_day(root: Path) -> Lake:
    """Three clustered files in each of two partitions."""
    lake = Lake(root, columns=COLUMNS, keys=(Column("day", STRING),))
    lake.partition_values = [("1",), ("2",)]
    for i in range(3):
        for day in ("1", "2"):
            age(lake.write(f"f{i}.parquet", {"x": [i * 10 + int(day)], "s": ["a"]}, (day,)), 50_000)
    lake.build()
    clustered(lake, **SORTED)
    return lake


def again(lake: Lake, *files: int) -> None:
    """Writers add files to the directory in force, and all is clustered."""
    for number in files:
        fill_at(place(lake) / f"n{number}.parquet", number)
    lake.build()
    clustered(lake, **SORTED)


def named(lake: Lake) -> list[tuple[str, str]]:
    return [(Path(each.state.path).name, each.why) for each in left(lake)]


# one publication


def test_the_new_directory_has_the_new_files_and_copies_of_the_others(lake: Lake) -> None:
    before = place(lake)
    was = {p: p.read_bytes() for p in before.glob("*.parquet")}
    report = published(lake)
    assert (report.published, report.files, report.kept) == ([""], 2, [])
    assert place(lake) != before and place(lake).is_relative_to(before)
    names = sorted(path.name for path in place(lake).iterdir())
    assert len(names) == 2 and names[1] == "f4.parquet-data" and names[0].endswith(".parquet-data")
    assert (place(lake) / names[1]).read_bytes() == was[before / "f4.parquet"]
    assert stock(lake) == numbers(lake) == ALL
    assert {p: p.read_bytes() for p in before.glob("*.parquet")} == was
    assert (before / LEFT).exists() and not left(lake)
    assert read(lake)[1] == set(names)
    assert published(lake).published == [] and groups_of(lake) == []
    (plan,) = timeline_of(lake).states(lake.store().latest())
    assert plan.state == "completed"


@pytest.mark.parametrize("pattern", ["**/*.parquet", "*/*.parquet"])
def test_a_reader_by_path_finds_each_row_once(tmp_path: Path, pattern: str) -> None:
    """From the first `cluster run` on: DuckDB descends into hidden directories."""
    lake = by_day(tmp_path)
    steps: list[Callable[[], object]] = [
        lambda: None,
        lambda: published(lake),
        lambda: cleaned(lake),
        lambda: reverted(lake),
        lambda: published(lake),
    ]
    for step in steps:
        step()
        assert sorted(x for (x,) in by_path(lake, pattern)) == [1, 2, 11, 12, 21, 22]


def test_only_partitions_with_clustered_files_are_published(tmp_path: Path) -> None:
    lake = by_day(tmp_path)
    lake.partition_values.append(("3",))
    lake.write("alone.parquet", {"x": [9], "s": ["a"]}, ("3",))
    lake.build()
    assert sorted(published(lake).published) == ["day=1", "day=2"]
    assert "day=3" not in lake.locations


def test_plan_files_with_other_rows_are_not_published(lake: Lake) -> None:
    (group,) = groups_of(lake)
    path = Path(group.new[0].path.removeprefix("file://"))
    table = pq.ParquetFile(path).read()
    pq.write_table(table.set_column(1, "s", [["z"] * len(table)]), path)
    stat = lake.storage.stat(group.new[0].path)
    assert stat is not None
    changed = replace(group, new=(type(group.new[0]).of(stat),))
    report = publisher(lake).publish([changed])
    assert not report.published and "do not hold the rows" in report.kept[0][1]
    assert published(lake).kept  # and those of the index have another state
    assert stock(lake) == ALL


# quiet


def test_a_young_file_waits(tmp_path: Path) -> None:
    lake = by_day(tmp_path)
    fill_at(lake.path("day=1/young.parquet"), 9)
    report = published(lake, settled=3600.0)
    assert report.published == ["day=2"] and "young.parquet was written 5" in report.kept[0][1]
    assert published(lake).published == ["day=1"]


@pytest.mark.parametrize("name", ["_temporary", ".hive-staging_hive_2026", ".spark-staging-1"])
@pytest.mark.parametrize("below", ["", "day=1"])
def test_a_staging_directory_means_that_a_writer_is_at_work(
    tmp_path: Path, name: str, below: str
) -> None:
    lake = by_day(tmp_path)
    staging = lake.path(below) / name / "0"
    staging.mkdir(parents=True)
    report = published(lake, settled=3600.0)
    assert name in dict(report.kept)["day=1"] and ("day=2" in report.published) == bool(below)
    for path in (staging, staging.parent):
        os.utime(path, (1e9, 1e9))
    report = published(lake, settled=3600.0)
    assert "day=1" in report.published and report.dead == [f"file://{staging.parent}"]


@pytest.mark.parametrize("kind", ["append", "overwrite", "delete"])
def test_a_directory_that_changes_while_it_is_copied_stays(lake: Lake, kind: str) -> None:
    home = place(lake)

    def write() -> None:
        if kind == "delete":
            (home / "f4.parquet").unlink()
        else:
            fill_at(home / ("f9.parquet" if kind == "append" else "f4.parquet"), 9)

    report = published(lake, Life(others={3: write}))
    assert not report.published and report.kept and place(lake) == home
    assert stock(lake) == ALL + {"append": every(9), "overwrite": every(9)}.get(kind, every()) - (
        every() if kind == "append" else every(4)
    )


def test_data_in_subdirectories_is_not_left_behind(lake: Lake) -> None:
    (lake.root / "t/HIVE_UNION_SUBDIR_1").mkdir()
    fill_at(lake.root / "t/HIVE_UNION_SUBDIR_1/f.parquet", 8)
    report = published(lake)
    assert report.published == [] and "subdirectory" in report.kept[0][1]


def test_places_that_are_not_ours_alone_are_refused_by_name(tmp_path: Path) -> None:
    lake = by_day(tmp_path / "a")
    lake.partition_values.append(("3",))
    (tmp_path / "link").symlink_to(lake.root / "t/day=1")
    lake.locations["day=3"] = tmp_path / "link"  # is that of day=1
    (lake.root / "t/day=2").rename(tmp_path / "elsewhere")
    (lake.root / "t/day=2").symlink_to(tmp_path / "elsewhere")
    reasons = dict(published(lake).kept)
    assert "day=3 lies there, too" in reasons["day=1"] and "outside" in reasons["day=2"]
    other = by_day(tmp_path / "b")
    inside = (f"{other.location}/day=1",)
    places = LakePlaces(other, {"db.far": "file:///far"}, {"db.far": inside})
    run = publisher(other)
    run._places = places
    report = run.publish(groups_of(other))
    assert report.published == ["day=2"]
    assert dict(report.kept)["day=1"] == f"table db.far reads {inside[0]}, too"


# what comes late


def test_an_append_that_commits_after_the_switch_is_listed_until_it_is_accepted(
    lake: Lake,
) -> None:
    home = place(lake)
    published(lake, Life(others={9: lambda: fill_at(home / "late.parquet", 9)}))
    assert stock(lake) == ALL and named(lake) == [("late.parquet", BEYOND)]
    switches = Switches(lake.storage, lake.location)
    switches.accept(each.state for each in left(lake))
    assert named(lake) == []
    fill_at(home / "late.parquet", 8)
    assert named(lake) == [("late.parquet", BEYOND)]
    assert reverted(lake).published == [""] and stock(lake) == ALL + every(8)


def test_a_reader_by_path_finds_an_accepted_file_until_it_is_deleted(lake: Lake) -> None:
    home = place(lake)
    published(lake)
    fill_at(home / "late.parquet", 9)
    fill_at(place(lake) / "part-0.parquet", 9)  # its rows are brought over
    Switches(lake.storage, lake.location).accept(each.state for each in left(lake))
    for count in (2, 1):
        found = Counter(x for (x,) in by_path(lake, "**/*.parquet"))
        assert (found[90], found[99]) == (count, count)
        (home / "late.parquet").unlink(missing_ok=True)
    assert not left(lake) and stock(lake) == ALL + every(9)


def test_an_append_around_a_revert_is_listed(lake: Lake) -> None:
    published(lake)
    there = place(lake)
    reverted(lake, Life(others={4: lambda: fill_at(there / "late.parquet", 9)}))
    assert place(lake) == lake.root / "t" and stock(lake) == ALL
    assert named(lake) == [("late.parquet", BEYOND)]
    assert not (place(lake) / LEFT).exists() and (there / LEFT).exists()


def test_an_overwrite_by_path_after_publication_is_listed(lake: Lake) -> None:
    home = place(lake)
    published(lake)
    for path in home.iterdir():  # Spark deletes hidden files, too
        if path.is_file():
            path.unlink()
    fill_at(home / "fresh.parquet", 9)
    assert stock(lake) == ALL and named(lake) == [("fresh.parquet", GONE)]
    published(lake)
    assert named(lake) == [("fresh.parquet", GONE)]
    assert not reverted(lake).published and stock(lake) == ALL


# reverts


def test_two_publications_are_reverted_one_after_the_other(lake: Lake) -> None:
    added = [fill_one(lake, number) for number in (5, 6, 7)]  # or the table rests
    whole, places = every(*range(5 + len(added))), [place(lake)]
    published(lake)
    places.append(place(lake))
    again(lake)
    if published(lake).published:
        places.append(place(lake))
    assert len(places) == 3
    for there in reversed(places[:-1]):
        assert reverted(lake).published == [""] and place(lake) == there
        assert stock(lake) == numbers(lake) == whole and not left(lake)
        assert not (there / LEFT).exists()
    assert reverted(lake).published == []


def test_a_revert_loses_no_row_that_was_written_since(lake: Lake) -> None:
    published(lake)
    first = place(lake)
    again(lake, 7)
    published(lake)
    assert place(lake) != first and stock(lake) == ALL + every(7)
    assert reverted(lake).published == [""] and stock(lake) == ALL + every(7)
    report = reverted(lake)
    assert not report.published and "has changed since it was published" in report.kept[0][1]
    assert place(lake) == first and stock(lake) == ALL + every(7)


def test_a_revert_needs_all_that_was_left(lake: Lake) -> None:
    published(lake)
    (lake.root / "t/f1.parquet").unlink()
    report = reverted(lake)
    assert not report.published
    assert report.kept == [("", f"file://{lake.root}/t/f1.parquet is not as it was left")]
    assert stock(lake) == ALL and not left(lake)


# what others do with the record


def test_a_partition_that_is_dropped_and_added_again_is_listed(tmp_path: Path) -> None:
    lake = by_day(tmp_path)
    published(lake)
    new = lake.locations.pop("day=1")  # DROP, and ADD with the directory of before
    fill_at(new / "since.parquet", 9)
    (entry,) = left(lake)  # where its rows are, not each of them: an INSERT would double them
    assert entry.why == AGAIN and entry.tip == f"file://{new}"
    report = published(lake)
    assert not report.published and "in force again" in dict(report.kept)["day=1"]
    assert named(lake)
    lake.locations["day=1"] = new
    assert not left(lake)
    lake.partition_values.remove(("1",))
    assert named(lake) == [(LEFT, DROPPED)]
    Switches(lake.storage, lake.location).accept(each.state for each in left(lake))
    assert not left(lake)


def test_a_table_that_is_renamed_with_its_directory_keeps_its_records(tmp_path: Path) -> None:
    lake = five_files(tmp_path / "a")
    published(lake)
    there = tmp_path / "b"
    lake.root.rename(there)
    lake.locations[""] = there / place(lake).relative_to(lake.root)
    lake.root = there
    assert stock(lake) == ALL and not left(lake)
    fill_at(there / "t/late.parquet", 9)
    assert named(lake) == [("late.parquet", BEYOND)]
    drop_index(lake.store())
    assert reverted(lake).published == [""] and place(lake) == there / "t"
    assert stock(lake) == ALL + every(9)


# what dies, and who else is there


@pytest.mark.parametrize("done", [False, True])
def test_a_run_may_die_at_every_mutation(tmp_path: Path, done: bool) -> None:
    """The same command continues: publishing after each death, and reverting."""
    last, ended = 0, False
    while not ended:
        last += 1
        lake = five_files(tmp_path / f"{last}")
        ended = True
        for run, there in ((published, False), (reverted, True), (cleaned, True)):
            with contextlib.suppress(Killed):
                run(lake, Life(last, done=done))  # type: ignore[operator]
                continue
            ended = False
            assert stock(lake) == numbers(lake) == ALL and not left(lake)
            run(lake)  # type: ignore[operator]
            assert stock(lake) == numbers(lake) == ALL and not left(lake)
            assert (place(lake) == lake.root / "t") == there
        marks = {path.parent for path in (lake.root / "t").rglob(LEFT)}
        assert len(marks) == 1 and place(lake) not in marks
    assert last > 12


class Dying(LakePlaces):
    """A metastore that is never reached."""

    def move(self, partition: str, old: str, new: str) -> bool:
        raise Killed


def dies_before_the_switch(lake: Lake, *, back: bool = False) -> None:
    """A run leaves the marker, and dies."""
    run = publisher(lake)
    run._places = Dying(lake)
    with pytest.raises(Killed):
        run.revert() if back else run.publish(groups_of(lake))
    assert (place(lake) / LEFT).exists()


def test_only_the_same_command_continues(lake: Lake) -> None:
    home = place(lake)
    dies_before_the_switch(lake)
    assert place(lake) == home and not left(lake)
    report = reverted(lake)
    assert not report.published and "run skipbridge cluster publish" in report.kept[0][1]
    assert published(lake).published == [""]
    there = place(lake)
    dies_before_the_switch(lake, back=True)
    assert place(lake) == there
    report = published(lake)
    assert not report.published and "run skipbridge cluster revert" in report.kept[0][1]
    assert reverted(lake).published == [""] and place(lake) == home
    assert stock(lake) == ALL and not left(lake) and not (home / LEFT).exists()


def test_what_died_before_the_switch_is_given_up_if_something_was_written(lake: Lake) -> None:
    home = place(lake)
    dies_before_the_switch(lake)
    fill_at(home / "f9.parquet", 9)
    report = published(lake)
    assert report.published == [""] and stock(lake) == ALL + every(9)
    states = [each.state for each in Switches(lake.storage, lake.location).load()[""]]
    assert states[-2:] == ["undone", "made"] and not left(lake)


@pytest.mark.parametrize("second", [published, reverted])
def test_of_two_operators_each_row_has_one_home(
    tmp_path: Path, second: Callable[[Lake], object]
) -> None:
    for step in range(1, 14):
        lake = five_files(tmp_path / f"{step}")
        if second is reverted:
            published(lake)
            again(lake)

        def meet(at: Lake = lake) -> None:
            second(at)

        published(lake, Life(others={step: meet}))
        assert stock(lake) == ALL and not left(lake)
        published(lake)
        assert stock(lake) == numbers(lake) == ALL and not left(lake)
        assert not (place(lake) / LEFT).exists()


def test_a_lost_race_in_the_metastore_is_listed(lake: Lake) -> None:
    """Its window between reading and writing a record: a late update wins over a newer one."""
    home = place(lake)
    dies_before_the_switch(lake)
    (first,) = Switches(lake.storage, lake.location).load()[""]
    fill_at(home / "f9.parquet", 9)
    published(lake)
    second = place(lake)
    fill_at(second / "f8.parquet", 8)
    lake.locations[""] = Path(first.new.removeprefix("file://"))
    assert stock(lake) == ALL
    assert set(named(lake)) == {("f9.parquet", BEYOND), ("f8.parquet", BEYOND)}


# afterwards


def test_originals_are_listed_when_nobody_needs_them(lake: Lake) -> None:
    home = place(lake)
    published(lake)
    assert not unneeded(lake, older_than=3600).files
    # An older generation of the index names the others.
    assert [Path(f).name for f in unneeded(lake).files] == ["f4.parquet"]
    cleaned(lake)
    listed = unneeded(lake)
    assert sorted(Path(f).name for f in listed.files) == [f"f{i}.parquet" for i in range(5)]
    assert not listed.needed and not cleaned(lake).attempts and len(list(home.glob("f*"))) == 5
    fill_at(home / "f1.parquet", 9)
    fill_at(home / "late.parquet", 9)
    assert len(unneeded(lake).files) == 4
    twin = LakePlaces(lake, {"db.twin": f"file://{home}"})
    assert not unneeded(lake, twin).files and unneeded(lake, twin).needed
    broken = LakePlaces(lake, {"db.b": "file:///b"}, unreadable=frozenset({"db.b"}))
    assert not unneeded(lake, broken).files
    (home / LEFT).rename(home / "aside")
    assert not unneeded(lake).files
    (home / "aside").rename(home / LEFT)
    copy = next(place(lake).glob("f4*"))
    copy.rename(copy.with_name("f5"))
    assert not unneeded(lake).files and "is not as it was published" in unneeded(lake).needed[0][1]


def test_originals_of_all_publications_are_listed(lake: Lake) -> None:
    published(lake)
    again(lake, 7)
    published(lake)
    cleaned(lake)
    directories = {Path(f).parent for f in unneeded(lake).files}
    assert len(directories) == 2
    for path in unneeded(lake).files:
        Path(path.removeprefix("file://")).unlink()
    assert stock(lake) == numbers(lake) == ALL + every(7) and not left(lake)
    assert published(lake).published == [] and not left(lake)


@pytest.mark.rule("38")
def test_clean_deletes_only_what_was_written_for_clustering(lake: Lake) -> None:
    before = sorted(lake.path("").glob("*"))
    with contextlib.suppress(Killed):
        published(lake, Life(3, done=True))
    attempt = list(lake.path(".skipbridge_clustered").glob("published-*/data/*"))
    assert attempt
    published(lake)
    cleaned(lake)
    done = cleaned(lake)
    assert not any(path.exists() for path in attempt) and not done.attempts
    assert set(before) <= set(lake.path("").glob("*")) and stock(lake) == ALL


def test_a_file_of_somebody_else_in_a_failed_attempt_stays(lake: Lake) -> None:
    dies_before_the_switch(lake)
    fill_at(place(lake) / "f9.parquet", 9)
    (first,) = Switches(lake.storage, lake.location).load()[""]
    new = Path(first.new.removeprefix("file://"))
    published(lake)
    fill_at(new / "strange.parquet", 8)
    cleaned(lake)
    assert [path.name for path in new.iterdir()] == ["strange.parquet"]
    assert named(lake) == [("strange.parquet", BEYOND)]


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


def test_clean_deletes_nothing_that_a_link_leads_to(lake: Lake, tmp_path: Path) -> None:
    """The table lies behind a link, and another one where its new files are."""
    (lake.root / "t").rename(tmp_path / "real")
    (lake.root / "t").symlink_to(tmp_path / "real")
    with contextlib.suppress(Killed):
        published(lake, Life(3, done=True))
    published(lake)
    (attempt,) = {
        path.parent
        for path in (tmp_path / "real/.skipbridge_clustered").glob("published-*/data/*")
        if path.parent != place(lake).resolve()
    }
    places = LakePlaces(lake, {"db.another": f"file://{attempt}"})
    for _ in range(2):
        report = Cleaner(lake.table(), lake.store(), places, now_micros() + 5_000_000).run()
        assert report.shared == ["db.another"] and not report.attempts
    assert cleaned(lake).attempts  # the other one was dropped


def test_losing_the_index_loses_nothing_of_a_published_table(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    drop_index(lake.store())
    fill_at(old / "late.parquet", 9)
    assert stock(lake) == ALL and named(lake) == [("late.parquet", BEYOND)]
    assert reverted(lake, refresh=False).published == [""]
    lake.build()
    assert stock(lake) == numbers(lake) == ALL + every(9)


def test_a_damaged_record_stops_everything(lake: Lake) -> None:
    published(lake)
    (record,) = (lake.root / "t/.skipbridge_clustered/switches").glob("*.ended.json")
    body = json.loads(record.read_text())
    for path in ("../elsewhere.parquet", ".skipbridge_clustered/x/f"):
        body["wrote"][0]["path"] = path
        record.write_text(json.dumps(body))
        with pytest.raises(FileCorrupt, match="is not a record of a publication"):
            published(lake)
        with pytest.raises(FileCorrupt, match="nothing is published or deleted"):
            cleaned(lake)


def test_readers_by_path_are_refused_with_the_name_of_the_table(tmp_path: Path) -> None:
    def opened(path: Path) -> object:
        catalog = DirectoryCatalog(open_storage(), f"file://{path}")
        return catalog.table(catalog.name)

    lake = by_day(tmp_path)
    published(lake)
    home = lake.path("")
    for path in (home, home / "day=1"):
        with pytest.raises(UnsupportedTable, match=r"was left when db\.t was published"):
            opened(path)
    opened(lake.locations["day=1"])
    reverted(lake)
    opened(home)
    with pytest.raises(UnsupportedTable):
        shutil.copytree(home / ".skipbridge_clustered", tmp_path / "c")
        (copied,) = (tmp_path / "c").glob("published-*/day=1")
        opened(copied)


def test_a_fresh_file_in_a_partition_without_groups_changes_nothing(lake: Lake) -> None:
    published(lake)
    there = place(lake)
    fill_one(lake, 6)
    assert published(lake).published == [] and place(lake) == there
    assert stock(lake) == ALL + every(6)
