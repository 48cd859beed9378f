"""Scans: what they read, prune and return, and how they fail."""

from __future__ import annotations

import builtins
import datetime as dt
import decimal
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.table.partition import escape
from tests.unit.api.api_flights import write


def ids(found: Any) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_a_scan_prunes_and_applies_the_whole_condition(table: bridge.Table) -> None:
    table.index.build()
    scan = table.scan("id BETWEEN 2150 AND 2152 OR id = 3001", columns=["id", "month"])
    assert scan.to_arrow().to_pylist() == [
        {"id": 2150, "month": 2},
        {"id": 2151, "month": 2},
        {"id": 2152, "month": 2},
        {"id": 3001, "month": 3},
    ]
    found = scan.files()
    assert found.num_rows == 2
    assert found["partition"].to_pylist() == [{"month": 2}, {"month": 3}]
    report = scan.explain()
    assert (report.files_total, report.files_kept) == (12, 2)
    assert report.paths is not None and report.paths.to_pylist() == found["path"].to_pylist()
    everything = table.scan("id BETWEEN 2150 AND 2152", pruning=False)
    assert everything.files().num_rows == 12
    assert everything.to_arrow().num_rows == 3


def test_an_index_built_in_the_session_is_used_by_its_next_scan(table: bridge.Table) -> None:
    scan = table.scan("id = 1001")
    assert scan.files().num_rows == 12
    table.index.build()
    assert scan.files().num_rows == 1
    assert ids(scan.to_arrow()) == [1001]


def test_partitions_and_columns_that_come_later_are_seen(table: bridge.Table) -> None:
    assert table.scan("id < 10").to_arrow().num_rows == 0
    root = Path(table.name)
    write(root / "month=4" / "f.parquet", pa.table({"ID": [5], "extra": ["x"]}))
    assert table.scan("id < 10").to_arrow().to_pylist() == [
        {"id": 5, "x": None, "name": None, "extra": "x", "month": 4}
    ]


@pytest.mark.parametrize(
    ("semantics", "greater", "negated"), [("trino", 12, 24), ("hive", 24, 24), ("spark", 24, 24)]
)
def test_01_nan_compares_as_the_engine_named_has_it(
    table: bridge.Table, semantics: str, greater: int, negated: int
) -> None:
    for build in (None, table.index.build):
        if build is not None:
            build(nan="scan")
        scan = table.scan("x > 98", semantics=semantics)
        assert scan.to_arrow().num_rows == greater
        assert table.scan("NOT (x <= 98)", semantics=semantics).to_arrow().num_rows == negated


@pytest.mark.parametrize(("semantics", "below"), [("trino", ["z\t"]), ("hive", [])])
def test_11_char_compares_padded_or_without_its_padding(
    tmp_path: Path, session: bridge.Session, semantics: str, below: list[str]
) -> None:
    """'z' and a tab: below 'z' where both are padded with spaces, above it where neither is."""
    from bridge.app.api.row_filter import row_filter
    from bridge.expression.parsing.text import parse_where
    from bridge.kernel.types import Field, char

    values = ["z", "z\t", "za"]
    column = pa.array([v.ljust(3) for v in values])
    fields = [Field("c", char(3))]

    def kept(where: str) -> list[str]:
        keep = row_filter(parse_where(where, semantics)[0], fields, semantics)
        mask = keep.mask({"c": column}, 3)
        return [v for v, k in zip(values, mask.tolist(), strict=True) if k]

    assert kept("c < 'z'") == below
    assert kept("c = 'z'") == kept("c = 'z  '") == ["z"]
    assert kept("c <> 'z'") == ["z\t", "za"]
    assert kept("c IN ('z', 'za')") == ["z", "za"]
    assert kept("c LIKE 'z%'") == values


def test_a_float_rounds_as_the_engine_named_compares_it(
    tmp_path: Path, session: bridge.Session
) -> None:
    write(tmp_path / "t" / "f.parquet", pa.table({"r": pa.array([0.1, 0.5], pa.float32())}))
    table = session.table(tmp_path / "t")
    assert table.scan("r = 0.1").to_arrow().num_rows == 1  # a decimal becomes a real
    assert table.scan("r = 1e-1").to_arrow().num_rows == 0  # the real becomes a double
    assert table.scan("r = 0.1", semantics="hive").to_arrow().num_rows == 0


def test_functions_that_engines_compute_alike_filter(table: bridge.Table) -> None:
    assert ids(table.scan("id % 1000 = 7").to_arrow()) == [1007, 2007, 3007]
    assert table.scan("upper(name) = 'N7'").to_arrow().num_rows == 12
    assert table.scan("name LIKE '%9_'").to_arrow().num_rows == 120
    assert table.scan("substring(name, 2, 1) IN ('1', '2')").to_arrow().num_rows == 12 * 22


@pytest.mark.parametrize(
    "where", ["reverse(name) = 'x'", "id = 1 OR cardinality(name) = 2", "id IN (SELECT 1)"]
)
def test_what_cannot_be_computed_is_refused_by_name(table: bridge.Table, where: str) -> None:
    with pytest.raises(bridge.BridgeError) as caught:
        table.scan(where).to_arrow()
    assert caught.value.code == "INVALID_PREDICATE"
    assert caught.value.hint


def test_a_function_of_a_value_that_engines_disagree_about_is_an_error(
    tmp_path: Path, session: bridge.Session
) -> None:
    write(tmp_path / "t" / "f.parquet", pa.table({"s": ["İ"]}))
    with pytest.raises(bridge.BridgeError, match="differently"):
        session.table(tmp_path / "t").scan("lower(s) = 'i'").to_arrow()


@pytest.mark.parametrize("semantics", ["trino", "hive", "spark"])
def test_07_null_is_neither_like_a_pattern_nor_unlike_it(
    tmp_path: Path, session: bridge.Session, semantics: str
) -> None:
    write(tmp_path / "t" / "f", pa.table({"s": ["ab", None, "a", ""], "id": range(4)}))
    write(tmp_path / "t" / "nulls", pa.table({"s": pa.nulls(2, pa.string()), "id": [4, 5]}))
    table = session.table(tmp_path / "t")
    table.index.build()
    for where, wanted in (
        ("s LIKE '%'", [0, 2, 3]),
        ("s NOT LIKE '%'", []),
        ("NOT (s NOT LIKE '%')", [0, 2, 3]),
        ("s NOT LIKE '_'", [0, 3]),
        ("s NOT LIKE '%b'", [2, 3]),
        ("s NOT LIKE 'a%'", [3]),
    ):
        try:
            assert ids(table.scan(where, semantics=semantics).to_arrow()) == wanted, where
        except bridge.BridgeError as error:  # Hive's and Spark's regular expressions are not ours
            assert error.code == "INVALID_PREDICATE" and semantics != "trino", where


def test_columns_limit_and_hidden_columns(table: bridge.Table) -> None:
    found = table.scan(columns=["MONTH", "$path", "id"], limit=150).to_arrow()
    assert found.num_rows == 150
    assert found.column_names == ["month", "$path", "id"]
    assert found["$path"][0].as_py().startswith("file:///")
    assert table.scan(limit=0).to_arrow().num_rows == 0
    assert table.scan(columns=["month"]).to_arrow().num_rows == 1200
    one = found["$path"][0].as_py()
    assert table.scan(f"\"$path\" = '{one}'").to_arrow().num_rows == 100


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"columns": ["nmae"]}, "COLUMN_NOT_FOUND"),
        ({"columns": ["id", "ID"]}, "INVALID_REQUEST"),
        ({"columns": []}, "INVALID_REQUEST"),
        ({"columns": "id"}, "INVALID_REQUEST"),
        ({"limit": -1}, "INVALID_REQUEST"),
        ({"limit": 1.5}, "INVALID_REQUEST"),
        ({"limit": "3"}, "INVALID_REQUEST"),
        ({"where": 5}, "INVALID_REQUEST"),
        ({"semantics": "presto"}, "INVALID_REQUEST"),
        ({"where": " "}, "INVALID_PREDICATE"),
        ({"where": "id ="}, "INVALID_PREDICATE"),
        ({"where": "id = 'x'"}, "INVALID_PREDICATE"),
        ({"where": "nope = 1"}, "COLUMN_NOT_FOUND"),
        ({"freshness": "soon"}, "INVALID_CONFIGURATION"),
        ({"generation": 7}, "GENERATION_NOT_FOUND"),
    ],
)
def test_wrong_arguments_say_what_to_do(
    table: bridge.Table, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(bridge.BridgeError) as caught:
        table.scan(**arguments).to_arrow()
    assert caught.value.code == code


def test_a_stream_is_bounded_and_stops_when_it_is_closed(tmp_path: Path) -> None:
    """Of many tasks no more are under way than asked for, however slowly they are drawn."""
    from bridge.app.api.parallel import in_order

    begun: list[int] = []

    def work(task: int) -> Any:
        begun.append(task)
        yield from range(10)

    results = in_order(range(100), work, 3)
    assert [next(results) for _ in range(15)] == [*range(10), *range(5)]
    assert len(begun) <= 5
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 5
    assert not any(t.name.startswith("skipbridge-read") for t in threading.enumerate())


def test_an_error_in_the_midst_of_a_stream_ends_it(tmp_path: Path) -> None:
    from bridge.app.api.parallel import in_order

    def work(task: int) -> Any:
        yield task
        if task == 2:
            raise KeyError("broken")

    results = in_order(range(5), work, 2)
    with pytest.raises(KeyError):
        list(results)


def test_a_damaged_file_is_one_clear_error(table: bridge.Table) -> None:
    path = Path(table.name) / "month=2" / "f1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    with pytest.raises(bridge.BridgeError) as caught:
        table.scan().to_arrow()
    assert caught.value.code == "FILE_CORRUPT"
    assert "month=2/f1.parquet" in caught.value.message


def test_a_file_that_has_gone_is_an_error_and_not_fewer_rows(table: bridge.Table) -> None:
    table.index.build()
    (Path(table.name) / "month=2" / "f1.parquet").unlink()
    with pytest.raises(bridge.BridgeError) as caught:
        table.scan("id BETWEEN 2100 AND 2110", freshness="snapshot").to_arrow()
    assert caught.value.code in ("FILE_UNREADABLE", "FILE_CHANGED")
    assert table.scan("id BETWEEN 2100 AND 2110").to_arrow().num_rows == 0


def test_files_that_differ_from_the_table_are_read_as_engines_do(
    tmp_path: Path, session: bridge.Session
) -> None:
    root = tmp_path / "t"
    wide = pa.table(
        {
            "n": pa.array([2**40], pa.int64()),
            "d": pa.array([decimal.Decimal("12345.67")], pa.decimal128(9, 2)),
            "f": pa.array([1.5], pa.float64()),
            "t": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us")),
            "s": pa.array([{"a": 1, "b": "x"}]),
        }
    )
    narrow = pa.table(
        {
            "N": pa.array([7], pa.int32()),
            "d": pa.array([decimal.Decimal("1.25")], pa.decimal128(5, 2)),
            "F": pa.array([0.5], pa.float32()),
            "t": pa.array([dt.datetime(2024, 1, 2)], pa.timestamp("ms", "UTC")),
            "s": pa.array([{"A": 2}]),
        }
    )
    write(root / "a.parquet", wide)
    write(root / "b.parquet", narrow)
    write(root / "c.parquet", pa.table({"other": ["only"]}))
    found = session.table(root).scan().to_arrow()
    assert found["n"].to_pylist() == [2**40, 7, None]
    assert found["d"].to_pylist() == [decimal.Decimal("12345.67"), decimal.Decimal("1.25"), None]
    assert found["f"].to_pylist() == [1.5, 0.5, None]
    assert found["t"].to_pylist() == [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None]
    assert found["s"].to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, None]
    assert found["other"].to_pylist() == [None, None, "only"]


def test_a_value_that_does_not_fit_the_table_names_the_file(
    tmp_path: Path, session: bridge.Session
) -> None:
    """The schema is what it was when the directory was looked at; the file has changed since."""
    root = tmp_path / "t"
    write(root / "f.parquet", pa.table({"n": pa.array([1], pa.int32())}))
    table = session.table(root)
    assert table.scan(freshness="cached(1h)").to_arrow().num_rows == 1
    write(root / "g.parquet", pa.table({"n": ["text"]}))
    table_now = session.table(root)
    with pytest.raises(bridge.BridgeError) as caught:
        table_now.scan().to_arrow()
    assert caught.value.code == "SCHEMA_CONFLICT"
    assert "g.parquet" in caught.value.message


def test_orc_is_read_and_pruned(tmp_path: Path, session: bridge.Session) -> None:
    root = tmp_path / "t"
    root.mkdir()
    for i in range(4):
        po.write_table(
            pa.table({"id": pa.array(range(i * 10, i * 10 + 10), pa.int32()), "s": ["é"] * 10}),
            str(root / f"f{i}.orc"),
        )
    table = session.table(root)
    assert table.format == "orc"
    table.index.build()
    scan = table.scan("id IN (7, 25)", columns=["s", "id"])
    assert scan.to_arrow().to_pylist() == [{"s": "é", "id": 7}, {"s": "é", "id": 25}]
    assert scan.files().num_rows == scan.explain().files_kept == 2


def test_18_a_partition_value_that_is_not_of_its_type(
    tmp_path: Path, session: bridge.Session
) -> None:
    from bridge.app.api.scan import Scan
    from bridge.app.api.scan_options import ScanOptions
    from bridge.kernel.errors import FileCorrupt
    from bridge.kernel.types import INTEGER
    from bridge.table.model import CatalogTable, Column, Partition, TableName

    definition = CatalogTable(TableName("db", "t"), (), (Column("p", INTEGER),), "file:///t")
    partition = Partition("p=abc", ("abc",), "file:///t/p=abc")
    hive = Scan(session, "db.t", ScanOptions(semantics="hive"))
    assert hive._key_values(definition, partition)["p"].as_py() is None
    with pytest.raises(FileCorrupt, match="p=abc"):
        Scan(session, "db.t", ScanOptions())._key_values(definition, partition)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("char(3)", "US", "US "),
        ("double", "-1.5", -1.5),
        ("binary", "ab", b"ab"),
        ("float", "0.1", None),
        ("double", "NaN", None),
        ("char(1)", "US", None),
        ("timestamp with local time zone", "2020-01-01 00:00:00", None),
    ],
)
@pytest.mark.parametrize("semantics", ["trino", "hive", "spark"])
def test_18_a_key_that_planning_knows_nothing_of_is_read_or_refused_and_never_null(
    type: str, text: str, value: Any, semantics: str
) -> None:
    from bridge.app.api.partition_keys import key_values
    from bridge.kernel.types import parse_hive_type
    from bridge.table.model import Column, Partition

    keys = (Column("p", parse_hive_type(type)),)
    partition = Partition(f"p={escape(text)}", (text,), "file:///t/p")
    if value is None:
        with pytest.raises(bridge.BridgeError) as caught:
            key_values("db.t", keys, partition, semantics)
        assert caught.value.code == "UNSUPPORTED_TYPE"
    else:
        assert key_values("db.t", keys, partition, semantics)["p"].as_py() == value


@pytest.mark.parametrize(("type", "text"), [("date", "2020-1-5"), ("varchar(2)", "abc")])
def test_18_a_value_that_engines_read_each_in_their_own_way_is_refused(
    type: str, text: str
) -> None:
    from bridge.app.api.partition_keys import key_values
    from bridge.kernel.errors import UnsupportedType
    from bridge.kernel.types import parse_hive_type
    from bridge.table.model import Column, Partition

    keys = (Column("p", parse_hive_type(type)),)
    partition = Partition(f"p={text}", (text,), "file:///t/p")
    for semantics in ("hive", "spark"):
        with pytest.raises(UnsupportedType, match="each in their own way"):
            key_values("db.t", keys, partition, semantics)


def test_large_files_stream_in_batches(tmp_path: Path, session: bridge.Session) -> None:
    root = tmp_path / "t"
    root.mkdir()
    pq.write_table(pa.table({"n": range(300_000)}), root / "f.parquet", row_group_size=200_000)
    with session.table(root).scan("n % 2 = 0").to_reader() as reader:
        sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 150_000
    assert max(sizes) < 150_000


def test_a_reader_that_is_deleted_leaves_no_thread(table: bridge.Table) -> None:
    reader = table.scan().to_reader()
    next(reader)
    del reader
    gc.collect()
    assert not any(t.name.startswith("skipbridge-read") for t in threading.enumerate())


def test_large_values_stream_in_small_batches(tmp_path: Path, session: bridge.Session) -> None:
    values = pa.table({"s": [os.urandom(500_000) for _ in range(40)]})
    for name in "abc":
        write(tmp_path / "t" / name, values)
    with session.table(tmp_path / "t").scan().to_reader() as reader:
        sizes = [(batch.num_rows, batch.nbytes) for batch in reader]
    assert sum(rows for rows, _ in sizes) == 120
    assert max(size for _, size in sizes) < 40_000_000


def test_pandas_and_duckdb(table: bridge.Table) -> None:
    scan = table.scan("id < 1010", columns=["id"])
    assert scan.to_pandas()["id"].tolist() == list(range(1000, 1010))
    assert scan.to_duckdb().aggregate("sum(id)").fetchall() == [(sum(range(1000, 1010)),)]


def test_without_duckdb_the_remedy_is_told(
    table: bridge.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **named: Any) -> Any:
        if name in ("duckdb", "pandas"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    for convert in (table.scan().to_duckdb, table.scan().to_pandas):
        with pytest.raises(bridge.BridgeError, match="pip install") as caught:
            convert()
        assert caught.value.code == "ENVIRONMENT"


def test_notebooks_show_tables(table: bridge.Table, session: bridge.Session) -> None:
    assert "<td>id</td>" in table._repr_html_()
    assert "&lt;" in table.scan("id < 5")._repr_html_()
    assert "<table>" in table.scan("id < 5").explain()._repr_html_()
    assert "metastore" in session._repr_html_()
    assert "generation" in table.index.build()._repr_html_()
