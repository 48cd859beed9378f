"""Columns inferred from JSON and CSV: the table can then be read, whatever times it has."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import FileCorrupt
from bridge.segments.commands import add, tables
from bridge.segments.commands.fact_files import find_fact_files
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileTable
from bridge.table.segments import declare
from tests.tiers import examples

CONFIG = Config()
SPELLED = {
    "date": ["2024-01-04", "1999-12-31"],
    "timestamp": ["2024-01-04 01:02:03", "2024-01-04 00:00:00"],
    "string": ["2024-01-04T01:02:03", "2024-01-04 01:02:03Z", "2024-01-04 01:02", "04.01.2024"],
}


def facts(path: Path) -> FileTable:
    return find_fact_files(LocalStorage(), [str(path)]).files


@pytest.mark.parametrize("format", ["json", "csv"])
def test_times_are_inferred_as_engines_read_them(tmp_path: Path, format: str) -> None:
    rng = random.Random(5)
    for number in range(examples(6, 20, 200)):
        kinds = rng.choices(sorted(SPELLED), k=3)
        rows = [[rng.choice(SPELLED[k]) for k in kinds] for _ in range(3)]
        names, path = ["a", "b", "c"], tmp_path / f"{number}.{format}"
        if format == "json":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            path.write_text("\n".join(lines) + "\n")
        else:
            out = io.StringIO()
            csv.writer(out).writerows([names, *rows])
            path.write_text(out.getvalue())
        properties = {} if format == "json" else {"csv.header_lines": "1"}
        root = str(tmp_path / f"t{number}")
        columns, left_out = declare.infer_columns(LocalStorage(), facts(path), format, properties)
        for (name, type), values in zip(columns, zip(*rows, strict=True), strict=True):
            known = {kind for kind, some in SPELLED.items() if set(values) & set(some)}
            assert {type} == known, (name, values)
        assert not left_out
        tables.create_table(CONFIG, root, format=format, columns=columns, properties=properties)
        add.add_segment(CONFIG, root, paths=[str(path)], local=True)
        with bridge.connect() as session:
            found = session.table(root).scan().to_arrow()
        for (name, _), values in zip(columns, zip(*rows, strict=True), strict=True):
            assert [str(v) for v in found[name].to_pylist()] == list(values)


def test_times_within_structs_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"s": {"d": "2024-01-04", "n": 1}, "l": ["2024-01-04T00:00:00"]}\n')
    columns, _ = declare.infer_columns(LocalStorage(), facts(path), "json", {})
    assert columns == [("s", "struct<d:string,n:bigint>"), ("l", "array<string>")]


def test_a_json_array_is_told_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id": 1},\n {"id": 2}]\n')
    with pytest.raises(FileCorrupt, match=r"a\.json is one JSON array") as told:
        declare.infer_columns(LocalStorage(), facts(path), "json", {})
    assert "jq -c" in told.value.hint
