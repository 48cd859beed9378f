"""Nothing that one file or one partition says is taken for another's: rules 23 and 28."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, STRING, Field, struct
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, owned


def _read(lake: Lake, where: str, freshness: str) -> set[tuple[str, str]]:
    """Partition and name of each file that is read."""
    request = ScanRequest(NAME, parse_where(where)[0], freshness=freshness)
    return {(p, uri.rpartition("/")[2]) for p, uri in owned(lake.planner().plan(request))}


def test_23_bounds_belong_to_the_path_of_parents(tmp_path: Path) -> None:
    """Two structs with equal leaves, in another order in each file."""
    city = struct(Field("city", STRING))
    lake = Lake(tmp_path, (Column("home", city), Column("work", city)), ())

    def row(**columns: Any) -> pa.Table:
        return pa.table({name: pa.array([{"city": value}]) for name, value in columns.items()})

    lake.write("1", row(home="A1", work="B1"))
    lake.write("2", row(work="B2", home="A2"))
    lake.build()
    assert _read(lake, "home.city = 'A2'", "live") == {("", "2")}
    assert _read(lake, "work.city = 'B1'", "live") == {("", "1")}


def test_28_a_file_belongs_to_every_partition_of_its_location(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("p", STRING),))
    lake.partition_values = [("a",), ("b",)]
    lake.locations = {"p=b": tmp_path / "t" / "p=a"}
    for name, value in (("f", 1), ("g", 10)):
        lake.write(name, pa.table({"x": pa.array([value])}), ("a",))
    lake.build()
    for freshness in ("live", "snapshot"):
        assert _read(lake, "x = 10", freshness) == {("p=a", "g"), ("p=b", "g")}
        assert _read(lake, "p = 'b'", freshness) == {("p=b", "f"), ("p=b", "g")}
