"""Files of lines, well formed and not, with the tables that describe them."""

from __future__ import annotations

import bz2
import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tests.engines.text_tables import (
    CSV,
    HIVE_JSON,
    JSON,
    OPENX_JSON,
    REGEX,
    TEXT,
    Columns,
)

Content = bytes | str
SCALARS: Columns = (
    ("flag", "boolean"),
    ("tiny", "tinyint"),
    ("small", "smallint"),
    ("num", "int"),
    ("big", "bigint"),
    ("r", "float"),
    ("d", "double"),
    ("dec", "decimal(10,2)"),
    ("wide", "decimal(30,5)"),
    ("day", "date"),
    ("ts", "timestamp"),
    ("name", "string"),
    ("code", "varchar(5)"),
    ("fixed", "char(4)"),
    ("raw", "binary"),
)
NESTED: Columns = (
    ("list", "array<int>"),
    ("tags", "map<string,int>"),
    ("st", "struct<a:int,b:string>"),
    ("deep", "array<struct<x:int,y:array<string>>>"),
)
THREE: Columns = (("a", "string"), ("b", "string"), ("c", "string"))
TYPED: Columns = (("a", "int"), ("b", "string"), ("c", "double"))

VALUES: dict[str, list[str]] = {
    "flag": ["true", "FALSE", "1", "0", "t", "yes", "", "\\N", " true"],
    "tiny": ["1", "-128", "128", "+7", " 8", "1.5", "x", "007"],
    "small": ["32767", "32768", "-1", "1e3", ""],
    "num": ["2147483647", "2147483648", "-2147483649", "12 ", "0x1F", "1_000", "٣"],
    "big": ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "+1", "1L"],
    "r": ["1.5", "NaN", "Infinity", "-Infinity", "1e39", "1e-50", "nan", "1f", "0x1p3", " 2.5 "],
    "d": ["1.5", "-0.0", "1e309", "NaN", "inf", "1d", ".5", "5.", "1,5"],
    "dec": ["1.5", "1.005", "99999999.99", "999999999.99", "-1.23", "1e2", "abc", " 1.5"],
    "wide": ["1.000005", "1234567890123456789012345.12345", "12345678901234567890123456.1", "+2"],
    "day": ["2024-02-29", "2023-02-29", "2024-2-9", "2024-02-29 10:00:00", "29.02.2024",
            "0001-01-01", "12024-01-01", "1582-10-10", " 2024-01-01 ", "2024-13-01", "-1-01-01"],
    "ts": ["2024-02-29 10:11:12.123456", "2024-02-29", "2024-02-29 10:11:12",
           "2024-02-29T10:11:12", "2024-02-29 10:11:12.123456789", "2024-02-29 25:00:00",
           "1700000000000", "2024-2-9 1:2:3", "29/02/2024 10:11", "2024-02-29 10:11:12Z"],
    "name": ["plain", "", "\\N", "NULL", "tab\\tin", "Zürich 日本 😀", " padded "],
    "code": ["abc", "abcdefg", "日本語日本語日本語", "\\N", ""],
    "fixed": ["ab", "abcdef", "ab  ", " ab", "日本語日本語"],
    "raw": ["YWJj", "not base64!", "", "\\N", "YWJ"],
    "list": ["1\x022\x023", "", "\\N", "1\x02x\x02", "7"],
    "tags": ["k\x031\x02m\x032", "k\x03x", "k", "", "\\N", "k\x031\x02k\x032"],
    "st": ["1\x02b", "1", "x\x02y\x02z", "", "\\N"],
    "deep": ["1\x03p\x04q\x022\x03r", "1", "", "\\N"],
}  # fmt: skip


def _rows(columns: Columns, separator: str) -> str:
    """Each value of each column once, beside values of the others."""
    most = max(len(VALUES[name]) for name, _ in columns)
    lines = [
        separator.join(VALUES[name][i % len(VALUES[name])] for name, _ in columns)
        for i in range(most)
    ]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class TextCase:
    """One table and its files."""

    name: str
    serde: str
    columns: Columns
    files: Mapping[str, Content]
    parameters: Mapping[str, str] = field(default_factory=dict)
    table_parameters: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _object(columns: Columns, **values: object) -> str:
    return json.dumps({name: values.get(name) for name, _ in columns}, ensure_ascii=False) + "\n"


_JSON_ODD = [
    {"flag": True, "tiny": 1, "small": 2, "num": 3, "big": 4, "r": 1.5, "d": 2.5, "dec": 1.25},
    {"flag": "true", "tiny": "1", "num": "12", "big": "13", "d": "1.5", "dec": "7.125"},
    {"flag": "yes", "day": "2024-02-29", "ts": "2024-02-29 10:11:12.123456", "raw": "YWJj"},
    {
        "wide": 1234567890123456789012345.5,
        "wide2": 1,
        "name": 17,
        "code": "abcdefgh",
        "fixed": "ab",
    },
    {"name": None, "code": None, "list": [1, 2, None], "tags": {"k": 1, "m": None}},
    {"st": {"a": 1, "b": "x", "c": 3}, "deep": [{"x": 1, "y": ["p", None]}, None]},
    {"NAME": "upper", "Num": 7},
    {},
]
_JSON_BAD = {
    "range": '{"tiny": 300}\n',
    "int_too_large": '{"num": 99999999999}\n',
    "fraction_in_int": '{"num": 1.5}\n',
    "text_in_int": '{"num": "abc"}\n',
    "bad_date": '{"day": "29.02.2024"}\n',
    "bad_time": '{"ts": "yesterday"}\n',
    "bool_in_int": '{"num": true}\n',
    "int_in_bool": '{"flag": 1}\n',
    "nested_in_scalar": '{"name": {"a": [1, {"b": null}]}, "code": [1, 2]}\n',
    "nested_in_int": '{"num": {"a": 1}}\n',
    "list_in_int": '{"num": [1]}\n',
    "scalar_in_list": '{"list": 7}\n',
    "scalar_in_struct": '{"st": "x"}\n',
    "list_in_struct": '{"st": [1, "x"]}\n',
    "two_keys": '{"num": 1, "num": 2, "NUM": 3}\n',
    "cut": '{"num": 1, "name": "x\n',
    "no_json": "this is no JSON\n",
    "more": '{"num": 1} and more\n',
    "two_objects": '{"num": 1}{"num": 2}\n',
    "array": '[{"num": 1}]\n',
    "scalar": "17\n",
    "null": "null\n",
    "empty_line": '{"num": 1}\n\n{"num": 2}\n',
    "blank_line": '{"num": 1}\n   \n',
    "comment": '{"num": 1 /* one */}\n',
    "quotes": "{'num': 1}\n",
    "bare": "{num: 1}\n",
    "trailing_comma": '{"num": 1,}\n',
    "control": '{"name": "a\tb"}\n',
    "escape": '{"name": "a\\u00e9\\ud83d\\ude00\\n\\x"}\n',
    "surrogate": '{"name": "\\ud83d"}\n',
    "utf8": b'{"name": "a\xff\xc3"}\n',
    "bom": b'\xef\xbb\xbf{"num": 1}\n',
    "nan": '{"d": NaN, "r": Infinity}\n',
    "leading_zero": '{"num": 007}\n',
    "exponent": '{"num": 1e2, "big": 1E2, "dec": 1e1}\n',
    "crlf": '{"num": 1}\r\n{"num": 2}\r\n',
    "pretty": '{\n"num": 1\n}\n',
}


def _json_cases() -> list[TextCase]:
    everything = (*SCALARS, *NESTED)
    odd = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _JSON_ODD)
    cases = []
    for label, serde in (("json", JSON), ("hivejson", HIVE_JSON), ("openx", OPENX_JSON)):
        cases.append(TextCase(f"{label}_values", serde, everything, {"a.json": odd}))
        for name, text in _JSON_BAD.items():
            files = {"a.json": '{"num": 5}\n', "b.json": text}
            cases.append(TextCase(f"{label}_{name}", serde, everything, files))
    lenient = {"ignore.malformed.json": "true"}
    cases += [
        TextCase(f"lenient_{name}", OPENX_JSON, everything, {"b.json": text}, lenient)
        for name, text in _JSON_BAD.items()
    ]
    cases += [
        TextCase(
            "openx_mapping",
            OPENX_JSON,
            TYPED,
            {"a.json": '{"other": 1, "x.y": "dotted", "c": 2}\n{"A": 3, "b": "plain"}\n'},
            {"mapping.a": "other", "dots.in.keys": "true"},
        ),
        TextCase(
            "openx_case",
            OPENX_JSON,
            TYPED,
            {"a.json": '{"A": 1, "b": "x"}\n{"a": 2, "B": "y"}\n'},
            {"case.insensitive": "false"},
        ),
        TextCase(
            "json_times",
            JSON,
            (("ts", "timestamp"),),
            {"a.json": '{"ts": "29/02/2024 10:11"}\n{"ts": "2024-02-29 10:11:12"}\n'},
            {"timestamp.formats": "dd/MM/yyyy HH:mm,millis"},
        ),
        TextCase(
            "json_header",
            JSON,
            TYPED,
            {"a.json": 'header\n{"a": 1}\n{"a": 2}\nfooter\n'},
            {},
            {"skip.header.line.count": "1", "skip.footer.line.count": "1"},
        ),
    ]
    return cases


_CSV_LINES = (
    'plain,two,3\n"quoted","with,comma","and ""quotes"""\nshort\nlong,1,2,3,4\n\n'
    '"open,b,c\n\'single\',\'x\',y\na"b,c"d",e\n "x" , y ,z\n\\"esc,a\\,b,c\\\\\n'
    '"a","b\nc","d"\n"",,""\n"a"b,c,d\n,,\n"'
)


def _csv_cases() -> list[TextCase]:
    def case(name: str, content: Content, **more: Mapping[str, str]) -> TextCase:
        return TextCase(f"csv_{name}", CSV, THREE, {"a.csv": content}, **more)

    return [
        case("lines", _CSV_LINES),
        case("crlf", _CSV_LINES.replace("\n", "\r\n")),
        case("cr", _CSV_LINES.replace("\n", "\r")),
        case("bom", b"\xef\xbb\xbfa,b,c\n"),
        case("bom_alone", b"\xef\xbb\xbf"),
        case("utf8", b"a,\xff\xfe,c\n\xc3,\xe2\x82,\xf0\x9f\n"),
        case("nul", b"a,\x00,c\n"),
        case("empty", b""),
        case("newline", b"\n"),
        case("newlines", b"\n\n\r\n\r"),
        case("no_newline", b"a,b,c\nd,e,f"),
        case("semicolons", "a;'b;c';d\n", parameters={"separatorChar": ";", "quoteChar": "'"}),
        case("tabs", 'a\t"b\tc"\td\n', parameters={"separatorChar": "\t"}),
        case("escape", 'a,"b#"c",d\n#,,\n', parameters={"escapeChar": "#"}),
        case("quote_escape", 'a,"b""c",d\n', parameters={"escapeChar": '"'}),
        case("same", "a,b,c\n", parameters={"separatorChar": '"'}),
        case("long_property", "a|b|c\n", parameters={"separatorChar": "||"}),
        case("table_property", "a;b;c\n", table_parameters={"separatorChar": ";"}),
        case("null_format", "a,\\N,NULL\n", parameters={"serialization.null.format": "NULL"}),
        case("header", "h1,h2,h3\na,b,c\n", table_parameters={"skip.header.line.count": "1"}),
        case("headers", "1\n2\n3\na,b,c\n", table_parameters={"skip.header.line.count": "3"}),
        case("header_alone", "h1,h2,h3\n", table_parameters={"skip.header.line.count": "1"}),
        case("header_only", "h1,h2,h3", table_parameters={"skip.header.line.count": "1"}),
        case("footer", "a,b,c\nend\n", table_parameters={"skip.footer.line.count": "1"}),
        case("footers", "a,b,c\nx\nend", table_parameters={"skip.footer.line.count": "2"}),
        case("only_footers", "x\nend", table_parameters={"skip.footer.line.count": "4"}),
        case("header_serde", "h\na,b,c\n", parameters={"skip.header.line.count": "1"}),
        case("header_bad", "h\na,b,c\n", table_parameters={"skip.header.line.count": "one"}),
        case("header_negative", "h\na,b\n", table_parameters={"skip.header.line.count": "-1"}),
        TextCase("csv_typed", CSV, TYPED, {"a.csv": "1,x,2.5\n"}),
        TextCase("csv_varchar", CSV, (("a", "varchar(3)"),), {"a.csv": "abcdef\n"}),
        TextCase(
            "csv_files",
            CSV,
            THREE,
            {"a.csv": "h\na,b,c\n", "b.csv": "", "c.csv": "h", "d.csv": "h\n", "e": "h\nx\ny\n"},
            {},
            {"skip.header.line.count": "1"},
        ),
        TextCase(
            "csv_wide",
            CSV,
            [(f"c{i}", "string") for i in range(1000)],
            {"a.csv": ",".join(str(i) for i in range(1000)) + "\n" + ",".join("x" * 999)},
        ),
    ]


def _text_cases() -> list[TextCase]:
    def case(
        name: str, content: Content, columns: Columns = TYPED, **more: Mapping[str, str]
    ) -> TextCase:
        return TextCase(f"text_{name}", TEXT, columns, {"a.txt": content}, **more)

    everything = (*SCALARS, *NESTED)
    bar = {"field.delim": "|"}
    return [
        case("values", _rows(everything, "\x01"), everything),
        case("bars", _rows(SCALARS, "|"), SCALARS, parameters=bar),
        case("ragged", "1|a\n2|b|2.5|more|and more\n\n|\n3\n", parameters=bar),
        case("crlf", "1|a|2.5\r\n2|b|3.5\r\n", parameters=bar),
        case("utf8", b"1|a\xff\xc3|2\n", parameters=bar),
        case("bom", b"\xef\xbb\xbf1|a|2\n", parameters=bar),
        case("escape", "1|a\\|b|2\n2|c\\\\|3\n3|\\n|4\n", parameters={**bar, "escape.delim": "\\"}),
        case(
            "null", "1|NIL|2\nNIL|b|NIL\n", parameters={**bar, "serialization.null.format": "NIL"}
        ),
        case("null_empty", "1||2\n|b|\n", parameters={**bar, "serialization.null.format": ""}),
        case(
            "null_table",
            "1|NIL|2\n",
            parameters=bar,
            table_parameters={"serialization.null.format": "NIL"},
        ),
        case(
            "rest",
            "1|a|b|c\n",
            (("a", "int"), ("b", "string")),
            parameters={**bar, "serialization.last.column.takes.rest": "true"},
        ),
        case("delim_number", "1\x042\x043\n", THREE, parameters={"field.delim": "4"}),
        case("format", "1,2,3\n", THREE, parameters={"serialization.format": ","}),
        case(
            "nested_delims",
            "1,2;a=1,b=2\n",
            (("l", "array<int>"), ("m", "map<string,int>")),
            parameters={"field.delim": ";", "collection.delim": ",", "mapkey.delim": "="},
        ),
        case(
            "nested_delims_hive",
            "1,2;a=1,b=2\n",
            (("l", "array<int>"), ("m", "map<string,int>")),
            parameters={"field.delim": ";", "colelction.delim": ",", "mapkey.delim": "="},
        ),
        case("line_delim", "1|a|2;2|b|3\n", parameters={**bar, "line.delim": ";"}),
        case(
            "encoding",
            "1|é|2\n".encode("latin-1"),
            parameters={**bar, "serialization.encoding": "ISO-8859-1"},
        ),
        case(
            "times",
            "29/02/2024 10:11\n1700000000000\n2024-02-29 01:02:03\nno\n",
            (("ts", "timestamp"),),
            parameters={"timestamp.formats": "dd/MM/yyyy HH:mm,millis"},
        ),
        case(
            "header",
            "head\n1|a|2\n2|b|3\n",
            parameters=bar,
            table_parameters={"skip.header.line.count": "1"},
        ),
        case(
            "both",
            "1\n2\n1|a|2\n2|b|3\nx\n",
            parameters=bar,
            table_parameters={"skip.header.line.count": "2", "skip.footer.line.count": "1"},
        ),
        case("no_newline", "1|a|2\n2|b|3", parameters=bar),
        case("empty", ""),
        case("wide", "|".join("7" * 1000), [(f"c{i}", "int") for i in range(1000)], parameters=bar),
    ]


def _regex_cases() -> list[TextCase]:
    lines = "2024-02-29 GET /a 200\nnothing\n2024-03-01 PUT /b x\n\n"
    pattern = {"input.regex": r"(\S+) (\S+) (\S+) (\S+)"}
    columns = (("day", "date"), ("verb", "string"), ("path", "varchar(2)"), ("code", "int"))
    types = tuple(c for c in SCALARS if c[0] != "raw")
    values = {"input.regex": r"([^|]*)\|" * (len(types) - 1) + r"([^|]*)"}
    return [
        TextCase("regex_log", REGEX, columns, {"a.log": lines}, pattern),
        TextCase("regex_none", REGEX, columns, {"a.log": lines}),
        TextCase("regex_groups", REGEX, columns, {"a.log": lines}, {"input.regex": r"(\S+) .*"}),
        TextCase("regex_broken", REGEX, columns, {"a.log": lines}, {"input.regex": "("}),
        TextCase("regex_types", REGEX, types, {"a.log": _rows(types, "|")}, values),
        TextCase(
            "regex_case",
            REGEX,
            (("verb", "string"),),
            {"a.log": "get\nGET\n"},
            {"input.regex": "(get)", "input.regex.case.insensitive": "true"},
        ),
    ]


def hadoop_blocks(codec: str, data: bytes) -> bytes:
    """One block in Hadoop's framing: its plain size, then each chunk with its size."""
    packed = pa.Codec(codec).compress(data, asbytes=True)
    return len(data).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed


def _compressed_cases() -> list[TextCase]:
    text = "".join(f"{i}|name {i}|{i / 4}\n" for i in range(5000)).encode()
    bar = {"field.delim": "|"}
    zstd = pa.Codec("zstd").compress(text, asbytes=True)
    files: dict[str, dict[str, bytes]] = {
        "gzip": {"a.gz": gzip.compress(text, mtime=0)},
        "gzip_twice": {"a.gz": gzip.compress(text, mtime=0) + gzip.compress(b"7|x|8\n", mtime=0)},
        "gzip_cut": {"a.gz": gzip.compress(text, mtime=0)[:-2000]},
        "gzip_end_cut": {"a.gz": gzip.compress(text, mtime=0)[:-4]},
        "gzip_bad": {"a.gz": b"no gzip at all"},
        "gzip_empty": {"a.gz": gzip.compress(b"", mtime=0)},
        "gzip_nothing": {"a.gz": b""},
        "gzip_bom": {"a.gz": gzip.compress(b"\xef\xbb\xbf1|a|2\n", mtime=0)},
        "bzip2": {"a.bz2": bz2.compress(text)},
        "bzip2_twice": {"a.bz2": bz2.compress(text) + bz2.compress(b"7|x|8\n")},
        "bzip2_cut": {"a.bz2": bz2.compress(text)[:-100]},
        "deflate": {"a.deflate": zlib.compress(text)},
        "deflate_cut": {"a.deflate": zlib.compress(text)[:-100]},
        "zstd": {"a.zst": zstd},
        "zstd_cut": {"a.zst": zstd[:-100]},
        "snappy": {"a.snappy": hadoop_blocks("snappy", text)},
        "snappy_cut": {"a.snappy": hadoop_blocks("snappy", text)[:-100]},
        "lz4": {"a.lz4": hadoop_blocks("lz4_raw", text)},
        "lz4_frame": {"a.lz4": pa.Codec("lz4").compress(text, asbytes=True)},
        "other": {"a.zip": text, "b.GZ": b"1|upper|2\n"},
        "mixed": {"a.gz": gzip.compress(text, mtime=0), "b.txt": text, "c.bz2": bz2.compress(text)},
    }
    return [TextCase(f"packed_{name}", TEXT, TYPED, found, bar) for name, found in files.items()]


CASES = (
    *_json_cases(),
    *_csv_cases(),
    *_text_cases(),
    *_regex_cases(),
    *_compressed_cases(),
)
