"""What other engines do to a synced table, one case each: no row is doubled or hidden, and nothing
that they wrote is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.kernel.errors import TableExists
from bridge.metastore._gen import ttypes
from bridge.sync.schemas.type_changes import SETTING
from tests.support.metastore_proxy import Call, Fate
from tests.support.sync_rivals import sync
from tests.support.sync_story import Story, numbers
from tests.support.sync_world import (
    DDL_TIME,
    SPARK_SCHEMA,
    clear,
    fields,
    parquet,
    schema_of_spark,
)

pytestmark = pytest.mark.full


@pytest.fixture(params=["metastore", "metastore_401"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Story]:
    running = request.getfixturevalue(request.param)
    with Story(running.server.port, tmp_path) as made:
        yield made


# place is identity


@pytest.mark.rule("45")
def test_a_place_that_zero_padding_spells_otherwise(story: Story) -> None:
    """As MSCK REPAIR of Hive 4 registers ``m=01`` of an int key."""
    story.write("m=01", "m=02")
    story.create("number")
    for number in (1, 2):
        story.world.register("hive", (str(number),), story.root / f"m=0{number}")
    before = story.places()
    assert story.sync().status == 0 and story.places() == before
    story.write("m=03")
    assert story.sync().status == 0 and set(story.places()) == {*before, ("03",)}
    assert story.sync().in_step and story.sync(full=True).in_step


@pytest.mark.rule("45")
def test_a_partition_rewritten_beside_its_old_directory(story: Story) -> None:
    story.write("p=a", "p=b")
    story.sync()
    story.write("p=a_v2")
    story.alter(("a",), location=story.root / "p=a_v2")
    clear(story.root / "p=a")
    for full in (False, True, False):
        ended = story.sync(full=full)
        assert story.places()[("a",)] == story.root / "p=a_v2"
        assert set(story.places()) == {("a",), ("b",)} and ended.status == 0
    assert ended.in_step


@pytest.mark.rule("45")
def test_an_extractor_given_by_mistake_doubles_nothing(story: Story) -> None:
    story.write("p=paris", "p=rome")
    story.sync()
    before = story.places()
    sync(story.world, story.uri, extractor="multi")
    assert story.places() == before
    story.sync(extractor="hive")
    assert story.places() == before and story.sync(full=True).in_step


@pytest.mark.rule("45")
def test_a_partition_registered_while_sync_adds_it(story: Story) -> None:
    """The rival's is the one that stays, and sync does not report it as its own."""
    story.write("p=a", "p=b")
    story.sync()
    story.write("p=c")
    other = story.world.base / "other"
    story.world.write(other)

    def before(call: Call) -> Fate:
        if call.method == "add_partitions_req":
            story.world.register("trino", ("c",), other, made_by="rival")
        return Fate.PASS

    story.proxy.reset(before)
    ended = story.sync(through=True)
    assert story.places()[("c",)] == other
    assert ended.report is not None and ended.report.added == []


# absence


@pytest.mark.rule("43")
def test_an_empty_place_elsewhere_is_not_repointed(story: Story) -> None:
    story.write("p=a", "p=b")
    story.sync()
    place = story.world.base / "rewritten"
    story.world.write(place)
    story.alter(("a",), location=place, made_by="compaction")
    story.sync(full=True)
    place.rename(story.world.base / "aside")
    for _ in range(2):
        story.sync(full=True)
        assert story.places()[("a",)] == place
    (story.world.base / "aside").rename(place)
    story.sync(full=True)
    assert story.places()[("a",)] == place
    assert story.world.partitions()[("a",)].parameters["made_by"] == "compaction"
    story.sync(full=True, relocate=True)
    assert story.places()[("a",)] == story.root / "p=a"


@pytest.mark.rule("43")
def test_one_look_drops_nothing(story: Story) -> None:
    """INSERT OVERWRITE of Spark deletes the directory first, and writes it anew later."""
    story.write("p=a", "p=b", "p=c")
    story.sync()
    story.alter(("b",), made_by="rival")
    (story.root / "p=b").rename(story.world.base / "aside")
    for _ in range(2):
        story.sync(full=True, drop_now=False)
        assert ("b",) in story.places()
    (story.world.base / "aside").rename(story.root / "p=b")
    story.sync(full=True, drop_now=False)
    left = story.world.partitions()[("b",)].parameters
    assert left["made_by"] == "rival" and not [k for k in left if k.startswith("skipbridge.")]
    assert story.sync(drop_now=False).in_step
    clear(story.root / "p=b")
    story.sync(full=True, drop_now=True)
    assert ("b",) not in story.places()


@pytest.mark.rule("43")
def test_many_places_gone_at_once_drop_none(story: Story) -> None:
    story.write(*(f"p={i}" for i in range(20)))
    story.sync()
    for i in range(8):
        clear(story.root / f"p={i}")
    for _ in range(2):
        ended = story.sync(full=True, drop_now=True)
        assert (ended.status, len(story.places())) == (3, 20)
    assert story.sync(full=True, drop_now=True, drop_all=True).status == 0
    assert len(story.places()) == 12 and story.sync().in_step


@pytest.mark.rule("43")
def test_a_store_that_lists_half_its_directories_drops_few(story: Story) -> None:
    """Again and again, by a few at a time: those dropped in the last day count."""
    story.write(*(f"p={i:02}" for i in range(20)))
    story.sync()
    for i in range(16):
        clear(story.root / f"p={i:02}")
        if i % 3 == 2:
            story.sync(full=True, drop_now=True)
    story.sync(full=True, drop_now=True)
    assert len(story.places()) >= 15


# what sync did not decide to change


@pytest.mark.rule("48")
@pytest.mark.parametrize(
    ("registered", "files"),
    [
        ("struct<A:int,b:string>", pa.struct([("A", pa.int32()), ("b", pa.string())])),
        ("struct<a:int,b:string>", pa.struct([("A", pa.int32()), ("b", pa.string())])),
        ("array<struct<Id:int>>", pa.list_(pa.struct([("Id", pa.int32())]))),
        ("map<string,struct<Id:int>>", pa.map_(pa.string(), pa.struct([("ID", pa.int32())]))),
    ],
)
def test_members_of_structs_compare_without_case(
    story: Story, registered: str, files: pa.DataType
) -> None:
    place = story.root / "p=1"
    place.mkdir(parents=True)
    (place / "f.parquet").write_bytes(parquet(id=pa.array([None], files)))
    _create_of_type(story, registered)
    assert story.sync().status == 0
    record = story.world.table()
    assert record is not None and record.sd.cols[0].type == registered
    assert story.world.partitions()[("1",)].sd.cols[0].type == registered
    assert story.sync(full=True).in_step


def _create_of_type(story: Story, type_: str) -> None:
    story.create("text")
    record = story.world.table()
    assert record is not None
    story.client.drop_table(story.world.database, "t")
    record.sd.cols = [ttypes.FieldSchema("id", type_)]
    story.client.create_table(record)
    story.world.register("spark", ("1",), story.root / "p=1")


_UDT = {
    "type": "udt",
    "class": "org.apache.spark.ml.linalg.VectorUDT",
    "pyClass": "pyspark.ml.linalg.VectorUDT",
    "sqlType": "string",
}


@pytest.mark.parametrize("metadata", [{}, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}])
def test_fields_of_spark_stay_where_another_column_comes(
    story: Story, metadata: dict[str, str]
) -> None:
    story.write("p=1")
    story.create("text", "spark")
    name = "string" if metadata else _UDT
    described = [
        {"name": "Id", "type": "integer", "nullable": False, "metadata": {"comment": "x"}},
        {"name": "Name", "type": name, "nullable": True, "metadata": metadata},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ]
    story.alter_table(**{SPARK_SCHEMA: json.dumps({"type": "struct", "fields": described})})
    story.write("p=2", kind="longer")
    assert story.sync().status == 0
    record = story.world.table()
    assert record is not None and "extra" in fields(record.sd)
    found = schema_of_spark(record)
    assert [found[f["name"].lower()] for f in described] == described
    assert found["extra"]["type"] == "double"


def test_a_new_column_in_a_file_with_an_old_time(story: Story) -> None:
    story.write("p=a", "p=b")
    story.sync()
    story.world.write(story.root / "p=a", "longer", old=True)
    story.sync()
    record = story.world.table()
    assert record is not None and fields(record.sd)["extra"] == "double"
    assert fields(story.world.partitions()[("a",)].sd)["extra"] == "double"


def test_a_column_of_one_partition_widens_no_other(story: Story) -> None:
    story.write("p=a", "p=b", "p=d")
    story.sync()
    story.write("p=b", "p=c", kind="wider")
    assert story.sync().status == 0
    types = {v[0]: fields(p.sd)["id"] for v, p in story.world.partitions().items()}
    assert types == {"a": "int", "b": "bigint", "c": "bigint", "d": "int"}
    assert story.sync().in_step and story.sync(full=True).in_step
    story.write("p=d", kind="wider")  # the table's type is wide already
    assert story.sync().status == 0
    types = {v[0]: fields(p.sd)["id"] for v, p in story.world.partitions().items()}
    assert types == {"a": "int", "b": "bigint", "c": "bigint", "d": "bigint"}
    assert story.sync().in_step and story.sync(full=True).in_step


# one bad member


@pytest.mark.rule("36")
def test_partitions_that_the_metastore_refuses_stop_no_other(story: Story) -> None:
    story.write("p=a")
    story.sync()
    bad, good = ([f"p={what}{i:02}" for i in range(60)] for what in ("bad", "good"))
    for directory in (*bad, *good):
        (story.root / directory).mkdir()
        os.link(next((story.root / "p=a").iterdir()), story.root / directory / "f.parquet")

    def before(call: Call) -> Fate:
        values = call.partitions() or set()
        return Fate.REFUSE if any(v[0].startswith("bad") for v in values) else Fate.PASS

    for _ in range(2):
        story.proxy.reset(before)
        ended = story.sync(through=True)
        assert ended.status == 3 and ended.report is not None
        assert len(ended.report.failed) == 60, "named in each run"
        assert len(story.places()) == 61
    assert story.sync().status == 0 and len(story.places()) == 121


@pytest.mark.rule("36")
@pytest.mark.parametrize("location", ["nope://host/x", "file:relative/%zz", "s3a://", ""])
def test_a_location_that_cannot_be_read_stops_no_other(story: Story, location: str) -> None:
    story.write("p=a", "p=b")
    story.sync()
    record = story.world.partitions()[("b",)]
    record.sd.location = location
    try:
        story.client.alter_partitions(
            story.world.database, "t", [record], {"DO_NOT_UPDATE_STATS": "true"}
        )
    except Exception:
        pytest.skip("this metastore takes no such location")
    story.write("p=c")
    ended = story.sync(full=True)
    assert ("c",) in story.places() and ended.status in (0, 3)
    assert story.world.partitions()[("b",)].sd.location == location


@pytest.mark.rule("27", "36")
def test_partitions_that_cannot_be_listed_leave_the_others_to_the_index(story: Story) -> None:
    """A file without a name in UTF-8, and places of stores that fail; named in each run."""
    places = {"c": "hdfs://127.0.0.1:1/x", "d": "hdfs://127.0.0.1:1/y", "e": "nope://host/x"}
    story.write("p=a", "p=b", *(f"p={value}" for value in places))
    assert story.sync().status == 0
    odd = story.root / "p=b" / os.fsdecode(b"\xff")
    odd.write_bytes(b"x")
    for value, place in places.items():
        story.alter((value,), place=place)
    for full in (True, False):
        ended = story.sync(full=full, index="local")
        assert ended.status == 3 and ended.report is not None and ended.report.index is not None
        reasons = {r["partition"]: r["reason"] for r in ended.report.index["refused"]}
        assert reasons.keys() == {"p=b", "p=c", "p=d", "p=e"}
        assert reasons["p=c"].startswith("STORAGE_ERROR: hdfs://127.0.0.1:1"), reasons
        assert ended.report.index["files"] == (1 if full else 2)
        story.write("p=f" if full else "p=a")
    odd.unlink()
    for value in places:
        story.alter((value,), location=story.root / f"p={value}")
    ended = story.sync(full=True, index="local")
    assert ended.status == 0 and ended.report and (ended.report.index or {})["files"] >= 6


@pytest.mark.rule("36")
def test_a_damaged_file_is_named_by_the_index_and_in_each_run_of_sync(story: Story) -> None:
    story.write("p=a", "p=b")
    damaged = story.root / "p=b" / "damaged.parquet"
    damaged.write_bytes(b"x" * 500)
    for file in story.root.rglob("*.parquet"):
        os.utime(file, (1_600_000_000, 1_600_000_000))
    first = story.sync(index="local").report
    assert first is not None and first.index is not None
    assert [each["file"] for each in first.index["failed"]] == [f"file://{damaged}"]
    for options in ({}, {}, {"full": True}):
        ended = story.sync(index="local", **options)
        assert ended.status == 3 and ended.report is not None
        assert [uri for uri, _ in ended.report.unreadable] == [f"file://{damaged}"]
    damaged.unlink()
    assert story.sync(index="local").status == 0 and story.sync(index="local").status == 0


@pytest.mark.rule("36")
def test_a_partition_that_another_drops_meanwhile_stops_no_other(story: Story) -> None:
    story.write("p=a", "p=b", "p=c")
    story.sync()
    story.write("p=a", "p=b", kind="wider")
    dropped: list[str] = []

    def before(call: Call) -> Fate:
        if call.method.startswith("alter_partitions") and not dropped:
            dropped.append("p=b")
            story.client.drop_partitions(story.world.database, "t", dropped)
        return Fate.PASS

    story.proxy.reset(before)
    story.sync(through=True)
    assert dropped and fields(story.world.partitions()[("a",)].sd)["id"] == "bigint"
    story.sync()
    assert len(story.places()) == 3 and story.sync(full=True).in_step


# marks, status, dry runs


def test_a_mark_of_another_root_or_an_owner_proves_nothing(story: Story) -> None:
    story.write("p=a")
    story.create("text")
    record = story.world.table()
    assert record is not None
    for owner, mark in (("skipbridge", None), ("etl", str(story.world.base / "other"))):
        record.owner = owner
        if mark is not None:
            record.parameters["skipbridge.sync.root"] = f"file:{mark}"
        record.parameters.pop(DDL_TIME, None)
        story.client.alter_table(story.world.database, "t", record)
        ended = sync(story.world, story.uri, adopt=False)
        assert isinstance(ended.error, TableExists), owner
        assert story.places() == {}


def test_rows_in_no_partition_are_said_in_each_run(story: Story) -> None:
    story.write("p=a", "odd")
    assert [story.sync().status for _ in range(3)] == [3, 3, 3]
    clear(story.root / "odd")
    assert [story.sync().status for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("drop_all", [False, True])
def test_a_move_drops_no_partition_with_data(story: Story, drop_all: bool) -> None:
    story.write("p=a", "p=b", "p=c")
    story.sync()
    old = story.world.base / "old"
    story.root.rename(old)
    record = story.world.table()
    assert record is not None
    record.sd.location = f"file:{old}"
    record.parameters["skipbridge.sync.root"] = f"file://{old}"
    story.client.alter_table(story.world.database, "t", record)
    for values in story.places():
        story.alter(values, location=old / f"p={values[0]}")
    story.write("p=a", "p=b")
    story.sync(move=True, full=True, drop_all=drop_all)
    kept = {} if drop_all else {("c",): old / "p=c"}
    assert story.places() == {**{(v,): story.root / f"p={v}" for v in "ab"}, **kept}


@pytest.mark.parametrize("asked", [True, False])
def test_a_dry_run_knows_what_the_metastore_will_refuse(story: Story, asked: bool) -> None:
    old = not story.client.get_version().startswith("4.")
    longer = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    pairs = [("struct<a:int>", longer), ("array<int>", pa.list_(pa.int64())), ("int", pa.int64())]
    for registered, type_ in pairs:
        story.world.database = f"others{next(numbers)}"
        clear(story.root)
        place = story.root / "p=1"
        place.mkdir(parents=True, exist_ok=True)
        (place / "f.parquet").write_bytes(parquet(id=pa.array([None], type_)))
        _create_of_type(story, registered)
        before = story.world.table(), story.world.partitions()

        def refuse(call: Call) -> Fate:
            hidden = call.method == "get_config_value" and not asked
            return Fate.REFUSE if hidden else Fate.PASS

        story.proxy.reset(refuse)
        dry = sync(story.world, story.proxy.uri, dry_run=True)
        said = str(dry.error or "") + str(dry.report.to_dict() if dry.report else "")
        assert (story.world.table(), story.world.partitions()) == before
        story.proxy.reset(refuse)
        real = sync(story.world, story.proxy.uri)
        if old and registered != "int":
            assert real.error is not None and SETTING in said, (said, real)
            assert ("may be refused" in said) is not asked and (dry.error is not None) is asked
            assert (story.world.table(), story.world.partitions()) == before
            assert not asked or SETTING in str(real.error)
        else:
            assert (dry.status, real.status) == (0, 0), (dry, real)
            assert ("may be refused" in said) is (not asked and registered != "int")
