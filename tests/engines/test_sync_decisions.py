"""A decision of a sync holds only for the records on which it was made: others change them, field
by field, between the decision and the write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.metastore._gen import ttypes
from tests.support.metastore_proxy import Call, Fate
from tests.support.sync_rivals import sync
from tests.support.sync_story import Story, numbers
from tests.support.sync_world import DDL_TIME, KEYS, Values, clear, fields, place_of

pytestmark = [pytest.mark.full, pytest.mark.rule("44")]


# What the metastore counts by itself, and what no decision depends on.
_COUNTED = {
    *("numFiles", "totalSize", "rawDataSize", "numRows", "numFilesErasureCoded", DDL_TIME),
    *("COLUMN_STATS_ACCURATE", "STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK"),
}
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"


def _comment(record: ttypes.Partition) -> None:
    record.sd.cols[0].comment = "another's"


def _serde(record: ttypes.Partition) -> None:
    record.sd.serdeInfo.parameters["rival"] = "set"


def _sort(record: ttypes.Partition) -> None:
    record.sd.sortCols = [ttypes.Order("id", 1)]


def _write_location(record: ttypes.Partition) -> None:
    record.sd.location += "_v2"
    Path(place_of(record)).mkdir()


_CHANGES: dict[str, Callable[[ttypes.Partition], None]] = {
    "nothing": lambda record: None,
    "statistics": lambda record: record.parameters.update(numRows="7", rawDataSize="7"),
    "time": lambda record: record.parameters.update({DDL_TIME: "1700000000"}),
    "property": lambda record: record.parameters.update(rival="set"),
    "no-property": lambda record: record.parameters.pop("note"),
    "created": lambda record: setattr(record, "createTime", 1_600_000_000),
    "accessed": lambda record: setattr(record, "lastAccessTime", 1_600_000_000),
    "location": _write_location,
    "name-of-column": lambda record: setattr(record.sd.cols[0], "name", "another"),
    "type-of-column": lambda record: setattr(record.sd.cols[0], "type", "bigint"),
    "comment": _comment,
    "new-column": lambda record: record.sd.cols.append(ttypes.FieldSchema("more", "date")),
    "input": lambda record: setattr(record.sd, "inputFormat", _TEXT),
    "output": lambda record: setattr(record.sd, "outputFormat", _TEXT),
    "serde": lambda record: setattr(record.sd.serdeInfo, "serializationLib", "rival.SerDe"),
    "property-of-serde": _serde,
    "name-of-serde": lambda record: setattr(record.sd.serdeInfo, "name", "rival"),
    "property-of-storage": lambda record: record.sd.parameters.update(rival="set"),
    "compressed": lambda record: setattr(record.sd, "compressed", True),
    "number-of-buckets": lambda record: setattr(record.sd, "numBuckets", 4),
    "buckets": lambda record: setattr(record.sd, "bucketCols", ["id"]),
    "order": _sort,
    "directories": lambda record: setattr(record.sd, "storedAsSubDirectories", True),
}


_COUNTED_CHANGES = ("statistics", "time", "accessed")
# Done twice they differ, or sync takes the change back: all partitions have the table's classes.
_NOT_REPEATED = {
    *("location", "no-property", "name-of-column", "new-column", "input", "output", "serde"),
}


@pytest.fixture(params=["metastore", "metastore_401"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Story]:
    running = request.getfixturevalue(request.param)
    with Story(running.server.port, tmp_path) as made:
        yield made


@pytest.mark.parametrize("what", ["alter", "drop"])
def test_a_partition_that_changes_in_any_field_is_decided_anew(story: Story, what: str) -> None:
    """Each partition changes in one field after the comparison, directly before its record is read
    again. A round writes those alone that did not change.
    """
    story.write(*(f"p={name}" for name in _CHANGES))
    story.sync()
    for values, record in story.world.partitions().items():
        record.parameters["note"] = "before"
        if what == "alter":
            del record.sd.cols[1:]
        else:
            clear(story.root / f"p={values[0]}")
        story.alter_record(record)
    written: list[set[str]] = []
    changed: set[str] = set()
    reads: list[int] = []

    def before(call: Call) -> Fate:
        if call.method == "get_partition_names":
            written.append(set())
        elif call.method.startswith("get_partitions_by_names"):
            reads.append(call.number)
            if len(reads) == 2:
                changed.update(_change_all(story))
        elif call.writes and call.partitions() is not None:
            written[-1].update(v[0].removeprefix("p=") for v in call.partitions() or ())
        return Fate.PASS

    story.proxy.reset(before)
    ended = story.sync(through=True, full=True, drop_all=True)
    assert _CHANGES.keys() - changed == {"nothing", *_COUNTED_CHANGES}
    assert written[0] == {"nothing", *_COUNTED_CHANGES}
    assert ended.report is not None and ended.report.rounds == 2
    kept = {name: reason for name, _, reason in ended.report.kept}
    assert kept.keys() <= {"p=location", "p=input", "p=serde"}, kept
    left = story.world.partitions()
    assert left.keys() == ({(name,) for name in _CHANGES} if what == "alter" else set())
    for values, record in left.items():
        again = copy.deepcopy(record)
        if values[0] not in _NOT_REPEATED:
            _CHANGES[values[0]](again)
        assert _seen(again) == _seen(record), f"{values} is lost"
        assert story.root / f"p={values[0]}" == place_of(record) or values[0] == "location"
        assert ("note" in record.parameters) == (values[0] != "no-property")
        columns = {"another" if values[0] == "name-of-column" else "id", "name"}
        assert columns <= fields(record.sd).keys() or f"p={values[0]}" in kept


def _change_all(story: Story) -> Iterator[str]:
    """The names of the changes that the metastore took."""
    before = story.world.partitions()
    for values, record in copy.deepcopy(before).items():
        _CHANGES[values[0]](record)
        story.alter_record(record)
    for values, record in story.world.partitions().items():
        if _seen(record) != _seen(before[values]):
            yield values[0]


def _seen(record: ttypes.Partition) -> ttypes.Partition:
    known = copy.deepcopy(record)
    known.parameters = {k: v for k, v in record.parameters.items() if k not in _COUNTED}
    known.lastAccessTime = 0
    return known


def test_a_property_set_before_each_call_of_a_sync(story: Story) -> None:
    """Partitions alone change: the table's record is not written."""
    story.write("p=a", "p=b")
    story.sync()
    story.write("p=c", "p=d")
    made = []

    def before(call: Call) -> Fate:
        made.append(f"k{call.number}")
        story.alter_table(**{made[-1]: "set"})
        return Fate.PASS

    story.proxy.reset(before)
    assert story.sync(through=True).status == 0
    record = story.world.table()
    assert record is not None and len(made) > 4
    assert [k for k in made if k not in record.parameters] == []
    assert len(story.places()) == 4


@pytest.mark.parametrize("what", ["moved", "gone"])
def test_a_place_set_while_sync_decides_otherwise(story: Story, what: str) -> None:
    """Another's SET LOCATION, to a place with data, before any call but the one that writes."""
    at = 0
    while True:
        directory = f"p=x{at}"
        values = (f"x{at}",)
        story.write("p=a", directory)
        story.sync(full=True)
        third = story.world.base / f"third{at}"
        story.world.write(third)
        if what == "moved":
            story.alter(values, location=story.root / "nothing")
        else:
            clear(story.root / directory)
        reached: list[str] = []

        def before(
            call: Call,
            at: int = at,
            values: Values = values,
            third: Path = third,
            reached: list[str] = reached,
        ) -> Fate:
            if call.number == at:
                reached.append(call.method)
                if call.method.startswith(("alter_p", "drop_p")):
                    reached.append("in the window")
                elif values not in story.places():
                    reached.append("dropped before")
                else:
                    story.alter(values, location=third)
            return Fate.PASS

        story.proxy.reset(before)
        story.sync(through=True, full=True)
        if not reached:
            break
        if len(reached) == 1 and values in story.places():
            assert story.places()[values] == third, (at, reached)
        assert len(reached) == 2 or values in story.places(), (at, reached)
        at += 1
    assert at > 3


def test_two_syncs_with_a_new_column(story: Story) -> None:
    """The second runs within the first, at each of its calls; a file with a new column comes."""
    at = 0
    while True:
        story.world.database = f"others{next(numbers)}"
        clear(story.root)
        story.write("p=a", "p=b", "p=c")
        story.sync()
        story.write("p=d")
        reached: list[int] = []

        def before(call: Call, at: int = at, reached: list[int] = reached) -> Fate:
            if call.number == at:
                reached.append(at)
                story.write("p=a", "p=e", kind="longer")
                sync(story.world, story.uri)
            return Fate.PASS

        story.proxy.reset(before)
        story.sync(through=True)
        ended = story.sync()
        record = story.world.table()
        assert record is not None and (not reached or "extra" in fields(record.sd)), at
        for values in (("a",), ("e",)) if reached else ():
            assert "extra" in fields(story.world.partitions()[values].sd), (at, values)
        assert ended.status == 0 and story.sync(full=True).status == 0
        assert len(story.places()) == (5 if reached else 4)
        if not reached:
            break
        at += 1
    assert at > 4


_TABLE_CHANGES: dict[str, Callable[[ttypes.Table], None]] = {
    "comment": _comment,
    "new-column": lambda record: record.sd.cols.append(ttypes.FieldSchema("more", "date")),
    "comment-of-key": lambda record: setattr(record.partitionKeys[0], "comment", "another's"),
    "property-of-serde": _serde,
    "owner": lambda record: setattr(record, "owner", "rival"),
    "retention": lambda record: setattr(record, "retention", 7),
    "extractor": lambda record: record.parameters.update({"skipbridge.sync.extractor": "multi"}),
}


@pytest.mark.parametrize("what", ["property", *_TABLE_CHANGES])
def test_a_table_that_changes_before_an_addition_is_decided_anew(story: Story, what: str) -> None:
    """But for properties that others set."""
    story.write("p=a")
    story.sync()
    story.write("p=b")
    methods: list[str] = []

    def before(call: Call) -> Fate:
        methods.append(call.method)
        if call.method.startswith("get_table") and methods.count(call.method) == 2:
            record = story.world.table()
            assert record is not None
            change = _TABLE_CHANGES.get(what, lambda record: record.parameters.update(rival="set"))
            change(record)
            story.client.alter_table(story.world.database, "t", record)
        return Fate.PASS

    story.proxy.reset(before)
    ended = sync(story.world, story.proxy.uri, extractor="hive" if what == "extractor" else None)
    assert ended.report is not None
    assert ended.report.rounds == (1 if what == "property" else 2), methods
    assert ("b",) in story.places() and story.sync().in_step
    if what == "new-column":
        assert all("more" in fields(p.sd) for p in story.world.partitions().values())


@pytest.mark.parametrize("kind", ["first", "longer"])
def test_a_column_that_another_adds_meanwhile_comes_to_all_partitions(
    story: Story, kind: str
) -> None:
    """Before each call of a sync that adds a partition, and of one that adds a column, too."""
    at = 0
    reached = True
    while reached:
        story.world.database = f"others{next(numbers)}"
        clear(story.root)
        story.write("p=a", "p=b")
        story.sync()
        story.write("p=c", kind=kind)
        reached = False

        def before(call: Call, at: int = at) -> Fate:
            nonlocal reached
            if call.number == at:
                reached = True
                record = story.world.table()
                assert record is not None
                record.sd.cols.append(ttypes.FieldSchema("more", "date"))
                record.parameters.pop(DDL_TIME)
                story.client.alter_table(story.world.database, "t", record)
            return Fate.PASS

        story.proxy.reset(before)
        writes = story.sync(through=True).report
        assert writes is not None
        window = story.proxy.calls[at].method.startswith("alter_table") if reached else False
        story.sync()
        record = story.world.table()
        assert record is not None
        assert not reached or window or "more" in fields(record.sd), at
        for values, one in story.world.partitions().items():
            assert fields(one.sd).keys() == fields(record.sd).keys(), (at, values)
        at += 1
    assert at > 4


@pytest.mark.rule("45")
def test_a_place_that_another_registers_meanwhile_is_not_registered_again(story: Story) -> None:
    """As Hive's MSCK does beside a sync: under another spelling, before each call but the one that
    adds.
    """
    at = 0
    reached = [""]
    while reached:
        story.world.database = f"others{next(numbers)}"
        story.world.keys = KEYS["number"]
        clear(story.root)
        story.write("m=01", "m=02")
        story.sync()
        story.write("m=03", "m=04")
        reached.clear()

        def before(call: Call, at: int = at) -> Fate:
            if call.number == at:
                reached.append(call.method)
                if ("03",) not in story.places():
                    story.world.register("hive", ("3",), story.root / "m=03")
            return Fate.PASS

        story.proxy.reset(before)
        ended = story.sync(through=True)
        places = list(story.places().values())
        if reached != ["add_partitions_req"]:
            assert len(set(places)) == len(places) == 4, (at, reached)
            assert ended.status == 0
        else:
            assert ended.report is not None and ended.status == 3, "it is told at least"
            assert ended.report.doubled
        at += 1
    assert at > 4


_WRITERS = ("table", "table with its old time", "partitions", "new partitions")


@pytest.mark.parametrize("whose", _WRITERS)
def test_another_that_writes_before_each_call_stops_no_sync(story: Story, whose: str) -> None:
    """What it writes between the last read and the write of one call may be lost; the report says
    so.
    """
    story.write("p=a", "p=b", "p=c")
    story.sync()
    story.write("p=a", kind="longer")
    story.write("p=d")
    clear(story.root / "p=c")
    made: list[str] = []

    def before(call: Call) -> Fate:
        made.append(f"k{call.number}")
        if whose == "partitions":
            for values in story.places():
                story.alter(values, **{made[-1]: "set"})
            return Fate.PASS
        if whose == "new partitions":
            place = story.world.base / made[-1]
            story.world.write(place)
            story.world.register("hive", (made[-1],), place)
            return Fate.PASS
        record = story.world.table()
        assert record is not None
        record.parameters |= {made[-1]: "set"}
        if whose == "table":
            record.parameters.pop(DDL_TIME)
        story.client.alter_table(story.world.database, "t", record)
        return Fate.PASS

    story.proxy.reset(before)
    ended = story.sync(through=True)
    assert ended.status == 0 and ended.report is not None
    said = "the next run compares" if whose == "new partitions" else "all the time"
    assert any(said in line for line in ended.report.table_changes)
    record = story.world.table()
    assert record is not None and "extra" in fields(record.sd)
    partitions = {v: p for v, p in story.world.partitions().items() if v[0] not in made}
    assert partitions.keys() == {("a",), ("b",), ("d",)}
    assert all("extra" in fields(p.sd) for p in partitions.values())
    held = {*record.parameters, *(v[0] for v in story.places())}
    if whose == "partitions":
        held = set(partitions[("a",)].parameters)
    writes = [c.number for c in story.proxy.calls if c.method.startswith("alter_")]
    assert [k for k in made if k not in held and int(k[1:]) not in writes] == []
    story.sync()
    assert story.sync().in_step
