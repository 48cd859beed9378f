"""What planners tell of logs that are older than the table's schema."""

from __future__ import annotations

import json
from random import Random

import pytest

from bridge.formats.hudi.by_id import LogColumns
from bridge.table.hudi.schema.schema_history import Node, SchemaHistory, SchemaPart, SchemaVersion

VERSIONS, COLUMNS = 50, 300
MOST = 16_000
"""Bytes of a history of 50 versions and 300 columns, each version with one change."""


def versions(random: Random, count: int, columns: int) -> list[SchemaVersion]:
    """Each has one column renamed, retyped, dropped or added, or a field of a struct renamed."""
    parts = [SchemaPart(i, f"column_{i:03d}", Node("int")) for i in range(columns)]
    parts[-1] = SchemaPart(columns - 1, "st", Node("record", (SchemaPart(9000, "x", Node("int")),)))
    found = [SchemaVersion(0, Node("record", tuple(parts)))]
    free: list[str] = []
    for number in range(1, count):
        at = random.randrange(len(parts) - 1)
        old = parts[at]
        match random.randrange(5):
            case 0:
                parts[at] = SchemaPart(old.id, f"renamed_{number:03d}", old.node)
                free.append(old.name)
            case 1:
                parts[at] = SchemaPart(old.id, old.name, Node("long"))
            case 2 if len(parts) > 2:
                free.append(parts.pop(at).name)
            case 3:
                name = free.pop() if free else f"added_{number:03d}"
                parts.insert(0, SchemaPart(1000 + number, name, Node("int")))
            case _:
                field = SchemaPart(9000, f"x{number}", Node("int"))
                parts[-1] = SchemaPart(parts[-1].id, "st", Node("record", (field,)))
        found.append(SchemaVersion(number * 10, Node("record", tuple(parts))))
    return found


def told(random: Random, count: int, columns: int) -> LogColumns:
    """The columns of logs of all versions, as the newest version has them."""
    known = versions(random, count, columns)
    late = {str(number * 10 + 5): known[number - 1] for number in (1, 2) if number < count}
    return SchemaHistory(known, late).log_columns(known[-1])


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_arrives(seed: int) -> None:
    random = Random(seed)
    whole = told(random, random.randint(1, 12), random.randint(2, 9))
    assert LogColumns.decode(whole.encode()) == whole
    place = random.randrange(len(whole.since))
    part = whole.since_place(place)
    assert LogColumns.decode(part.encode()) == part
    for instant in range(130):
        full, known = whole.at(str(instant)), part.at(str(instant))
        # A block that no log of the slice can hold is unknown, or read as with the whole history.
        assert known == full or (known is None and instant < whole.since[place] + 10)


def test_a_long_history_of_a_wide_table_is_small() -> None:
    whole = told(Random(1), VERSIONS, COLUMNS)
    text = whole.encode()
    names = [sorted(names) for _, names in whole.versions]
    assert len(json.dumps(names)) > 10 * MOST  # as it would be without the differences
    assert len(text) < MOST
    assert len(whole.since_place(VERSIONS - 2).encode()) < MOST / 3
