"""Plain Parquet tables through Spark 4.1 with stock Iceberg: rows as DuckDB has them.

Each way to lose or change rows in silence has a table that shows it. The same query is asked with
the cure switched off, too: then it must differ, so the table does show it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.iceberg_rest import layout, plans, tables
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    array,
    map_of,
    struct,
)
from bridge.table.model import Column
from tests.support.iceberg_door import open_door
from tests.support.iceberg_lake import DAY
from tests.support.iceberg_spark import IcebergSpark, SparkFailed, open_spark
from tests.support.lake import Lake

pytestmark = [pytest.mark.engine, pytest.mark.full]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSpark]:
    with open_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


# Ways to lose or change rows in silence


@contextmanager
def _none() -> Iterator[None]:
    yield


@contextmanager
def _patched(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    with Patch.context() as patch:
        for owner, name, value in changes:
            patch.setattr(owner, name, value)
        yield


def _lake(
    root: Path,
    types: dict[str, Type],
    files: list[dict[str, Any]],
    keys: dict[str, Type] | None = None,
    values: list[tuple[str | None, ...]] | None = None,
    **options: Any,
) -> Lake:
    columns = tuple(Column(n, t) for n, t in types.items())
    lake = Lake(root, columns, tuple(Column(n, t) for n, t in (keys or {}).items()))
    lake.partition_values = list(dict.fromkeys(values or [()]))
    for i, data in enumerate(files):
        lake.write(f"f{i}.parquet", pa.table(data), (values or [()] * len(files))[i], **options)
    lake.build()
    return lake


def _rows(
    root: Path, spark: IcebergSpark, lake: Lake, sql: str, off: AbstractContextManager[None]
) -> list[list[Any]]:
    with off, open_door(lake) as door:
        return sorted(spark(sql.format(t=spark.table(door.url))), key=str)


def _nan(root: Path) -> Lake:
    data = {"id": [1, 2, 3], "d": [1.0, float("nan"), 2.0]}
    return _lake(root, {"id": BIGINT, "d": DOUBLE}, [data])


def _zeros(root: Path) -> Lake:
    files = [{"id": [i], "d": [zero]} for i, zero in enumerate((-0.0, 0.0, 1.0))]
    return _lake(root, {"id": BIGINT, "d": DOUBLE}, files)


def _null_key(root: Path) -> Lake:
    files = [{"id": [i * 10, i * 10 + 1]} for i in range(4)]
    values: list[tuple[str | None, ...]] = [
        ("1", "plain"),
        (None, "plain"),
        ("1", "other"),
        (None, "other"),
    ]
    return _lake(root, {"id": BIGINT}, files, {"month": INTEGER, "name": STRING}, values)


def _own_key(root: Path) -> Lake:
    files = [{"id": [1], "month": [7]}, {"id": [2], "month": [8]}]
    return _lake(root, {"id": BIGINT}, files, {"month": INTEGER}, [("1",), ("2",)])


def _spelled(root: Path) -> Lake:
    files = [{"id": [1], "SomeName": ["a"]}, {"id": [2], "somename": ["b"]}]
    return _lake(root, {"id": BIGINT, "somename": STRING}, files)


def _changed(function: str, change: Callable[[Any], Any]) -> tuple[Any, str, Any]:
    """A change of what ``loadTable`` answers."""
    whole = getattr(tables.Tables, function)

    def changed(self: Any, *arguments: Any) -> Any:
        return change(whole(self, *arguments))

    return tables.Tables, function, changed


def _no_snapshot(answer: dict[str, Any]) -> dict[str, Any]:
    answer["metadata"] |= {"current-snapshot-id": -1, "refs": {}, "snapshots": []}
    return answer


def _one_spec(answer: dict[str, Any]) -> dict[str, Any]:
    specs = answer["metadata"]["partition-specs"]
    answer["metadata"]["partition-specs"] = specs[:1]
    return answer


def _no_spellings(answer: dict[str, Any]) -> dict[str, Any]:
    properties = answer["metadata"]["properties"]
    name = "schema.name-mapping.default"
    properties[name] = properties[name].replace('"SomeName", ', "")
    return answer


CASES: dict[str, tuple[Callable[[Path], Lake], str, list[list[Any]], Any]] = {
    "a table without a snapshot is empty": (
        _nan,
        "SELECT id FROM {t}",
        [[1], [2], [3]],
        lambda: _patched(_changed("load", _no_snapshot)),
    ),
    "row groups are judged without NaN": (
        _nan,
        "SELECT id FROM {t} WHERE d > 1000",
        [[2]],
        lambda: _patched((plans, "to_java", lambda filter, resolve: _plain(filter))),
    ),
    "row groups are judged by the sign of zero": (
        _zeros,
        "SELECT id FROM {t} WHERE d = 0.0D OR d IN (5.0D, 0.0D)",
        [[0], [1]],
        lambda: _patched((plans, "to_java", lambda filter, resolve: _plain(filter))),
    ),
    "another spelling reads as NULL": (
        _spelled,
        "SELECT id, somename FROM {t}",
        [[1, "a"], [2, "b"]],
        lambda: _patched(_changed("load", _no_spellings)),
    ),
}


def _plain(filter: Any) -> Any:
    """A leaf as the client sent it."""
    if isinstance(filter, plans.Constant):
        return filter.holds
    if hasattr(filter, "children"):
        parts = [_plain(child) for child in filter.children]
        whole = parts[0]
        for part in parts[1:]:
            whole = {"type": filter.kind, "left": whole, "right": part}
        return whole
    return filter.node


@pytest.mark.parametrize("case", CASES)
def test_52_no_row_is_lost_in_silence(case: str, tmp_path: Path, spark: IcebergSpark) -> None:
    make, sql, wanted, off = CASES[case]
    lake = make(tmp_path)
    assert _rows(tmp_path, spark, lake, sql, _none()) == wanted
    assert _rows(tmp_path, spark, lake, sql, off()) != wanted


def test_a_null_key_under_not(tmp_path: Path, spark: IcebergSpark) -> None:
    """Spark drops what keys decide and trusts the plan, unless a spec lacks the key."""
    lake = _null_key(tmp_path)
    sql = "SELECT id FROM {t} WHERE NOT (name = 'plain' AND month = 1)"
    assert _rows(tmp_path, spark, lake, sql, _none()) == [[20], [21], [30], [31]]

    def with_null(plan: Any, layout: IcebergLayout, partition: Any, client: Any) -> tuple[int, Any]:
        month, name = plan.context.values_of(partition)
        return 0, [month, name.decode()]

    off = _patched(_changed("load", _one_spec), (plans, "_partition", with_null))
    assert _rows(tmp_path, spark, lake, sql, off) == [[10], [11], [20], [21], [30], [31]]


def test_a_count_that_is_not_known_is_counted(tmp_path: Path, spark: IcebergSpark) -> None:
    lake = _nan(tmp_path)
    unknown = (plans.Plans, "_counts", lambda self, layout, files, *told: [-1] * len(files))
    for sql in ("SELECT count(*) FROM {t}", "SELECT count(d), max(id) FROM {t}"):
        known = _rows(tmp_path, spark, lake, sql, _none())
        assert _rows(tmp_path, spark, lake, sql, _patched(unknown)) == known


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_infinity_in_a_filter(kind: str, tmp_path: Path, spark: IcebergSpark) -> None:
    """Java writes it as a text, and does not read it again."""
    numbers = [float("-inf"), 1.0, float("inf"), float("nan"), None]
    single = kind == "FLOAT"
    values = pa.array(numbers, pa.float32() if single else pa.float64())
    types: dict[str, Type] = {"id": BIGINT, "d": FLOAT if single else DOUBLE}
    lake = _lake(tmp_path, types, [{"id": range(5), "d": values}], row_group_size=1)
    wanted = {
        "d = {up}": [2],
        "d <> {up}": [0, 1, 3],
        "d < {up}": [0, 1],
        "d <= {up}": [0, 1, 2],
        "d > {up}": [3],
        "d >= {up}": [2, 3],
        "d IN (1, {up}, {down})": [0, 1, 2],
        "d NOT IN (1, {up})": [0, 3],
        "d = {down}": [0],
        "d <= {down}": [0],
        "d > {down}": [1, 2, 3],
        "NOT d >= {down}": [],
        "NOT d <=> {down}": [1, 2, 3, 4],
    }
    with open_door(lake) as door:
        table = spark.table(door.url)
        for condition, found in wanted.items():
            up, down = (f"CAST('{sign}Infinity' AS {kind})" for sign in ("", "-"))
            sql = f"SELECT id FROM {table} WHERE {condition.format(up=up, down=down)} ORDER BY id"
            assert spark(sql) == [[i] for i in found], condition


REFUSED: dict[str, tuple[Type, pa.Array]] = {
    "milliseconds in UTC": (
        TIMESTAMP,
        pa.array([datetime.datetime(2024, 3, 1)], pa.timestamp("ms", "UTC")),
    ),
    "milliseconds without zone": (
        TIMESTAMP,
        pa.array([datetime.datetime(2024, 3, 1)], pa.timestamp("ms")),
    ),
    "nanoseconds": (TIMESTAMP, pa.array([datetime.datetime(2024, 3, 1)], pa.timestamp("ns"))),
    "unsigned": (BIGINT, pa.array([2**31 + 5], pa.uint32())),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_java_reads_wrongly_is_refused(case: str, tmp_path: Path, spark: IcebergSpark) -> None:
    kind, values = REFUSED[case]
    lake = _lake(tmp_path, {"odd": kind}, [{"odd": values}])
    with open_door(lake) as door, pytest.raises(SparkFailed, match="the column odd is"):
        spark(f"SELECT * FROM {spark.table(door.url)}")
    with _patched((layout, "_mismatch", lambda *told: "")):
        try:
            found = _rows(tmp_path, spark, lake, "SELECT CAST(odd AS string) FROM {t}", _none())
        except SparkFailed:
            return  # an error is not silent
        assert found not in ([["2024-03-01 00:00:00"]], [[str(2**31 + 5)]])


def test_values_of_every_type(tmp_path: Path, spark: IcebergSpark) -> None:
    """Values, dictionary-encoded and not, as the metastore's types and the files have them."""
    noon = [datetime.datetime(2024, 3, 1, 12), datetime.datetime(1999, 1, 1, 1, 2, 3, 4)]
    types: dict[str, Type] = {
        "id": BIGINT,
        "utc": TIMESTAMP,
        "ntz": TIMESTAMP,
        "li": array(INTEGER),
        "m": map_of(STRING, BIGINT),
        "st": struct(Field("x", BIGINT), Field("l", array(STRING))),
        "b": BINARY,
        "ls": array(struct(Field("x", BIGINT))),
        "ms": map_of(STRING, struct(Field("y", STRING))),
    }
    data = {
        "id": pa.array([1, 2], pa.int32()),
        "utc": pa.array(noon, pa.timestamp("us", "UTC")),
        "ntz": pa.array(noon, pa.timestamp("us")),
        "li": pa.array([[1, None], None], pa.list_(pa.int32())),
        "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "st": [{"x": 5, "l": ["p", "q"]}, {"x": None, "l": None}],
        "b": [b"\x00\xff", b""],
        "ls": [[{"X": 7}, None], []],
        "ms": pa.array(
            [[("k", {"y": "v"})], None], pa.map_(pa.string(), pa.struct([("y", pa.string())]))
        ),
    }
    old = "1999-01-01 01:02:03.000004"
    sql = (
        "SELECT id, string(utc), string(ntz), li, m, st.x, st.l, hex(b), ls.x, ms['k'].y FROM {t} "
        "WHERE utc >= TIMESTAMP '1990-01-01 00:00:00' AND id IN (1, 2)"
    )
    wanted = [
        [
            1,
            "2024-03-01 12:00:00",
            "2024-03-01 12:00:00",
            [1, None],
            {"a": 1},
            5,
            ["p", "q"],
            "00FF",
            [7, None],
            "v",
        ],
        [2, old, old, None, {}, None, None, "", [], None],
    ]
    for number, dictionary in enumerate((True, False)):
        lake = _lake(tmp_path / str(number), types, [data], use_dictionary=dictionary)
        assert _rows(tmp_path, spark, lake, sql, _none()) == wanted
    lake = _lake(
        tmp_path / "int96",
        {"id": BIGINT, "ts": TIMESTAMP},
        [{"id": [1, 2], "ts": pa.array(noon, pa.timestamp("us"))}],
        use_deprecated_int96_timestamps=True,
    )
    sql = "SELECT id, string(ts) FROM {t} WHERE ts > TIMESTAMP '2000-01-01 00:00:00'"
    assert _rows(tmp_path, spark, lake, sql, _none()) == [[1, "2024-03-01 12:00:00"]]


def test_instants_by_the_zone_of_the_session(tmp_path: Path, spark: IcebergSpark) -> None:
    noon = pa.array([datetime.datetime(2024, 3, 1, 12)], pa.timestamp("us", "UTC"))
    lake = _lake(tmp_path, {"id": BIGINT, "ts": TIMESTAMP}, [{"id": [1], "ts": noon}])
    zone = "spark.sql.session.timeZone"
    with open_door(lake) as door:
        sql = f"SELECT id FROM {spark.table(door.url)} WHERE ts = TIMESTAMP '2024-03-01 07:00:00'"
        try:
            assert spark(sql, **{zone: "America/New_York"}) == [[1]]
        finally:
            assert spark(sql, **{zone: "UTC"}) == []


def test_names_with_case(tmp_path: Path, spark: IcebergSpark) -> None:
    lake = _spelled(tmp_path)
    with open_door(lake) as door:
        table = spark.table(door.url)
        sql = f"SELECT ID FROM {table} WHERE SomeNAME = 'a'"
        assert spark(sql) == [[1]]
        sensitive = "spark.sql.caseSensitive"
        try:
            with pytest.raises(SparkFailed, match="SomeNAME"):
                spark(sql, **{sensitive: "true"})
            assert spark(sql.lower().replace(table.lower(), table)) == [[1]]
        finally:
            spark("SELECT 1", **{sensitive: "false"})


def test_a_column_of_its_key(tmp_path: Path, spark: IcebergSpark) -> None:
    lake = _own_key(tmp_path)
    sql = "SELECT id, month FROM {t}"
    assert _rows(tmp_path, spark, lake, sql, _none()) == [[1, 1], [2, 2]]


def test_date_keys_are_text_for_java(tmp_path: Path, spark: IcebergSpark) -> None:
    values: list[tuple[str | None, ...]] = [(str(DAY),), (None,)]
    lake = _lake(tmp_path, {"id": BIGINT}, [{"id": [1]}, {"id": [2]}], {"day": DATE}, values)
    sql = "SELECT id FROM {t} WHERE day = DATE '2024-03-01'"
    assert _rows(tmp_path, spark, lake, sql, _none()) == [[1]]
    days = (plans, "format_date", lambda days: days)
    with pytest.raises(SparkFailed):
        _rows(tmp_path, spark, lake, sql, _patched(days))


def test_writes_are_refused_before_a_byte(tmp_path: Path, spark: IcebergSpark) -> None:
    lake = _own_key(tmp_path)
    with open_door(lake) as door:
        table = spark.table(door.url)
        assert sorted(spark(f"SELECT id, month FROM {table}")) == [[1, 1], [2, 2]]
        before = sorted(lake.path("").rglob("*"))
        for sql in (
            "INSERT INTO {t} VALUES (5, 1)",
            "DELETE FROM {t} WHERE id = 1",
            "UPDATE {t} SET id = 3",
            "ALTER TABLE {t} ADD COLUMN x int",
            "DROP TABLE {t}",
        ):
            with pytest.raises(SparkFailed):
                spark(sql.format(t=table))
        assert sorted(lake.path("").rglob("*")) == before
