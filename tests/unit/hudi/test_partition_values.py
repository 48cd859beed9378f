"""Odd partition values: each row shows its path's value, and no partition changes what others show.

A directory and what Spark 3.5 with Hudi 1.2 shows for it.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from tests.support.hudi_tables import HudiTable
from tests.tiers import examples

NULL = "__HIVE_DEFAULT_PARTITION__"
SHOWN: dict[str, str | None] = {
    NULL: None,
    "default": "default",
    "A": "A",
    "day=Q": "Q",
    "Q": "Q",
    "a%20b": "a b",
    "x y": "x y",
    "2024/01": "2024/01",
    "ü": "ü",
}
HIVE: dict[str, str | None] = {
    f"day={NULL}": None,
    "day=default": "default",
    "day=A": "A",
    "day=day=Q": "day=Q",
    "plain": "plain",
    "day=plain": "plain",
    "day=a%3Ab": "a:b",
}
AT = "20260101000000000"


def table(root: Path, paths: list[str], kind: str = "string", **more: str) -> HudiTable:
    """One row in each partition, whose file says that it is of another one."""
    fields = [{"name": n, "type": ["null", t]} for n, t in (("id", "int"), ("day", kind))]
    made = HudiTable(
        root,
        9,
        "COPY_ON_WRITE",
        hoodie__table__recordkey__fields="id",
        hoodie__table__partition__fields="day",
        hoodie__table__keygenerator__class="org.apache.hudi.keygen.SimpleKeyGenerator",
        **more,
    )
    other = pa.array([None if kind == "int" else "other"], {"int": pa.int32()}.get(kind))
    files = []
    for number, path in enumerate(paths):
        file = made.base(path, f"g{number}", AT)
        (root / path).mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table({"id": pa.array([number], pa.int32()), "day": other}), root / file.path
        )
        files.append(replace(file, size=(root / file.path).stat().st_size))
    schema = {"type": "record", "name": "t", "fields": fields}
    made.commit(AT, files, action="commit", schema=json.dumps(schema), operation="INSERT")
    return made


def shown(root: Path, where: str | None = None) -> dict[int, object]:
    with bridge.connect() as session:
        opened = session.table(str(root))
        found = (opened.scan(where) if where else opened.scan()).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["day"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(examples(6, 30, 300)))
@pytest.mark.parametrize(("known", "hive"), [(SHOWN, "false"), (HIVE, "true")])
def test_each_partition_shows_its_own_value(
    tmp_path: Path, known: dict[str, str | None], hive: str, seed: int
) -> None:
    luck = random.Random(seed)
    paths = luck.sample(list(known), luck.randint(1, len(known)))
    root = tmp_path / "t"
    table(root, paths, hoodie__datasource__write__hive_style_partitioning=hive)
    want = {i: known[path] for i, path in enumerate(paths)}
    assert shown(root) == want
    nulls = {i: None for i, value in want.items() if value is None}
    assert shown(root, "day IS NULL") == nulls
    assert shown(root, "day = 'default'") == {i: v for i, v in want.items() if v == "default"}
    assert shown(root, "day = 'other'") == {}


def test_the_old_word_for_null_is_null_where_it_is_no_value(tmp_path: Path) -> None:
    table(tmp_path / "t", ["default", "7", "8", NULL], "int")
    assert shown(tmp_path / "t") == {0: None, 1: 7, 2: 8, 3: None}
    assert shown(tmp_path / "t", "day IS NULL") == {0: None, 3: None}
