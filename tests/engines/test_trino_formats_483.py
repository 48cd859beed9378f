"""Formats besides Parquet on Trino 483's running server: the rows of 476's own hive connector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engines.stack import Stack, register
from tests.engines.test_trino_avro import AVRO_FIELDS, AVRO_TYPES, rows, write
from tests.engines.test_trino_orc import columns
from tests.engines.text_cases import CASES, TYPED, TextCase
from tests.engines.text_tables import JSON, TEXT, TextTables
from tests.support.format_files import orc_bytes
from tests.tiers import nightly

pytestmark = pytest.mark.full

_OFTEN = {"json_values", "csv_lines", "text_values", "regex_types", "packed_mixed"}


@pytest.fixture(scope="module")
def tables(
    stack: Stack, stack_483: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TextTables]:
    yield TextTables(stack, tmp_path_factory.mktemp("lines483"), "new", stack_483)


@pytest.mark.parametrize("case", [c for c in CASES if nightly() or c.name in _OFTEN], ids=str)
def test_lines(tables: TextTables, case: TextCase) -> None:
    name = tables.table(
        case.name,
        case.columns,
        case.serde,
        tables.files(case.name, case.files),
        case.parameters,
        case.table_parameters,
    )
    tables.same(f"SELECT * FROM {{t}}.{name}")


def test_partitions_of_other_formats_and_types(tables: TextTables) -> None:
    bar = {"field.delim": "|"}
    name = tables.table("parts", TYPED, TEXT, tables.files("parts", {}), bar, keys=[("p", "int")])
    at = tables.files("parts/p=1", {"a": "7|one|1.5\n"})
    tables.partition(name, ["1"], TYPED, TEXT, at, bar)
    at = tables.files("parts/p=2", {"a": '{"c": "2.5", "a": 8, "b": 9}\n'})
    declared = [("a", "tinyint"), ("b", "int"), ("c", "string")]
    tables.partition(name, ["2"], declared, JSON, at)
    assert len(tables.same(f"SELECT * FROM {{t}}.{name}").rows) == 2


def test_orc_and_avro(tables: TextTables, tmp_path: Path) -> None:
    made = pa.table({"a": pa.array([1, None], pa.int32()), "b": ["x", "yz"], "c": [0.5, -1.5]})
    (tmp_path / "orc").mkdir()
    for number in range(3):
        (tmp_path / "orc" / f"f{number}.orc").write_bytes(orc_bytes(made))
    described = columns("a bigint; b varchar(1); c double; d date")
    register(tables.stack, "orc_483", tmp_path / "orc", described, format="orc")
    (tmp_path / "avro").mkdir()
    write(tmp_path / "avro" / "f.avro", AVRO_FIELDS, rows(0, 3_000), "deflate")
    register(
        tables.stack, "avro_483", tmp_path / "avro", columns(AVRO_TYPES), format="avro", index=False
    )
    in_laws = replace(tables, schema="laws")
    for table, where in (("orc_483", "a = 1"), ("avro_483", "id BETWEEN 5 AND 9")):
        assert in_laws.same(f"SELECT * FROM {{t}}.{table} WHERE {where}").rows
        assert in_laws.same(f"SELECT count(*) FROM {{t}}.{table}").rows
