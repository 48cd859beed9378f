"""Residuals of long lists: by row they are the filter, and a file has the values it may hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import In, NotIn

from bridge.iceberg_rest import plans, residuals
from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.table.model import Column
from tests.laws.test_iceberg_expressions import holds
from tests.support.iceberg_door import JAVA, PYICEBERG, OpenDoor, open_door
from tests.support.lake import Lake
from tests.tiers import examples, seed

Rows = dict[str, list[dict[tuple[str, ...], Any]]]


def numbers(root: Path, rng: random.Random, *, files: int = 12) -> tuple[Lake, Rows]:
    """``n`` of file i lies around 10 * i. The files have a column of the key's name, too."""
    columns = (Column("id", BIGINT), Column("n", INTEGER), Column("s", STRING))
    lake = Lake(root, columns, (Column("k", INTEGER),))
    lake.partition_values = [("1",), ("500",)]
    rows: Rows = {}
    for i in range(files):
        values = rng.choice(lake.partition_values)
        n = [None if rng.random() < 0.2 else 10 * i + rng.randint(-8, 8) for _ in range(5)]
        if rng.random() < 0.1:
            n = [None] * 5
        ids = [5 * i + j for j in range(5)]
        path = lake.write(f"f{i}.parquet", _table(ids, n), values)
        told = zip(ids, n, strict=True)
        key = int(values[0] or "")
        rows[path.name] = [{("id",): a, ("n",): b, ("s",): _text(b), ("k",): key} for a, b in told]
    if rng.random() < 0.8:
        lake.build()
        if rng.random() < 0.5:  # the index does not know it
            lake.write("late.parquet", _table([-1], [35]), values)
            rows["late.parquet"] = [{("id",): -1, ("n",): 35, ("s",): "035", ("k",): key}]
    return lake, rows


def _table(ids: list[int], n: list[int | None]) -> pa.Table:
    number = pa.int32()
    keys = pa.array([9999] * len(n), number)
    text = pa.array(list(map(_text, n)), pa.string())
    return pa.table({"id": ids, "n": pa.array(n, number), "s": text, "k": keys})


def _text(n: int | None) -> str | None:
    """Those of negative numbers have two bytes more."""
    return None if n is None else f"{n:03d}" if n >= 0 else f"{-n:03d}é"


def draw(rng: random.Random, depth: int) -> Any:
    if depth and rng.random() < 0.8:
        sides = [draw(rng, depth - 1) for _ in range(2)]
        both = {"type": rng.choice(("and", "or")), "left": sides[0], "right": sides[1]}
        return {"type": "not", "child": both} if rng.random() < 0.2 else both
    term = rng.choice(("n", "s", "id", "k"))
    if term != "s" and rng.random() < 0.2:
        return {
            "type": rng.choice(("gt", "lt", "not-eq")),
            "term": term,
            "value": rng.randint(0, 120),
        }
    some: list[Any] = [rng.randint(-50, 600) for _ in range(rng.choice((1, 8, 60)))]
    some = [_text(n) for n in some] if term == "s" else some
    found = {"type": rng.choice(("in", "not-in")), "term": term, "values": some}
    return {"type": "not", "child": found} if rng.random() < 0.2 else found


def tasks(door: OpenDoor, headers: dict[str, str], filter: Any) -> list[dict[str, Any]]:
    first = door.plan(headers, filter=filter)
    assert first.status_code == 200, first.text
    body = first.json()
    found = list(body["file-scan-tasks"])
    for token in body.get("plan-tasks", ()):
        page = door.post("/v1/namespaces/db/tables/t/tasks", {"plan-task": token}, headers)
        assert page.status_code == 200, page.text
        found += page.json()["file-scan-tasks"]
    return found


def test_53_a_residual_is_the_filter_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed(53))
    monkeypatch.setattr(residuals, "_LONG", 5)
    monkeypatch.setattr(plans, "_PAGE_BYTES", 1500)
    shorter = pages = 0
    for number in range(examples(4, 30, 200)):
        lake, rows = numbers(tmp_path / str(number), rng)
        with open_door(lake, "live") as door:
            door.plan(PYICEBERG)
            for _ in range(8):
                filter = draw(rng, rng.choice((0, 1, 2)))
                for headers in (JAVA, PYICEBERG):
                    found = {
                        task["data-file"]["file-path"].rpartition("/")[2]: task["residual-filter"]
                        for task in tasks(door, headers, filter)
                    }
                    for name, held in rows.items():
                        for row in held:
                            kept = name in found and holds(found[name], row, "java")
                            assert kept == holds(filter, row, "java"), (filter, name, row)
                    shorter += len({str(each) for each in found.values()}) > 1
                pages += len(door.plan(filter=filter).json()["plan-tasks"])
    assert shorter and pages


def test_a_long_list_is_sent_once(tmp_path: Path) -> None:
    """All tasks together are not much longer than the filter."""
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(20):
        lake.write(f"f{i}.parquet", {"id": [1000 * i, 1000 * i + 999]})
    lake.build()
    filter = {"type": "in", "term": "id", "values": list(range(20_000))}
    with open_door(lake) as door:
        answer = door.plan(filter=filter)
        assert len(answer.json()["file-scan-tasks"]) == 20
        assert len(answer.content) < 2 * len(str(filter))


def test_pyiceberg_reads_the_rows_of_a_long_list(tmp_path: Path) -> None:
    rng = random.Random(seed(7))
    lake, _ = numbers(tmp_path, rng)
    some = [*range(-100, 1000, 2)]
    with open_door(lake, "live") as door:
        door.plan(PYICEBERG)
        table = door.table()
        whole = table.scan().to_arrow().to_pylist()
        for filter, keeps in ((In("n", some), False), (NotIn("n", some), True)):
            found = table.scan(filter).to_arrow()["id"].to_pylist()
            wanted = [r["id"] for r in whole if (r["n"] in some) is not keeps]
            assert sorted(found) == sorted(wanted)
            assert table.scan(filter).count() == len(wanted)


def test_pages_of_another_planner_with_other_bounds_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages begin at other files."""
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(100):
        lake.write(f"f{i}.parquet", {"id": [50 * i, 50 * i + 49]})
    lake.build()
    monkeypatch.setattr(plans, "_PAGE_BYTES", 30_000)
    filter = {"type": "in", "term": "id", "values": list(range(5000))}
    path = "/v1/namespaces/db/tables/t/tasks"
    with open_door(lake) as one, open_door(lake) as other, open_door(lake) as third:
        token = {"plan-task": one.plan(filter=filter).json()["plan-tasks"][0]}
        assert other.post(path, token, JAVA).json() == one.post(path, token, JAVA).json()
        whole = lambda self, batch: [(0, len(self.values))] * len(batch)  # noqa: E731
        monkeypatch.setattr(residuals.LongList, "places", whole)
        assert third.post(path, token, JAVA).status_code == 404
