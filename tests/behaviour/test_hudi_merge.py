"""Merge-on-read tables of Hudi: the rows are those of Spark's snapshot query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.errors import UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.merge import read_slice
from bridge.table.hudi.merge_rules import MergeRules, merge_rules
from tests.support.hudi_fixtures import Answers, HudiFixture, hudi_fixtures

FIXTURES = [f for f in hudi_fixtures() if f.answers().table_type == "MERGE_ON_READ"]
REFUSED: dict[str, str] = {}
"""Fixtures that are not merged here, and why."""


def rules_of(path: Path) -> MergeRules:
    lines = (path / ".hoodie" / "hoodie.properties").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return merge_rules({name: value.replace("\\", "") for name, value in pairs})


def read_table(path: Path, answers: Answers) -> pa.Table:
    rules = rules_of(path)
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
            answers.snapshot.schema,
            rules,
            is_valid,
        )
        for one in answers.slices
    ]
    return pa.concat_tables(parts) if parts else answers.snapshot.schema.empty_table()


def sortable(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f.id)
def test_rows_are_those_of_spark(fixture: HudiFixture) -> None:
    answers = fixture.answers()
    if fixture.name in REFUSED:
        with pytest.raises(UnsupportedTable, match=REFUSED[fixture.name]):
            read_table(fixture.path(), answers)
        return
    read = read_table(fixture.path(), answers)
    names: list[Any] = answers.snapshot.schema.names
    assert sortable(read) == sortable(answers.snapshot.table(names))
