"""Times through PyIceberg, in INT96, which it reads as nanoseconds, and in other units."""

from __future__ import annotations

import datetime
import operator
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError

from bridge.formats.parquet import statistics, stored_file
from bridge.iceberg_rest import footers, selection
from bridge.kernel.types import BIGINT, INTEGER, TIMESTAMP, Field, array, struct
from bridge.table.model import Column
from tests.behaviour.test_iceberg_door import of_column, refusal
from tests.support.iceberg_door import JAVA, PYICEBERG, TABLE, open_door
from tests.support.lake import Lake
from tests.tiers import examples, seed

NEAR = datetime.datetime(2024, 3, 1, 12)
NEVER = datetime.datetime(9999, 12, 31)
FIRST = datetime.datetime(1677, 9, 21, 0, 12, 43, 200_000)
LAST = datetime.datetime(2262, 4, 11, 23, 47, 16, 800_000)
COLUMNS = (Column("id", BIGINT), Column("t", TIMESTAMP), Column("u", TIMESTAMP))
UTC = datetime.UTC


def write(lake: Lake, name: str, times: list[Any], others: list[Any] | None = None) -> None:
    data = {
        "id": range(len(times)),
        "t": pa.array(times, pa.timestamp("us")),
        "u": pa.array(others or [NEAR] * len(times), pa.timestamp("us")),
    }
    lake.write(name, pa.table(data), use_deprecated_int96_timestamps=True, row_group_size=4)


def two_files(root: Path, **build: Any) -> Lake:
    """``t`` of the second file has a time that means never."""
    lake = Lake(root, COLUMNS)
    write(lake, "f0.parquet", [NEAR, None, FIRST, LAST])
    write(lake, "f1.parquet", [NEAR, None, None, None, NEAR, NEVER])
    lake.build(**build)
    return lake


def times_of(found: pa.Table, column: str = "t") -> list[Any]:
    return [v and v.replace(tzinfo=None) for v in found.sort_by("id")[column].to_pylist()]


@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_52_a_time_out_of_range_is_refused_if_it_is_read(
    nan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = two_files(tmp_path, nan=nan)
    with open_door(lake) as door:
        table = door.table()
        for scan in (
            table.scan(),
            table.scan(selected_fields=("t",)),
            table.scan("t > '2000-01-01T00:00:00+00:00'", ("id",)),
        ):
            with pytest.raises(
                BadRequestError, match=r"f1.parquet rightly: the column t has INT96"
            ):
                scan.to_arrow()
        found = table.scan(selected_fields=("id", "u")).to_arrow()
        assert set(times_of(found, "u")) == {NEAR}
        assert len(door.files()) == 2  # Java reads them
        other = door.plan({"User-Agent": "curl"}, select=["id"])
        assert other.status_code == 200
        assert door.plan({"User-Agent": "curl"}).status_code == 400
    monkeypatch.setattr(selection, "require_near_times", lambda *told: None)
    with open_door(lake) as door:  # the client does show it wrongly
        found = door.table().scan().to_arrow()["t"].to_pylist()
        assert NEVER not in [v and v.replace(tzinfo=None) for v in found]


@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_times_in_range_are_read(nan: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, COLUMNS)
    write(lake, "f0.parquet", [NEAR, None, FIRST, LAST])
    lake.build(nan=nan)
    with open_door(lake) as door:
        assert times_of(door.table().scan().to_arrow()) == [NEAR, None, FIRST, LAST]
        found = door.table().scan("t < '1700-01-01T00:00:00+00:00'").to_arrow()
        assert times_of(found) == [FIRST]


@pytest.mark.full
def test_random_times_are_right_or_refused(tmp_path: Path) -> None:
    """At any depth, with an index of footers, of values, and of none."""
    rng = random.Random(seed(96))
    kind = struct(Field("t", TIMESTAMP), Field("l", array(TIMESTAMP)))
    refused = 0
    for number in range(examples(3, 30, 200)):
        lake = Lake(tmp_path / str(number), (Column("id", BIGINT), Column("s", kind)))
        far = rng.random() < 0.5

        def drawn(far: bool = far) -> Any:
            if rng.random() < 0.2:
                return None
            years = (1, 9999) if far and rng.random() < 0.1 else (1678, 2261)
            start = datetime.datetime(rng.randint(*years), rng.randint(1, 12), rng.randint(1, 28))
            return start + datetime.timedelta(microseconds=rng.randint(0, 86_399_999_999))

        rows = [
            rng.choice((None, {"t": drawn(), "l": [drawn() for _ in range(rng.randint(0, 3))]}))
            for _ in range(20)
        ]
        data = {
            "id": range(20),
            "s": pa.array(
                rows, pa.struct([("t", pa.timestamp("us")), ("l", pa.list_(pa.timestamp("us")))])
            ),
        }
        lake.write(
            "f.parquet",
            pa.table(data),
            use_deprecated_int96_timestamps=True,
            row_group_size=rng.choice((3, 100)),
            use_dictionary=rng.random() < 0.5,
        )
        how = rng.choice(("footer", "scan", None))
        if how:
            lake.build(nan=how)
        with open_door(lake, "live") as door:
            door.plan(PYICEBERG)  # without an index, it learns names
            try:
                found = door.table().scan().to_arrow().sort_by("id")["s"].to_pylist()
            except BadRequestError as error:
                assert "has INT96 times before" in str(error) and not _all_near(rows)
                refused += 1
                continue
        assert [_plain(row) for row in found] == rows
    assert refused


def _plain(row: Any) -> Any:
    if row is None:
        return None
    bare = lambda v: v and v.astimezone(UTC).replace(tzinfo=None)  # noqa: E731
    return {"t": bare(row["t"]), "l": [bare(v) for v in row["l"]]}


def _all_near(rows: list[Any]) -> bool:
    values = [v for row in rows if row for v in (row["t"], *row["l"]) if v]
    return all(FIRST <= v <= LAST for v in values)


def test_no_value_of_a_file_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    read = footers.FAR.read
    monkeypatch.setattr(
        footers.FAR,
        "read",
        lambda storage, uri, *more, **o: asked.append(uri) or read(storage, uri, *more, **o),
    )
    lake = Lake(tmp_path, COLUMNS)
    for i in range(3):
        write(lake, f"f{i}.parquet", [NEAR])
    lake.build()
    with open_door(lake) as door:
        for _ in range(2):
            assert door.plan(PYICEBERG, select=["id", "t"]).status_code == 200
        assert len(asked) == 3
        assert door.plan(PYICEBERG, select=["id"]).status_code == 200
        assert door.plan(JAVA).status_code == 200
        assert len(asked) == 3
    lake.build(nan="scan")
    with open_door(lake) as door:  # the index tells
        assert door.plan(PYICEBERG).status_code == 200
        assert len(asked) == 3


def test_the_values_of_one_plan_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = two_files(tmp_path)
    monkeypatch.setattr(footers, "_MOST_BYTES", footers._LEAST_BYTES * 2)
    with open_door(lake) as door:
        answer = door.plan(PYICEBERG)
        assert answer.status_code == 400 and "index build db.t --nan scan" in answer.text
        assert door.plan(PYICEBERG, select=["id"]).status_code == 200


def test_a_plan_for_others_is_not_given_again_to_another_selection(tmp_path: Path) -> None:
    with open_door(two_files(tmp_path)) as door:
        snapshot = door.table().metadata.current_snapshot_id
        for select, status in ((["id"], 200), (["t"], 400)):
            asked: dict[str, Any] = {"select": select, "snapshot-id": snapshot}
            assert door.plan({"User-Agent": "curl"}, **asked).status_code == status


_ORDERS: dict[str, Any] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_other_units_are_right_in_pyiceberg(zone: str | None, tmp_path: Path) -> None:
    """Java takes them for microseconds, and is refused."""
    rng = random.Random(seed(1000))
    lake = Lake(
        tmp_path, (Column("id", BIGINT), Column("t", TIMESTAMP), Column("l", array(TIMESTAMP)))
    )
    times: list[Any] = []
    files = 9
    for number in range(files):
        unit = ("ms", "us", "ns")[number % 3]
        start = NEAR + datetime.timedelta(days=100 * number)
        step = datetime.timedelta(milliseconds=1) if unit == "ms" else datetime.timedelta(0, 0, 1)
        some = [None if rng.random() < 0.2 else start + step * rng.randint(-9, 9) for _ in range(9)]
        kind = pa.timestamp(unit, zone)
        data = {
            "id": range(len(times), len(times) + 9),
            "t": pa.array(some, kind),
            "l": pa.array([[v, None] for v in some], pa.list_(kind)),
        }
        lake.write(f"f{number}.parquet", pa.table(data), row_group_size=4)
        times += some
    lake.build()
    with open_door(lake) as door:
        assert "the column t is timestamp, its files hold times" in door.get(TABLE, JAVA).text
        assert door.get(TABLE, {"User-Agent": "curl"}).status_code == 400
        table = door.table()
        found = table.scan().to_arrow().sort_by("id")
        assert times_of(found) == times
        inner = [[v and v.replace(tzinfo=None) for v in row] for row in found["l"].to_pylist()]
        assert inner == [[v, None] for v in times]
        door.planned.clear()
        for _ in range(examples(10, 40, 200)):
            literal = rng.choice([v for v in times if v])
            literal += datetime.timedelta(microseconds=rng.choice((0, 0, 1, -1, 500)))
            op = rng.choice(list(_ORDERS))
            text = literal.isoformat() + ("+00:00" if zone else "")
            rows = table.scan(f"t {op} '{text}'").to_arrow()["id"].to_pylist()
            wanted = [i for i, v in enumerate(times) if v and _ORDERS[op](v, literal)]
            assert sorted(rows) == wanted, (op, text)
        assert min(door.planned) < files


def test_times_finer_than_microseconds_are_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, COLUMNS[:2])
    fine = pa.array([1_700_000_000_000_000_001], pa.timestamp("ns"))
    lake.write("f.parquet", pa.table({"id": [1], "t": fine}))
    for nan in ("footer", "scan"):
        lake.build(nan=nan)
        with open_door(lake) as door:
            with pytest.raises(BadRequestError, match="the column t has times that are no whole"):
                door.table().scan().to_arrow()
            assert door.table().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_the_old_calendar_are_refused(
    unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stored_file, statistics):
        monkeypatch.setattr(module, "hybrid_calendar", lambda end: True)
    times = pa.array([datetime.datetime(1800, 1, 1), NEAR], pa.timestamp(unit))
    lake = of_column(tmp_path, TIMESTAMP, times)
    assert "the column odd has times of the old calendar" in refusal(lake, PYICEBERG)
    assert refusal(of_column(tmp_path / "new", TIMESTAMP, times[1:]), PYICEBERG) == ""


@pytest.mark.parametrize("bits", [8, 16])
def test_small_unsigned_integers_are_right_in_pyiceberg(bits: int, tmp_path: Path) -> None:
    most = 2**bits - 1
    kind = getattr(pa, f"uint{bits}")()
    lake = Lake(tmp_path, (Column("id", BIGINT), Column("n", INTEGER), Column("l", array(BIGINT))))
    numbers = [0, 1, None, 5, most, most - 1, most // 2 + 1, 100]
    for i in (0, 4):
        some = numbers[i : i + 4]
        data = {
            "id": range(i, i + 4),
            "n": pa.array(some, kind),
            "l": pa.array([[v] for v in some], pa.list_(kind)),
        }
        lake.write(f"f{i}.parquet", pa.table(data), row_group_size=2)
    lake.build()
    with open_door(lake) as door:
        table = door.table()
        found = table.scan().to_arrow().sort_by("id")
        assert found["n"].to_pylist() == numbers
        assert found["l"].to_pylist() == [[v] for v in numbers]
        for literal in (-1, 0, 5, most // 2, most, most + 1, -(2**31), 2**31 - 1):
            for op, holds in _ORDERS.items():
                rows = table.scan(f"n {op} {literal}").to_arrow()["id"].to_pylist()
                wanted = [i for i, v in enumerate(numbers) if v is not None and holds(v, literal)]
                assert sorted(rows) == wanted, (op, literal)
