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
from bridge.kernel.errors import UnsupportedTable
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
    "50%25/x": "50%25/x",
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
    "day=a/b": "a/b",
    "day=a%3A/b": "a%3A/b",
}
TWO: dict[str, tuple[str | None, str | None]] = {
    "day=A/city=x": ("A", "x"),
    "day=B/C/city=y": ("B/C", "y"),
    "day=A/city=p/q/r": ("A", "p/q/r"),
    "day=B/k=v/city=50%25/x": ("B/k=v", "50%25/x"),
    f"day={NULL}/city=x%20y": (None, "x y"),
    f"day=D/D/city={NULL}": ("D/D", None),
    "day=A/city=day=A": ("A", "day=A"),
}
AT = "20260101000000000"


def table(
    root: Path, paths: list[str], kind: str = "string", keys: str = "day", **more: str
) -> HudiTable:
    """One row in each partition, whose file says that it is of another one."""
    columns = (("id", "int"), *((key, kind) for key in keys.split(",")))
    fields = [{"name": n, "type": ["null", t]} for n, t in columns]
    made = HudiTable(
        root,
        9,
        "COPY_ON_WRITE",
        hoodie__table__recordkey__fields="id",
        hoodie__table__partition__fields=keys,
        hoodie__table__keygenerator__class="org.apache.hudi.keygen.ComplexKeyGenerator",
        **more,
    )
    other = pa.array([None if kind == "int" else "other"], {"int": pa.int32()}.get(kind))
    files = []
    for number, path in enumerate(paths):
        file = made.base(path, f"g{number}", AT)
        (root / path).mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table(
                {"id": pa.array([number], pa.int32()), **dict.fromkeys(keys.split(","), other)}
            ),
            root / file.path,
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


@pytest.mark.parametrize("seed", range(examples(4, 20, 200)))
def test_levels_that_name_their_keys_hold_slashes(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    paths, root = luck.sample(list(TWO), luck.randint(1, len(TWO))), tmp_path / "t"
    table(root, paths, keys="day,city", hoodie__datasource__write__hive_style_partitioning="true")
    with bridge.connect() as session:
        found = session.table(str(root)).scan().to_arrow()
        some = session.table(str(root)).scan("city = 'p/q/r'").to_arrow()
    rows = {row["id"]: (row["day"], row["city"]) for row in found.to_pylist()}
    assert rows == {i: TWO[path] for i, path in enumerate(paths)}
    assert some["city"].to_pylist() == ["p/q/r"] * ("day=A/city=p/q/r" in paths)


@pytest.mark.parametrize(
    ("paths", "kind", "keys", "odd"),
    [
        (["7", "abc", "8"], "int", "day", "abc"),
        (["7", "99999999999"], "int", "day", "99999999999"),
        (["day=A/city=x", "day=A"], "string", "day,city", "day=A"),
        (["A/x", "B/y/z"], "string", "day,city", "B/y/z"),
        (["day=A", "day="], "string", "day", "day="),
    ],
)
def test_a_path_that_tells_no_value_is_named(
    tmp_path: Path, paths: list[str], kind: str, keys: str, odd: str
) -> None:
    """Otherwise all partitions would have to show what their files say."""
    table(tmp_path / "t", paths, kind, keys)
    with pytest.raises(UnsupportedTable) as refused:
        shown(tmp_path / "t")
    assert f"the partition {odd!r} of the Hudi table" in refused.value.message
