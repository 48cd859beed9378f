"""Text, CSV, JSON and other lines through the connector, beside Trino's own on the same tables."""

from __future__ import annotations

import bz2
import gzip
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.stack import Stack
from tests.engines.text_cases import CASES, THREE, TYPED, TextCase
from tests.engines.text_tables import (
    CSV,
    JSON,
    OPENX_JSON,
    PARQUET,
    PARQUET_FILES,
    REGEX,
    TEXT,
    TextTables,
)
from tests.tiers import nightly

pytestmark = pytest.mark.full

BAR = {"field.delim": "|"}
# What each of them shows is not shown by another one; the rest is for the night.
_OFTEN = {
    "json_values", "json_two_keys", "json_range", "json_bom", "openx_values", "openx_mapping",
    "lenient_cut", "hivejson_values", "csv_lines", "csv_utf8", "csv_typed", "csv_headers",
    "csv_files", "csv_footers", "text_values", "text_ragged", "text_escape", "text_times",
    "text_both", "regex_types", "packed_mixed", "packed_gzip_cut", "packed_snappy", "packed_zstd",
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TextTables]:
    yield TextTables(stack, tmp_path_factory.mktemp("lines"), "t")


@pytest.mark.parametrize("case", [c for c in CASES if nightly() or c.name in _OFTEN], ids=str)
def test_the_same_rows_or_an_error_of_both(tables: TextTables, case: TextCase) -> None:
    directory = tables.files(case.name, case.files)
    name = tables.table(
        case.name, case.columns, case.serde, directory, case.parameters, case.table_parameters
    )
    tables.same_columns(name, [column for column, _ in case.columns])


_ALPHABETS = {
    "csv": (CSV, "a,\"\\ '", {}),
    "csv_other": (CSV, "a;'#\" ", {"separatorChar": ";", "quoteChar": "'", "escapeChar": "#"}),
    "text": (TEXT, "a1|\\n.-N\t", {**BAR, "escape.delim": "\\"}),
    "nested": (TEXT, "a1\x01\x02\x03-", {}),
    "openx": (OPENX_JSON, "{}[]:,\"a1b \\'/.-", {"ignore.malformed.json": "true"}),
    "regex": (REGEX, "a1 |", {"input.regex": r"([^ ]*) ([^|]*)\|?(.*)"}),
}


@pytest.mark.parametrize("kind", list(_ALPHABETS))
def test_random_lines(tables: TextTables, kind: str) -> None:
    """Lines of the characters that mean something, in every type that they may make."""
    serde, alphabet, parameters = _ALPHABETS[kind]
    rng = random.Random(17)
    columns = [("a", "string"), ("b", "int"), ("c", "double")]
    if kind == "nested":
        columns = [("a", "array<int>"), ("b", "map<string,int>"), ("c", "struct<x:int,y:string>")]
    elif serde == CSV:
        columns = list(THREE)
    lines = []
    for _ in range(30_000 if nightly() else 1_500):
        line = "".join(rng.choices(alphabet, k=rng.randrange(14)))
        if kind == "openx" and rng.random() < 0.7:
            line = f'{{"a": {line}, "b": {rng.choice(["1", "x", "-2", "null"])}}}'
        lines.append(line + rng.choice(["\n", "\n", "\r\n", "\r"]))
    directory = tables.files(f"random_{kind}", {"a": "".join(lines)})
    name = tables.table(f"random_{kind}", columns, serde, directory, parameters)
    found = tables.same(f"SELECT * FROM {{t}}.{name}")
    assert found.rows or found.error
    for column, _ in columns if found.error else ():
        tables.same(f"SELECT {column} FROM {{t}}.{name}")


def test_a_broken_record_is_named_with_its_file(tables: TextTables) -> None:
    directory = tables.files("named", {"ok.json": '{"a": 1}\n', "odd.json": '{"a": 1}\n{"a": x}\n'})
    name = tables.table("named", TYPED, JSON, directory)
    error = tables.ask("bridge", f"SELECT * FROM {{t}}.{name}").error
    assert error.startswith("SKIPBRIDGE_FILE_CORRUPT") and "/odd.json, record 2:" in error
    packed = tables.files("named_gz", {"cut.gz": gzip.compress(b"1|x|2\n" * 9999)[:-20]})
    name = tables.table("named_gz", TYPED, TEXT, packed, BAR)
    error = tables.ask("bridge", f"SELECT count(*) FROM {{t}}.{name}").error
    assert error.startswith("SKIPBRIDGE_FILE_CORRUPT") and "/cut.gz, after record " in error


def test_partitions_of_other_formats(tables: TextTables) -> None:
    """Each partition is read as its own record says."""
    root = tables.files("mixed", {})
    name = tables.table(
        "mixed",
        TYPED,
        TEXT,
        root,
        BAR,
        {"skip.header.line.count": "1"},
        keys=[("p", "string")],
    )
    at = tables.files("mixed/p=text", {"a": "head\n1|one|1.5\n"})
    tables.partition(name, ["text"], TYPED, TEXT, at, BAR)
    at = tables.files("mixed/p=semicolon", {"a": "head\n2;two;2.5\n"})
    tables.partition(name, ["semicolon"], TYPED, TEXT, at, {"field.delim": ";"})
    at = tables.files("mixed/p=csv", {"a": 'head\n3,"three, 3",3.5\n'})
    tables.partition(name, ["csv"], TYPED, CSV, at)
    at = tables.files("mixed/p=json", {"a": 'head\n{"c": 4.5, "a": 4, "b": "four"}\n'})
    tables.partition(name, ["json"], TYPED, JSON, at)
    at = tables.files("mixed/p=openx", {"a": "head\n{c: 5.5, a: 5, b: 'five'}\n"})
    tables.partition(name, ["openx"], TYPED, OPENX_JSON, at)
    at = tables.files("mixed/p=parquet", {})
    rows = pa.table({"a": pa.array([6], pa.int32()), "b": ["six"], "c": [6.5]})
    pq.write_table(rows, at / "a.parquet")
    tables.partition(name, ["parquet"], TYPED, PARQUET, at, classes=PARQUET_FILES)
    found = tables.same(f"SELECT * FROM {{t}}.{name}")
    assert len(found.rows) == 6 and not found.error
    assert len(tables.same(f"SELECT b FROM {{t}}.{name} WHERE a > 3").rows) == 3
    assert len(tables.same(f"SELECT c FROM {{t}}.{name} WHERE p IN ('csv', 'json')").rows) == 2
    assert tables.same(f"SELECT count(*) FROM {{t}}.{name}").rows == ["[6]"]


def test_a_parquet_table_with_a_partition_of_csv(tables: TextTables) -> None:
    root = tables.files("late", {})
    name = tables.table("late", THREE, PARQUET, root, classes=PARQUET_FILES, keys=[("p", "int")])
    for p in range(30):
        at = tables.files(f"late/p={p}", {})
        if p % 10 == 7:
            tables.files(f"late/p={p}", {"a.csv": f"x;{p};y\n"})
            tables.partition(name, [str(p)], THREE, CSV, at, {"separatorChar": ";"})
        else:
            pq.write_table(pa.table({"a": ["u"], "b": [str(p)], "c": ["v"]}), at / "a.parquet")
            tables.partition(name, [str(p)], THREE, PARQUET, at, classes=PARQUET_FILES)
    assert len(tables.same(f"SELECT * FROM {{t}}.{name}").rows) == 30
    assert len(tables.same(f"SELECT * FROM {{t}}.{name} WHERE p IN (7, 8)").rows) == 2


_CHANGES = [
    ("int", "bigint", ["1", "3000000000", "x", ""]),
    ("tinyint", "int", ["1", "300"]),
    ("int", "double", ["1", "2147483647", "1.5"]),
    ("bigint", "string", ["1", "9223372036854775808", "01"]),
    ("boolean", "string", ["true", "false", "x"]),
    ("float", "double", ["1.1", "1e39"]),
    ("double", "float", ["1.1", "1e300"]),
    ("string", "int", ["1", "x", "2147483648", ""]),
    ("string", "tinyint", ["1", "300"]),
    ("string", "bigint", ["1", "1.5"]),
    ("string", "boolean", ["true", "off", "x", ""]),
    ("string", "double", ["1.5", "x", "NaN"]),
    ("string", "varchar(3)", ["abcdef", "日本語日本語"]),
    ("varchar(3)", "varchar(6)", ["abcdef"]),
    ("varchar(3)", "string", ["abcdef"]),
    ("char(3)", "char(6)", ["abcdef"]),
    ("char(6)", "varchar(3)", ["abcdef", "a"]),
    ("string", "char(3)", ["abcdef", "a  "]),
    ("string", "date", ["2024-02-29", "1969-12-31"]),
    ("string", "timestamp", ["2024-02-29 10:11:12.123456", "2024-02-29", "x"]),
    ("date", "string", ["2024-02-29", "x"]),
    ("timestamp", "string", ["2024-02-29 10:11:12.123456789", "x"]),
    ("float", "string", ["1.1", "NaN", "1e30"]),
    ("double", "string", ["1.1", "NaN", "-0.0"]),
    ("int", "decimal(12,2)", ["7", "-2147483648"]),
    ("decimal(5,2)", "decimal(12,4)", ["1.25", "999.99"]),
    ("decimal(12,4)", "decimal(20,1)", ["1.25", "-1.35"]),
    ("decimal(5,2)", "double", ["1.25", "-0.01"]),
    ("decimal(5,2)", "float", ["1.25"]),
    ("decimal(5,2)", "int", ["1.25", "-1.75"]),
    ("decimal(30,2)", "string", ["1.25", "-100"]),
    ("double", "decimal(10,2)", ["1.255", "-7"]),
    ("float", "decimal(30,2)", ["1.25"]),
    ("binary", "string", ["YWJj", ""]),
    ("array<int>", "array<bigint>", ["1\x022", "\\N"]),
    ("map<string,int>", "map<string,bigint>", ["k\x031", ""]),
    ("struct<a:int,b:string>", "struct<a:bigint,b:string,c:int>", ["1\x02x", "\\N"]),
]
_UNCONVERTED = [("date", "int"), ("boolean", "int"), ("int", "date"), ("string", "array<int>")]


def test_columns_whose_type_has_changed(tables: TextTables) -> None:
    """Files are read by the partition's types and converted to the table's, place by place."""
    new = [(f"c{i}", to) for i, (_, to, _) in enumerate(_CHANGES)]
    old = [(f"old{i}", of) for i, (of, _, _) in enumerate(_CHANGES)]
    most = max(len(values) for _, _, values in _CHANGES)
    lines = ["|".join(v[i % len(v)] for _, _, v in _CHANGES) for i in range(most)]
    root = tables.files("changed", {})
    name = tables.table("changed", new, TEXT, root, BAR, keys=[("p", "int")])
    at = tables.files("changed/p=1", {"a": "\n".join(lines)})
    tables.partition(name, ["1"], old, TEXT, at, BAR)
    at = tables.files("changed/p=2", {"a": "\n".join(lines)})
    tables.partition(name, ["2"], new, TEXT, at, BAR)
    at = tables.files("changed/p=3", {"a": "1|2\n"})
    tables.partition(name, ["3"], old[:1], TEXT, at, BAR)
    assert len(tables.same(f"SELECT * FROM {{t}}.{name}").rows) == 2 * most + 1


def test_a_column_of_a_type_that_trino_lacks_keeps_its_place(tables: TextTables) -> None:
    """Those behind it have other types in the partition, and are found by their places."""
    root = tables.files("lacks", {})
    odd = ("z", "interval_year_month")
    new = [odd, ("a", "bigint"), ("b", "string")]
    name = tables.table("lacks", new, TEXT, root, BAR, keys=[("p", "int")])
    at = tables.files("lacks/p=1", {"a": "1-2|7|8\n"})
    tables.partition(name, ["1"], [odd, ("a", "int"), ("b", "int")], TEXT, at, BAR)
    found = tables.ask("bridge", f"SELECT a, b FROM {{t}}.{name}")
    assert found.rows == ['[7, "8"]'], found.error


def test_a_large_compressed_file_is_not_cut(tables: TextTables) -> None:
    rng = random.Random(3)
    text = "".join(f"{i}|{rng.random()}|{i}.5\r\n" for i in range(60_000)).encode()
    files = {"a.bz2": bz2.compress(text), "b.gz": gzip.compress(text), "c.gz": b"", "d.txt": text}
    assert min(len(files[f]) for f in ("a.bz2", "b.gz", "d.txt")) > 1 << 19
    name = tables.table("packed_large", TYPED, TEXT, tables.files("packed_large", files), BAR)
    found = tables.same(
        f'SELECT substr("$path", -5), count(*), sum(a), sum(length(b)) FROM {{t}}.{name} GROUP BY 1'
    )
    assert len(found.rows) == 3


def test_json_finds_changed_columns_by_name(tables: TextTables) -> None:
    root = tables.files("renamed", {})
    name = tables.table(
        "renamed", [("a", "bigint"), ("b", "string")], JSON, root, keys=[("p", "int")]
    )
    at = tables.files("renamed/p=1", {"a": '{"a": 5, "b": "x"}\n'})
    tables.partition(name, ["1"], [("b", "string"), ("a", "int")], JSON, at)
    at = tables.files("renamed/p=2", {"a": '{"a": 3000000000, "b": "x"}\n'})
    tables.partition(name, ["2"], [("b", "string"), ("a", "int")], JSON, at)
    assert len(tables.same(f"SELECT * FROM {{t}}.{name} WHERE p = 1").rows) == 1
    assert tables.same(f"SELECT a FROM {{t}}.{name} WHERE p = 2").error


def test_types_that_cannot_be_converted_are_an_error(tables: TextTables) -> None:
    root = tables.files("never", {})
    new = [(f"c{i}", to) for i, (_, to) in enumerate(_UNCONVERTED)]
    old = [(f"c{i}", of) for i, (of, _) in enumerate(_UNCONVERTED)]
    name = tables.table("never", new, TEXT, root, BAR, keys=[("p", "int")])
    at = tables.files("never/p=1", {"a": "2024-01-01|true|1|1\n"})
    tables.partition(name, ["1"], old, TEXT, at, BAR)
    for column, _ in new:
        assert "TYPE_MISMATCH" in tables.same(f"SELECT {column} FROM {{t}}.{name}").error
    root = tables.files("strange", {})
    name = tables.table("strange", TYPED, TEXT, root, BAR, keys=[("p", "int")])
    at = tables.files("strange/p=1", {"a": "1|x|2\n"})
    tables.partition(name, ["1"], [("a", "date"), *TYPED[1:]], TEXT, at, BAR)
    assert (
        "declares the column a as date" in tables.ask("bridge", f"SELECT a FROM {{t}}.{name}").error
    )
    assert tables.same(f"SELECT a FROM {{t}}.{name}").error
    assert tables.same(f"SELECT b FROM {{t}}.{name}").rows == ['["x"]']


@pytest.mark.nightly
@pytest.mark.parametrize("header", ["0", "1", "2"])
def test_a_large_file_is_cut_with_its_lines_whole(tables: TextTables, header: str) -> None:
    """Each line once, whatever ends it; with two header lines the file is not cut."""
    rng = random.Random(11)
    ends = ("\n", "\r\n", "\r")
    lines = [f"{i}|{'x' * rng.randrange(90)}|{i}.5{ends[i % 3]}" for i in range(200_000)]
    directory = tables.files(f"cut{header}", {"a": "".join(lines) * 17})
    name = tables.table(
        f"cut{header}", TYPED, TEXT, directory, BAR, {"skip.header.line.count": header}
    )
    sql = f"SELECT count(*), sum(a), sum(c), sum(length(b)) FROM {{t}}.{name}"
    assert tables.same(sql).rows[0].startswith(f"[{3_400_000 - int(header)},")


def test_many_small_files_share_splits(tables: TextTables) -> None:
    files = {f"f{i:03d}.json": f'{{"a": {i}, "b": "n{i}", "c": {i}.5}}\n' for i in range(300)}
    name = tables.table("small", TYPED, JSON, tables.files("small", files))
    found = tables.same(
        f"SELECT count(*), sum(a), max(\"$path\" LIKE '%f299.json') FROM {{t}}.{name}"
    )
    assert found.rows == ["[300, 44850, true]"]
    limited = tables.ask("bridge", f"SELECT a FROM {{t}}.{name} LIMIT 7")
    assert len(limited.rows) == 7 and not limited.error
