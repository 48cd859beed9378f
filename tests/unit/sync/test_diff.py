from __future__ import annotations

import pytest

from bridge.kernel.types import STRING
from bridge.sync.diff import (
    Changes,
    Drop,
    Occupied,
    PartitionClasses,
    PartitionDiff,
    RegisteredPartition,
    TargetProperties,
    Update,
    below,
)
from bridge.sync.discovered_partitions import DiscoveredPartition, DiscoveredPartitions
from bridge.table.model import Column

ROOT = "file:///t"
COLUMNS = (("id", "int"),)
PARQUET = PartitionClasses("in", "out", "serde", "parquet")
FULL = {"file:///elsewhere/full", "file:///t/.hidden/p=1"}


def registered(
    value: str,
    location: str,
    columns: tuple[tuple[str, str], ...] = COLUMNS,
    layout: PartitionClasses = PARQUET,
) -> RegisteredPartition:
    return RegisteredPartition(f"p={value}", (value,), location, columns, layout)


def diff(
    stored: dict[str, str],
    *partitions: RegisteredPartition,
    junk: tuple[str, ...] = (),
    collisions: tuple[str, ...] = (),
    left: str | None = None,
    relocate: bool = False,
) -> Changes:
    found = DiscoveredPartitions(
        (Column("p", STRING),),
        {(v,): DiscoveredPartition(0, d, 1, 1) for v, d in stored.items()},
        collisions=tuple(((c,), ("a", "b")) for c in collisions),
    )
    occupied = Occupied(ROOT, [*stored.values(), *junk], lambda some: [p in FULL for p in some])
    of = PartitionDiff(found, TargetProperties(ROOT, COLUMNS, PARQUET, left, relocate), occupied)
    of.take(partitions)
    return of.changes()


def test_in_step() -> None:
    changes = diff({"1": "p=1"}, registered("1", "file:///t/p=1"))
    assert not len(changes) and changes.unchanged == 1 and not changes.kept


def test_added_and_dropped() -> None:
    changes = diff(
        {"1": "p=1", "2": "p=2"}, registered("2", "file:///t/p=2"), registered("3", "file:///t/p=3")
    )
    assert changes.adds == [("1",)] and changes.drops == [Drop("p=3", "file:///t/p=3")]


@pytest.mark.rule("43")
def test_a_place_that_is_empty_is_left_unless_told() -> None:
    for was in ("file:///t/old", "file:///elsewhere/empty"):
        changes = diff({"1": "p=1"}, registered("1", was))
        assert not len(changes) and "it is empty" in changes.kept[0].reason
        assert changes.unregistered == ["file:///t/p=1"]
        changes = diff({"1": "p=1"}, registered("1", was), relocate=True)
        assert changes.updates == [Update("p=1", ("1",), was, "file:///t/p=1")]


def test_two_places_with_data_are_told() -> None:
    changes = diff({"1": "p=1"}, registered("1", "file:///elsewhere/full"))
    assert not len(changes) and "there is data there" in changes.kept[0].reason
    assert changes.unregistered == ["file:///t/p=1"]
    changes = diff({"1": "p=1"}, registered("1", "file:///elsewhere/full"), relocate=True)
    assert changes.updates[0].location == "file:///t/p=1"


def test_never_dropped() -> None:
    for location, junk, why in (
        ("file:///t/odd", ("odd",), "not partitions"),
        ("file:///t/p=1", ("p=1/deeper",), "not partitions"),
        ("file:///t/.hidden/p=1", (), "not partitions"),
        ("file:///elsewhere/empty", (), "outside"),
        ("file:///tx/p=1", (), "outside"),
    ):
        changes = diff({"2": "p=2"}, registered("1", location), junk=junk)
        assert not changes.drops and why in changes.kept[0].reason, location
    changes = diff({}, registered("1", "file:///t/a"), collisions=("1",))
    assert not len(changes) and "several directories" in changes.kept[0].reason


def test_a_name_that_begins_alike_does_not_keep_a_partition() -> None:
    changes = diff({"10": "p=10"}, registered("1", "file:///t/p=1"))
    assert changes.drops == [Drop("p=1", "file:///t/p=1")]


def test_schema_and_classes_follow_the_table() -> None:
    other = PartitionClasses("other in", "out", "serde", "parquet")
    changes = diff(
        {"1": "p=1", "2": "p=2", "3": "p=3"},
        registered("1", "file:///t/p=1", (("id", "smallint"),)),
        registered("2", "file:///t/p=2", layout=other),
        registered("3", "file:///t/p=3", layout=PartitionClasses("o", "o", "o", "orc")),
        registered("4", "file:///elsewhere/full", ()),
    )
    assert [(u.name, u.location, u.schema, u.classes) for u in changes.updates] == [
        ("p=1", None, True, False),
        ("p=2", None, False, True),
        ("p=4", None, True, False),  # kept where it is, and readable as the table
    ]
    assert changes.kept[0].name == "p=3" and "orc" in changes.kept[0].reason


def test_a_table_that_moved_takes_its_partitions_along() -> None:
    changes = diff(
        {"1": "p=1"},
        registered("1", "file:///old/p=1"),
        registered("2", "file:///old/p=2"),
        left="file:///old",
    )
    assert changes.updates[0].location == "file:///t/p=1"
    assert changes.drops == [Drop("p=2", "file:///old/p=2", left=True)]


def test_below() -> None:
    assert below(ROOT, ROOT) and below(ROOT, "file:///t/x") and not below(ROOT, "file:///tx")
