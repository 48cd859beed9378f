"""Merge-on-read tables of Hudi: the rows are those of Spark's snapshot query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.kernel.errors import UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.merging.merge import read_slice
from bridge.table.hudi.merging.merge_rules import MergeRules, merge_rules
from tests.support.hudi_fixtures import Answers, HudiFixture, few, hudi_fixtures

FIXTURES = [
    f
    for f in few(hudi_fixtures())
    # A snapshot tells what columns were called; here slices are merged without one.
    if f.answers().table_type == "MERGE_ON_READ" and not f.name.startswith("mor_renamed")
]
REFUSED = {
    "mor_partial_updates": "partial updates",
    "mor_payload_non_defaults": "is not read here|IGNORE_DEFAULTS",
    "mor_payload_partial": "is not read here|IGNORE_DEFAULTS",
}
"""Fixtures that are not merged here, and what the error says."""
FROM_THE_PATH = {"mor_timestamp_keys": "at"}
"""Columns that Spark fills from the partition's path; readers get them as constants."""
FLOATS = {"mor_widened": "f"}
"""Columns that were FLOAT: Spark makes a DOUBLE of the text, all other readers of the value."""


def rules_of(path: Path) -> MergeRules:
    lines = (path / ".hoodie" / "hoodie.properties").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return merge_rules({name: value.replace("\\", "") for name, value in pairs})


def read_table(path: Path, answers: Answers, schema: pa.Schema) -> pa.Table:
    rules = rules_of(path)
    view = FileSystemView.open(open_storage(), canonical(str(path)))
    newest = view.timeline.last
    assert newest is not None
    completed = {i.requested for i in answers.timeline if i.completed is not None}
    pending = {i.requested for i in answers.timeline if i.completed is None}
    earliest = min(i.requested for i in answers.timeline)

    def is_valid(instant: str) -> bool:
        if answers.table_version >= 8:
            return True
        return instant not in pending and (instant in completed or instant < earliest)

    def file(partition: str, name: str) -> tuple[str, int]:
        found = path / partition / name
        return canonical(str(found)), found.stat().st_size

    parts = [
        read_slice(
            open_storage(),
            file(one.partition, one.base_file) if one.base_file else None,
            [file(one.partition, log) for log in one.logs],
            schema,
            rules,
            is_valid,
        )
        for one in answers.slices
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def sortable(table: pa.Table, floats: str | None) -> list[str]:
    if floats is not None:
        place = table.schema.get_field_index(floats)
        table = table.set_column(place, floats, table.column(floats).cast(pa.float32(), safe=False))
    return sorted(repr([_sorted(value) for value in row.values()]) for row in table.to_pylist())


def _sorted(value: Any) -> Any:
    """Maps have no order; Arrow gives them as lists of pairs."""
    if isinstance(value, list) and all(isinstance(part, tuple) for part in value):
        return sorted(value)
    return value


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f.id)
def test_rows_are_those_of_spark(fixture: HudiFixture) -> None:
    answers = fixture.answers()
    schema = answers.snapshot.schema
    constant = FROM_THE_PATH.get(fixture.name)
    schema = pa.schema([field for field in schema if field.name != constant])
    if fixture.name in REFUSED:
        with pytest.raises(UnsupportedTable, match=REFUSED[fixture.name]):
            read_table(fixture.path(), answers, schema)
        return
    read = read_table(fixture.path(), answers, schema)
    floats = FLOATS.get(fixture.name)
    assert sortable(read, floats) == sortable(answers.snapshot.table(schema.names), floats)
