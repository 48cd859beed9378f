"""Cases of files whose meaning the table declares, each with what is known of it."""

from __future__ import annotations

import bz2
import gzip
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bridge.formats.lines.recipe import Recipe
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    Kind,
    Type,
    decimal,
    parse_hive_type,
)
from tests.support.text_files import read

CSV = {"serialization.lib": "org.apache.hadoop.hive.serde2.OpenCSVSerde"}
JSON = {"serialization.lib": "org.apache.hive.hcatalog.data.JsonSerDe"}
TEXT = {"serialization.lib": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"}
AMBIGUOUS = None
DOUBTFUL = None


def known(
    format: str, properties: dict[str, str], raw: bytes, uri: str = "f", **types: Type
) -> Any:
    """The known values by column; None for an ambiguous file."""
    recipe = Recipe(format, tuple(sorted(properties.items())), tuple(types.items()))
    found = read(recipe, raw, uri)
    return None if found is None else dict(zip(types, found[1], strict=True))


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"1,2\n3,4\n", {"a": ["1", "3"], "b": ["2", "4"]}),
        (b"1,2\n3,4", {"a": ["1", "3"], "b": ["2", "4"]}),
        (b"1,2\r\n3,4\r\n", {"a": ["1", "3"], "b": ["2", "4"]}),
        (b'"1","2, and"\n', {"a": ["1"], "b": ["2, and"]}),
        (b'"",\n', {"a": [""], "b": [""]}),
        (b"1\n2\n", {"a": ["1", "2"], "b": [None, None]}),
        (b"1,2,3\n", {"a": ["1"], "b": ["2"]}),
        ("é,名\n".encode(), {"a": ["é"], "b": ["名"]}),
        (b"", {"a": [], "b": []}),
        (b"1,2\n3\n", {"a": ["1", "3"], "b": ["2", None]}),
        (b"1,2\n\n3,4\n", {"a": ["1", None, "3"], "b": ["2", None, "4"]}),
        (b"\n", {"a": [None], "b": [None]}),
        (b"1,2\r3,4\n", AMBIGUOUS),
        (b"1,\xff\n", AMBIGUOUS),
        (b"\xef\xbb\xbf1,2\n", AMBIGUOUS),
        (b"1,\0\n", AMBIGUOUS),
        (b'1,"2\n', {"a": ["1"], "b": [None]}),
        (b'1,"a""b"\n', {"a": ["1"], "b": ['a"b']}),
        (b'1, "2"\n', {"a": ["1"], "b": ["2"]}),
        (b'1,a"b"\n1,,2,3\n', {"a": ["1", "1"], "b": ['a"b', ""]}),
        (b"1,a\\b\n", {"a": ["1"], "b": ["ab"]}),
        (b'"a\nb",2\n', {"a": [None, None], "b": [None, None]}),
        (b"1\n\xef\xbb\xbf3,4\n", {"a": ["1", "\ufeff3"], "b": [None, "4"]}),
        (b"1,2\n\\\xef\xbb\xbf3\n", {"a": ["1", "\ufeff3"], "b": ["2", None]}),
    ],
)
def test_csv(raw: bytes, wanted: Any) -> None:
    assert known("csv", CSV, raw, a=STRING, b=STRING) == wanted


@pytest.mark.parametrize(
    "properties",
    [
        {"separatorChar": ";;"},
        {"separatorChar": "é"},
        {"separatorChar": '"'},
        {"quoteChar": "\\"},
        {"escapeChar": ""},
        {"serialization.encoding": "ISO-8859-1"},
        {"skip.header.line.count": "-1"},
        {"skip.header.line.count": "one"},
        {"skip.footer.line.count": "1"},
        {"textinputformat.record.delimiter": "|"},
        {"skipbridge.partition-parameters": "separatorChar=;"},
        {"file.inputformat": "com.acme.Lines"},
        {"skipbridge.cast": "maybe"},
    ],
)
def test_a_property_that_is_not_understood_makes_all_files_ambiguous(
    properties: dict[str, str],
) -> None:
    assert known("csv", CSV, b"a,b\n", a=STRING) is not None
    assert known("csv", {**CSV, **properties}, b"a,b\n", a=STRING) is None


def test_a_byte_order_mark_where_a_block_begins_is_ambiguous(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = b"head\n\xef\xbb\xbf1,2\n"
    assert known("csv", {**CSV, "skip.header.line.count": "1"}, raw, a=STRING) is None
    raw = b"1,2\n" * 3 + "\ufeff5,6\n".encode()
    assert known("csv", CSV, raw, a=STRING) == {"a": ["1"] * 3 + ["\ufeff5"]}
    monkeypatch.setattr("bridge.formats.lines.lines.BLOCK", 12)
    monkeypatch.setattr("bridge.formats.lines.lines._LEAST", 1)
    assert known("csv", CSV, raw, a=STRING) is None


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9])
def test_blocks_end_between_lines(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("bridge.formats.lines.lines.BLOCK", size)
    raw = 'head\r\n"1",ä\r\n2,\r\n3,"x, y"'.encode()
    properties = {**CSV, "skip.header.line.count": "1"}
    wanted = {"a": ["1", "2", "3"], "b": ["ä", "", "x, y"]}
    assert known("csv", properties, raw, a=STRING, b=STRING) == wanted
    assert known("csv", properties, gzip.compress(raw), "f.gz", a=STRING, b=STRING) == wanted
    assert known("csv", properties, b"\xef\xbb\xbf" + raw, a=STRING, b=STRING) == wanted
    assert known("csv", CSV, b"\xef\xbb\xbf" + raw, a=STRING, b=STRING) is None


def test_csv_without_casts_has_only_text() -> None:
    found = known("csv", CSV, b"1,2\n", a=STRING, b=BIGINT)
    assert found == {"a": ["1"], "b": DOUBTFUL}


J = {"a": BIGINT, "s": STRING, "d": DOUBLE, "m": decimal(6, 2), "b": BOOLEAN, "f": FLOAT}
NOTHING: dict[str, Any] = {name: [None] for name in J}


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b'{"a":1,"s":"x","d":1.5,"m":2.5,"b":true,"f":0.5,"x":{"a":7}}\n',
         {"a": [1], "s": ["x"], "d": [1.5], "m": [Decimal("2.5")], "b": [True], "f": [0.5]}),
        (b"{}\n", {}),
        (b'{"A":1}\n', {"a": [1]}),
        (b'{"\\u0061":1}\n', {"a": [1]}),
        (b'{"\xe2\x84\xaa":1}\n', {}),
        (b'{"a":1.0}\n', {"a": DOUBTFUL}),
        (b'{"a":"1","d":2}\n', {"a": DOUBTFUL, "d": [2.0]}),
        (b'{"a":1e3}\n', {"a": DOUBTFUL}),
        (b'{"a":99999999999999999999}\n', {"a": DOUBTFUL}),
        (b'{"s":1,"a":1,"b":true}\n', {"s": DOUBTFUL, "a": [1], "b": [True]}),
        (b'{"s":"\\ud800"}\n', {"s": DOUBTFUL}),
        (b'{"s":true,"m":"1.5","b":1}\n', {"s": DOUBTFUL, "m": DOUBTFUL, "b": DOUBTFUL}),
        (b'{"m":1.234}\n', {"m": DOUBTFUL}),
        (b'{"m":40000}\n', {"m": DOUBTFUL}),
        (b'{"m":9999.99}\n', {"m": [Decimal("9999.99")]}),
        (b'{"m":{"a":1}}\n', AMBIGUOUS),
        (b'{"b":"true"}\n', {"b": DOUBTFUL}),
        (b'{"s":{"a":1}}\n', AMBIGUOUS),
        (b'{"s":[]}\n', AMBIGUOUS),
        (b'{"s":1,"a":1}\n{"s":[1],"a":2}\n', AMBIGUOUS),
        (b'{"a":1,"a":2}\n', AMBIGUOUS),
        (b'{"a":1,"A":2}\n', AMBIGUOUS),
        (b'{"_col0":2}\n', AMBIGUOUS),
        (b'{"a":1}{"a":2}\n', AMBIGUOUS),
        (b'{"a":1}\n\n', AMBIGUOUS),
        (b' {"a":1}\n', AMBIGUOUS),
        (b'{"a":\n1}\n', AMBIGUOUS),
        (b'{"x":NaN}\n', AMBIGUOUS),
        (b'{"a":01}\n', AMBIGUOUS),
        (b'[{"a":1}]\n', AMBIGUOUS),
        (b'{"a":1} x\n', AMBIGUOUS),
        (b'{"a":1,}\n', AMBIGUOUS),
        (b'{"s":"a\tb"}\n', AMBIGUOUS),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"A":1}\n', AMBIGUOUS),
    ],
)  # fmt: skip
def test_json(raw: bytes, wanted: Any) -> None:
    found = known("json", JSON, raw, **J)
    assert found == (None if wanted is None else {**NOTHING, **wanted})


MIXED = b'{"m":1,"a":1}\n{"m":"x","a":2}\n'
"""A file whose column ``m`` has values of two JSON types."""


@pytest.mark.parametrize("type", [BIGINT, STRING, DOUBLE, BOOLEAN])
def test_a_column_of_mixed_values_leaves_the_others_known(
    monkeypatch: pytest.MonkeyPatch, type: Type
) -> None:
    assert known("json", JSON, MIXED, m=type, a=BIGINT) == {"m": DOUBTFUL, "a": [1, 2]}
    monkeypatch.setattr("bridge.formats.lines.lines.BLOCK", len(MIXED))
    monkeypatch.setattr("bridge.formats.lines.lines._LEAST", 1)
    many = MIXED + b'{"m":5,"a":3}\n{"m":null,"a":4}\n'
    assert known("json", JSON, many, m=type, a=BIGINT) == {"m": DOUBTFUL, "a": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    "later",
    ['"m":{"a":7}', '"m" : [1]', '"M":{"a":7}', '"\\u006d":{"a":7}', '"x":{"y":[1]},"m":[1]'],
)
def test_an_object_in_a_column_of_mixed_values_makes_the_file_ambiguous(
    monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    """Hive takes the object's end for that of the line, so that other columns have other values."""
    monkeypatch.setattr("bridge.formats.lines.lines.BLOCK", len(MIXED))
    monkeypatch.setattr("bridge.formats.lines.lines._LEAST", 1)
    rest = "".join("{" + f'{member},"a":3' + "}\n" for member in ('"m":1', later)).encode()
    assert known("json", JSON, MIXED + rest, m=BIGINT, a=BIGINT) is AMBIGUOUS
    assert known("json", JSON, rest, m=Type(Kind.CHAR, length=3), a=BIGINT) is AMBIGUOUS


@pytest.mark.parametrize(
    ("declared", "tame", "deep"),
    [
        ("map<string,string>", '{"x":"y"}', '{"x":{"z":0},"a":7}'),
        ("struct<x:string>", '{"X":"y","q":{"z":0}}', '{"X":{"z":0},"a":7}'),
        ("array<string>", '["x","]"]', '["]",{"k":[1]}]'),
        ("array<struct<x:int>>", '[{"x":1},{"q":[1]}]', '[{"x":1},{"x":[1]}]'),
        ("map<string,array<int>>", '{"x":[1]}', '{"x":[[1]]}'),
    ],
)
def test_an_object_too_deep_in_a_nested_column_makes_the_file_ambiguous(
    declared: str, tame: str, deep: str
) -> None:
    """Hive 2.3.10 and 3.1.3 read ``a`` as 7, or as NULL."""
    columns = {"o": parse_hive_type(declared), "a": BIGINT}
    lines = [f'{{"o":{tame},"a":1}}', '{"o":null,"a":1}', '{"o":5,"a":1}', '{"a":1}']
    raw = "".join(f"{line}\n" for line in lines).encode()
    assert known("json", JSON, raw, **columns) == {"o": DOUBTFUL, "a": [1] * 4}
    assert known("json", JSON, raw + f'{{"o":{deep},"a":1}}\n'.encode(), **columns) is AMBIGUOUS
    assert known("json", JSON, f'{{"O":{deep},"a":1}}\n'.encode(), **columns) is AMBIGUOUS
    twice = f'{{"o":{deep},"a":1,"o":null}}\n'.encode()
    assert known("json", JSON, twice, **columns) is AMBIGUOUS


def test_an_object_in_a_column_of_objects_is_passed_over() -> None:
    members = parse_hive_type("struct<k:int>")
    raw = b'{"o":{"k":1},"c":"x","a":1}\n'
    found = known("json", JSON, raw, o=members, c=Type(Kind.CHAR, length=3), a=BIGINT)
    assert found == {"o": DOUBTFUL, "c": DOUBTFUL, "a": [1]}


def test_keys_in_another_case_are_found_whether_or_not_lines_agree() -> None:
    lines = b'{"Id":1,"Other":true}\n{"Id":2,"s":"Id"}\n'
    assert known("json", JSON, lines, id=BIGINT) == {"id": [1, 2]}
    assert known("json", JSON, lines + b'{"id":3}\n', id=BIGINT) == {"id": [1, 2, 3]}
    assert known("json", JSON, lines + b'{"ID":3}\n', id=BIGINT) == {"id": [1, 2, 3]}
    assert known("json", JSON, lines + b'{"Id":1,"id":3}\n', id=BIGINT) is None


def test_openx_reads_fewer_types_for_sure() -> None:
    properties = {"serialization.lib": "org.openx.data.jsonserde.JsonSerDe"}
    raw = b'{"a":1,"m":1.5}\n'
    assert known("json", properties, raw, a=BIGINT, m=decimal(6, 2)) == {"a": [1], "m": DOUBTFUL}
    assert known("json", {**properties, "mapping.a": "b"}, raw, a=BIGINT) is None


def test_text() -> None:
    types = {"a": BIGINT, "s": STRING, "v": Type(Kind.VARCHAR, length=2)}
    raw = b"1\x01x\x01ab\n\\N\x01\\N\x01\\N\n\x01\x01\n"
    assert known("text", TEXT, raw, **types) == {
        "a": [1, None, None], "s": ["x", None, ""], "v": ["ab", None, ""],
    }  # fmt: skip
    assert known("text", TEXT, b"+1\x01x\x01abc\n", **types) == {
        "a": DOUBTFUL, "s": ["x"], "v": DOUBTFUL,
    }  # fmt: skip
    assert known("text", {**TEXT, "escape.delim": "\\"}, raw, **types) is None
    assert (
        known("text", {**TEXT, "serialization.last.column.takes.rest": "true"}, raw, **types)
        is None
    )
    assert known("text", {**TEXT, "line.delim": "|"}, raw, **types) is None
    null = {**TEXT, "serialization.null.format": "", "field.delim": "9"}
    assert known("text", null, b"1\tx\n\t\n", a=BIGINT, s=STRING) == {
        "a": [1, None], "s": ["x", None],
    }  # fmt: skip


def test_compressed_files_are_read_whole_or_not_at_all() -> None:
    raw = b"1,2\n" * 1000
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(raw)
    zstd = sink.getvalue().to_pybytes()
    for suffix, whole in ((".gz", gzip.compress(raw)), (".bz2", bz2.compress(raw)), (".zst", zstd)):
        assert known("csv", CSV, whole, f"t/f{suffix}", a=STRING) == {"a": ["1"] * 1000}
        assert known("csv", CSV, whole[:-3], f"t/f{suffix}", a=STRING) is None
        assert known("csv", CSV, whole + b"x", f"t/f{suffix}", a=STRING) is None
        assert known("csv", CSV, b"", f"t/f{suffix}", a=STRING) is None
        assert known("csv", CSV, raw, f"t/f{suffix}", a=STRING) is None
        assert known("csv", CSV, whole, f"t/f{suffix.upper()}", a=STRING) is None
    for suffix in (".snappy", ".lz4", ".deflate", ".lzo"):
        assert known("csv", CSV, raw, f"t/f{suffix}", a=STRING) is None
    assert known("csv", CSV, raw, "t.gz/f.csv", a=STRING) == {"a": ["1"] * 1000}
