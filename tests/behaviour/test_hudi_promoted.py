"""A column of a Hudi table that became a string: files from before hold numbers.

The law: a scan finds the rows whose value, as text, satisfies the condition, with an index or none.
"""

from __future__ import annotations

import json
import operator
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.formats.hudi.fit import convert_column
from bridge.kernel.errors import SchemaConflict
from tests.support.hudi_tables import HudiTable
from tests.tiers import examples, seed

COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge}


def schema(type: str) -> str:
    fields = [{"name": "k", "type": ["null", type]}]
    return json.dumps({"type": "record", "name": "t", "fields": fields})


def written(table: HudiTable, group: str, instant: str, values: Any) -> Any:
    file = table.base("", f"{group}-0", instant)
    path = table.root / file.name
    pq.write_table(pa.table({"k": values}), path)
    return replace(file, size=path.stat().st_size)


@pytest.mark.rule("15")
@pytest.mark.parametrize("type", [pa.int32(), pa.int64()])
def test_numbers_that_became_texts_are_found_as_texts(tmp_path: Path, type: pa.DataType) -> None:
    rng = random.Random(seed(15))
    table = HudiTable(tmp_path / "t", 8, "COPY_ON_WRITE", hoodie__table__recordkey__fields="k")
    numbers = [[rng.choice([None, rng.randint(-120, 120)]) for _ in range(5)] for _ in range(4)]
    texts = [[str(rng.randint(-120, 120)) for _ in range(5)], ["x", "1.5", None]]
    old, new = "20260101000000001", "20260101000000002"
    first = [written(table, f"f{n}", old, pa.array(v, type)) for n, v in enumerate(numbers)]
    table.commit(
        old, first, action="commit", schema=schema("int" if type == pa.int32() else "long")
    )
    second = [written(table, f"g{n}", new, pa.array(v)) for n, v in enumerate(texts)]
    table.commit(new, second, action="commit", schema=schema("string"))
    rows = [v if v is None else str(v) for values in [*numbers, *texts] for v in values]
    with bridge.connect(planner_cache_dir=str(tmp_path / "cache")) as session:
        asked = session.table(str(table.root))
        for built in (False, True):
            if built:
                asked.index.build()
            assert sorted(map(str, asked.scan().to_arrow()["k"].to_pylist())) == sorted(
                map(str, rows)
            )
            for _ in range(examples(10, 20, 200)):
                sign, text = rng.choice([*COMPARISONS]), str(rng.randint(-130, 130))
                engine = rng.choice(["trino", "hive", "spark"])
                found = asked.scan(f"k {sign} '{text}'", semantics=engine).to_arrow()
                holds = COMPARISONS[sign]
                wanted = [v for v in rows if v is not None and holds(v.encode(), text.encode())]
                assert sorted(found["k"].to_pylist()) == sorted(wanted), (sign, text, built)


@pytest.mark.rule("15")
def test_numbers_are_merged_as_texts() -> None:
    found = convert_column(pa.array([1, None, -7]), pa.string(), "k", "f")
    assert found.to_pylist() == ["1", None, "-7"]
    with pytest.raises(SchemaConflict):  # each engine writes floating numbers in its own way
        convert_column(pa.array([1.5]), pa.string(), "k", "f")
