"""The law of files whose meaning the table declares: what is read is what both engines read.

Files are written from values, spellings and damage of all sorts. Each column that a reader gives
must hold, row by row, the value of a plain interpretation of the engines' rules; where engines may
differ, the reader must have left the column or the file out. Pruning must happen nevertheless.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from bridge.formats.lines.recipe import Recipe
from bridge.kernel.types import BIGINT, STRING, Type, parse_hive_type
from tests.support import text_engines
from tests.support.text_engines import DIFFER
from tests.support.text_files import TYPES, json_value, read, value
from tests.tiers import examples

FILES = examples(900, 900, 12_000)
OPENCSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
HCATALOG = "org.apache.hive.hcatalog.data.JsonSerDe"
_ODD_KEYS = (
    "c0", "c0", "c0", "C0", "\\u00630", "\\u00430", "_col1", "_COL1", "c\u212a", "c0\u017f",
    "c\\\\", "\\\"c0", "c0 ", "", "é", "É",
)  # fmt: skip
_MORE = (
    '"x":{"c0":1}', '"y":[1,{"c1":"}"}]', '"z":"C0: \\" : x"', '"c9":NaN', '"c9":[1,-Inf]',
    '"c9":["a", Infinity]', '"w":"C1" ', '"Key":1', '"Ünï":2', '"v":"{\\"C0\\":1}"',
    '"v":"Information: NaN"', '"v":"\\ud83d\\ude00"', '"v":"\\ude00"', '"v":"É\\\\" : 1',
    '"\\ud83d":1', '"ſ":1', '"c1\\\\":"C1"',
)  # fmt: skip
"""Members that are no columns."""
_SCALARS = ("1", '"x"', "true", "null", "2.5")
"""Values of a column in which writers have put all sorts."""
_NESTING = tuple(
    map(parse_hive_type, ("struct<x:string,y:array<int>>", "array<string>", "map<string,string>",
                          "array<struct<x:int>>", "map<string,array<int>>"))
)  # fmt: skip
_TAME = ('{"x":"1"}', '["a", "b"]', "[]", '[{"x":1}]', '{"Y":[1],"q":{"c0":1}}', '{"k":null}', "5")
_OBJECTS = (
    '{"x":{"z":0},"c0":7}', '[{"k":[1]}]', '{"y":[[1]]}', '{"X":[1],"c1":"a"}', '[{"x":{}}]',
    '{"k":{"c0":7}}', '{"k":[{"c0":1}]}',
)  # fmt: skip
"""Values of nested columns: with an object or a list no deeper than the type has one, or deeper."""
_NESTED = ('{"c0":1}', "[]", '[{"c1":"x"}]', '{"x":[2]}')
"""Values that make it unsure which members the line has."""
asked: Counter[str] = Counter()


def damaged(rng: random.Random, raw: bytes) -> bytes:
    """A file as it is, with other line ends, or with damage."""
    what = rng.random()
    if what < 0.6:
        return raw
    if what < 0.7:
        return raw.replace(b"\n", b"\r\n")
    if what < 0.74:
        return b"\xef\xbb\xbf" + raw
    if what < 0.78:
        return raw.replace(b"\n", b"\r", 1)
    if what < 0.84:
        return raw[: rng.randrange(len(raw) + 1)]
    at = rng.randrange(len(raw) + 1)
    return (
        raw[:at]
        + rng.choice(
            (b"\0", b"\xff", b'"', b"\\", b"\n", b"\r", b",", b"\n\n", b"'", b"{", b"}", b"\xc3")
        )
        + raw[at:]
    )


def judge(
    kind: str, recipe: Recipe, raw: bytes, rows: list[Any] | Any, uri: str = "file:///t/f"
) -> None:
    """Compares what is read with what engines read."""
    found = read(recipe, raw, uri)
    asked[f"{kind} files"] += 1
    if found is None:
        return
    asked[f"{kind} read"] += 1
    count, columns, loose = found
    assert rows is not DIFFER and all(row is not DIFFER for row in rows), (raw, rows)
    assert count == len(rows), raw
    for number, values in enumerate(columns):
        asked[f"{kind} columns"] += 1
        if values is None:
            continue
        asked[f"{kind} known"] += 1
        for row, mine in zip(rows, values, strict=True):
            theirs = row[number]
            if number in loose and mine is not None and theirs is not DIFFER:
                assert abs(mine - theirs) <= loose[number] * abs(theirs), (raw, mine, theirs)
            else:
                assert theirs is not DIFFER and mine == theirs, (recipe, raw, mine, theirs)


def _columns(rng: random.Random, types: Sequence[Type]) -> tuple[tuple[str, Type], ...]:
    return tuple((f"c{i}", rng.choice(types)) for i in range(rng.randrange(1, 5)))


def _recipe(format: str, columns: tuple[tuple[str, Type], ...], **properties: str) -> Recipe:
    named = {name.replace("__", "."): text for name, text in properties.items()}
    return Recipe(format, tuple(sorted(named.items())), columns)


def _packed(rng: random.Random, raw: bytes) -> tuple[bytes, str]:
    """The file, perhaps compressed, and its name."""
    what = rng.random()
    if what < 0.9:
        return raw, "file:///t/f"
    whole = gzip.compress(raw)
    if what < 0.95:
        return whole, "file:///t/f.gz"
    return whole[: rng.randrange(len(whole))], "file:///t/f.gz"


def _unpacked(raw: bytes, uri: str) -> bytes | None:
    if not uri.endswith(".gz"):
        return raw
    try:
        return gzip.decompress(raw) if raw else None
    except (EOFError, OSError, zlib.error):
        return None


def test_csv_is_read_as_both_engines_read_it() -> None:
    rng = random.Random(1)
    for _ in range(FILES):
        columns = _columns(rng, (STRING,))
        separator = rng.choice((",", ",", ";", "\t", "|"))
        quote, escape = rng.choice((('"', "\\"), ('"', "\\"), ("'", "\\"), ('"', "/")))
        width = max(1, len(columns) + rng.choice((0, 0, 0, 0, 1, -1)))
        odd = rng.choice((0, 0, 0.1))
        quoting = rng.choice(("never", "always", "some"))
        lines = []
        for _ in range(rng.randrange(0, 6)):
            fields = []
            for _ in range(max(1, width + rng.choice((0,) * 12 + (1, -1)))):
                text = value(rng, STRING, odd)
                if quoting != "never" and (quoting == "always" or rng.random() < 0.4):
                    if rng.random() < 0.05:
                        text += rng.choice((separator, quote * 2, quote, escape + quote, escape))
                    text = f"{quote}{text}{quote}"
                fields.append(text)
            lines.append(separator.join(fields))
        raw = "".join(line + "\n" for line in lines).encode()
        if rng.random() < 0.3:
            raw = raw.removesuffix(b"\n")
        raw, uri = _packed(rng, damaged(rng, raw))
        header = rng.choice((0, 0, 0, 1, 2))
        recipe = _recipe(
            "csv", columns, serialization__lib=OPENCSV, separatorChar=separator, quoteChar=quote,
            escapeChar=escape, skip__header__line__count=str(header),
        )  # fmt: skip
        plain = _unpacked(raw, uri)
        lines_read = DIFFER if plain is None else text_engines.lines_of(plain, header)
        rows = (
            DIFFER
            if lines_read is DIFFER
            else [
                text_engines.csv_row(line, len(columns), separator, quote, escape)
                for line in lines_read  # type: ignore[union-attr]
            ]
        )
        judge("csv", recipe, raw, rows, uri)


def test_delimited_text_is_read_as_both_engines_read_it() -> None:
    rng = random.Random(2)
    for _ in range(FILES):
        columns = _columns(rng, TYPES)
        separator = rng.choice(("\x01", ",", "\t", "|"))
        null = rng.choice(("\\N", "\\N", "\\N", "NULL", ""))
        escape = rng.choice((None, None, None, "\\"))
        odd = rng.choice((0, 0, 0, 0.15))
        lines = []
        for _ in range(rng.randrange(0, 6)):
            fields = [null if rng.random() < 0.1 else value(rng, type, odd) for _, type in columns]
            if rng.random() < 0.03:
                fields.append("more")
            lines.append(separator.join(fields))
        raw = "".join(line + "\n" for line in lines).encode()
        raw, uri = _packed(rng, damaged(rng, raw))
        properties = {"serialization__lib": LAZY, "serialization__null__format": null}
        if separator != "\x01":
            properties["field__delim"] = separator
        if escape:
            properties["escape__delim"] = escape
        recipe = _recipe("text", columns, **properties)
        plain = _unpacked(raw, uri)
        found = DIFFER if plain is None else text_engines.lines_of(plain, 0)
        types = [type for _, type in columns]
        rows = (
            DIFFER
            if found is DIFFER
            else [text_engines.text_row(line, types, separator, null, escape) for line in found]  # type: ignore[union-attr]
        )
        judge("text", recipe, raw, rows, uri)


@pytest.mark.parametrize("block", [None, 60])
def test_json_is_read_as_both_engines_read_it(
    monkeypatch: pytest.MonkeyPatch, block: int | None
) -> None:
    if block is not None:  # a column may become doubtful before the file's end
        monkeypatch.setattr("bridge.formats.lines.lines.BLOCK", block)
        monkeypatch.setattr("bridge.formats.lines.lines._LEAST", 1)
    rng = random.Random(3)
    for _ in range(FILES):
        columns = _columns(rng, TYPES)
        if rng.random() < 0.2:
            columns = (*columns, ("n", rng.choice(_NESTING)))
        odd = rng.choice((0, 0, 0, 0.1))
        keys = rng.choice(("plain", "plain", "plain", "upper", "mixed", "odd"))
        mixed = rng.choice(("", "", "", "c0", "c1"))
        lines = []
        for _ in range(rng.randrange(0, 6)):
            members = []
            for name, type in columns:
                if rng.random() < 0.1:
                    continue
                key = name.upper() if keys == "upper" else name
                if keys == "mixed" and name != "c0":
                    key = name.upper()
                if keys == "odd":
                    key = rng.choice(_ODD_KEYS).replace("c0", name).replace("C0", name.upper())
                held = "null" if type.is_nested else json_value(rng, type, odd)
                if type.is_nested and rng.random() < 0.7:
                    held = rng.choice(_OBJECTS if rng.random() < 0.3 else _TAME)
                if name == mixed:
                    held = rng.choice((*_SCALARS, *_SCALARS, rng.choice(_NESTED)))
                members.append(f'"{key}":{held}')
            if rng.random() < 0.2:
                members.insert(rng.randrange(len(members) + 1), rng.choice(_MORE))
            if rng.random() < 0.03:
                members.append(rng.choice((*members, '"c0":1')))
            lines.append("{" + rng.choice((",", ",", ", ")).join(members) + "}")
        between = "\n" if rng.random() < 0.97 else rng.choice((" \n", "\n\n", "", ","))
        raw = "".join(line + between for line in lines).encode("utf-8", "surrogatepass")
        raw, uri = _packed(rng, damaged(rng, raw))
        recipe = _recipe("json", columns, serialization__lib=HCATALOG)
        plain = _unpacked(raw, uri)
        found = DIFFER if plain is None else text_engines.lines_of(plain, 0)
        rows = (
            DIFFER if found is DIFFER else [text_engines.json_row(line, columns) for line in found]  # type: ignore[union-attr]
        )
        judge("json", recipe, raw, rows, uri)


@pytest.mark.parametrize(
    "more",
    (
        "",
        ',"text":"Information É \\u00e9 \\ud83d\\ude00 {\\"Key\\":1} C:\\\\Dir"',
        ',"userId":1,"Größe":2,"nested":{"innerKey":[1,null]}',
    ),
)
def test_plain_json_is_not_read_line_by_line(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.formats.lines.json_columns._SLOW", 0)
    lines = [f'{{"c0":{i},"firstName":"Ä{i}"{more}}}\n' for i in range(100)]
    columns = (("c0", BIGINT), ("firstname", STRING))
    found = read(_recipe("json", columns, serialization__lib=HCATALOG), "".join(lines).encode())
    assert found == (100, [list(range(100)), [f"Ä{i}" for i in range(100)]], {})


def test_empty_keys_hide_no_capital_one_of_a_later_line() -> None:
    lines = [*(['{"x":0}'] * 60), *(['{"":0,"C0":-5}'] * 2)]
    recipe = _recipe("json", (("c0", BIGINT),), serialization__lib=HCATALOG)
    found = read(recipe, "".join(f"{line}\n" for line in lines).encode())
    assert found == (62, [[None] * 60 + [-5] * 2], {})


def test_a_capital_key_beyond_ascii_is_in_doubt_also_where_all_keys_are_columns() -> None:
    recipe = _recipe("json", (("é", BIGINT),), serialization__lib=HCATALOG)
    assert read(recipe, '{"É":1}\n'.encode()) is None


def test_files_are_read_and_columns_are_known() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for kind in ("csv", "text", "json"):
        assert asked[f"{kind} read"] > asked[f"{kind} files"] * 0.3, asked
        assert asked[f"{kind} known"] > asked[f"{kind} columns"] * 0.6, asked
