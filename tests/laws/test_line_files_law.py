"""The law asked of tables of lines: byte order marks, header and footer lines, line ends, packing.

Each file's bytes are decoded in every way in which Trino or Hive might read them: with and without
a mark, with and without lines left out at the end. A file in which one of these readings satisfies
the predicate is read, by Trino's plans and by Hive's list of skippable files.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.engines.hive.declaration import parse_declaration
from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle, Row
from bridge.expression.fold import FALSE
from bridge.expression.nodes import And, Call, Expression, Not, Or
from bridge.kernel.types import BIGINT, DATE, DOUBLE, HIVE, STRING, TRINO, Field, Semantics, Type
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.table.hive_properties import FOOTER_LINES, HEADER_LINES, INPUT_FORMAT, SERDE
from bridge.table.model import Column
from tests.support import text_engines
from tests.support.declared import Declared
from tests.support.functions import random_call, random_predicate
from tests.support.kinds_law import RowsOracle
from tests.support.lake import NAME, kept
from tests.support.strategies import Table, expression
from tests.support.text_engines import DIFFER
from tests.tiers import examples

TABLES = examples(12, 12, 120)
FILES, PREDICATES = 40, 25
MARK = "\ufeff"
SERDES = {
    "csv": "org.apache.hadoop.hive.serde2.OpenCSVSerde",
    "text": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "json": "org.apache.hive.hcatalog.data.JsonSerDe",
}
LINES = "org.apache.hadoop.mapred.TextInputFormat"
WORDS = {
    STRING: ("a", "Ab", "", "é", f"{MARK}a", "x y", "c0", "12", "zz", "Z"),
    BIGINT: ("0", "-1", "7", "42", "12", "900"),
    DOUBLE: ("0.5", "-2.25", "12", "100.125"),
    DATE: ("2024-02-29", "1999-12-31", "2012-12-12"),
}
MARKS = ("none",) * 5 + ("start", "start", "start", "twice", "row", "field", "utf-16", "alone")
_EPOCH = datetime.date(1970, 1, 1)
_MOST = 40
asked: Counter[str] = Counter()


@dataclass(frozen=True)
class Form:
    """How the files of a table are written and declared."""

    format: str
    columns: tuple[Field, ...]
    header: str | None
    footer: str | None

    @property
    def properties(self) -> dict[str, str]:
        found = {SERDE: SERDES[self.format], INPUT_FORMAT: LINES}
        if self.format == "text":
            found["field.delim"] = ","
        found |= {} if self.header is None else {HEADER_LINES: self.header}
        return found | ({} if self.footer is None else {FOOTER_LINES: self.footer})

    def line(self, rng: random.Random, words: Sequence[str]) -> str:
        if self.format == "json":
            named = zip(self.columns, words, strict=True)
            number = {BIGINT, DOUBLE}
            members = [f'"{c.name}":{w if c.type in number else json.dumps(w)}' for c, w in named]
            return "{" + ",".join(members) + "}"
        if self.format == "csv" and rng.random() < 0.6:
            return ",".join(f'"{w}"' if rng.random() < 0.7 else w for w in words)
        return ",".join(words)

    def row(self, line: bytes) -> list[Any]:
        types = [c.type for c in self.columns]
        if self.format == "csv":
            return text_engines.csv_row(line, len(types), ",", '"', "\\")
        if self.format == "text":
            return text_engines.text_row(line, types, ",", "\\N", None)
        found = text_engines.json_row(line, [(c.name, c.type) for c in self.columns])
        return [DIFFER] * len(types) if found is DIFFER else found  # type: ignore[return-value]


def form(rng: random.Random) -> Form:
    format = rng.choice(("csv", "csv", "text", "json"))
    types = [STRING] * 3 if format == "csv" else rng.sample((STRING, BIGINT, DOUBLE, DATE), 3)
    columns = tuple(Field(f"c{i}", t) for i, t in enumerate(types))
    header = rng.choice((None, "0", "1", "1", "1", "2", "3"))
    return Form(format, columns, header, rng.choice((None,) * 8 + ("0", "1", "2")))


def written(rng: random.Random, of: Form) -> tuple[bytes, str]:
    """A file's bytes, and where it has a byte order mark."""
    mark = rng.choice(MARKS)
    few = {c: rng.sample(WORDS[c.type], rng.randint(1, 2)) for c in of.columns}
    names = [c.name for c in of.columns]
    heads = [
        rng.choice((",".join(names), ",".join(f'"{n}"' for n in names), "", "a,7,12", '"a\n",b'))
        for _ in range(int(of.header or 0) + rng.choice((0, 0, 0, 0, 1, -1)))
    ]
    rows = [[rng.choice(few[c]) for c in of.columns] for _ in range(rng.choice((0, 1, 2, 3, 5)))]
    if mark == "field" and rows:
        place = rng.randrange(len(rows[-1]))
        rows[-1][place] = rows[-1][place][:1] + MARK + rows[-1][place][1:]
    body = [of.line(rng, row) for row in rows]
    if mark == "row" and body:
        body[0] = MARK + body[0]
    if rng.random() < 0.05 and body:
        body[-1] = rng.choice(('"a\nb",7,12', "", "a,b\0", "a,7,12,x", "a", '{"c0":'))
    if rng.random() < 0.1:
        body += ["total,3,"] * int(of.footer or 1)
    ends = rng.choice((("\n",), ("\n",), ("\r\n",), ("\n", "\r\n"), ("\n", "\n", "\n", "\r")))
    text = "".join(line + rng.choice(ends) for line in (*heads, *body))
    if rng.random() < 0.3:
        text = text.removesuffix("\n")
    if mark in ("start", "twice"):
        text = (MARK if mark == "start" else MARK * 2) + text
    if mark == "alone":
        text = MARK
    if mark == "utf-16":
        return text.encode(rng.choice(("utf-16", "utf-16-be"))), mark
    return text.encode(), mark


def packed(rng: random.Random, raw: bytes) -> tuple[bytes, str, bool]:
    """The file as it lies on disk, the end of its name, and whether it can be unpacked."""
    what = rng.random()
    if what < 0.6:
        return raw, "", True
    suffix, whole = rng.choice(
        (
            (".gz", gzip.compress(raw)),
            (".bz2", bz2.compress(raw)),
            (".zst", pa.compress(raw, "zstd", asbytes=True)),
            (".csv", raw),
        )
    )
    if suffix != ".csv" and what > 0.95:
        return whole[: rng.randrange(len(whole))], suffix, False
    return whole, suffix, True


def readings(of: Form, raw: bytes) -> Iterator[list[Any]]:
    """The rows that one of the engines may see, more than once."""
    starts = [raw]
    if raw.startswith(MARK.encode()):
        starts.append(raw[len(MARK.encode()) :])
    footer = int(of.footer or 0)
    for start in starts:
        lines = text_engines.split_lines(start)[int(of.header or 0) :]
        for line in lines + (lines[:-footer] if footer else []):
            yield of.row(line)


def rows(of: Form, raw: bytes, pools: dict[tuple[str, ...], list[Any]]) -> list[Row]:
    """All readings of a file, with every value where engines may differ."""
    found: dict[str, Row] = {}
    for values in readings(of, raw):
        choices: list[Sequence[Any]] = []
        for column, value in zip(of.columns, values, strict=True):
            some = [None, *pools[column.name,]] if value is DIFFER else [canonical(value)]
            choices.append(some)
        for several in itertools.islice(itertools.product(*choices), _MOST * 8):
            row = {(c.name,): v for c, v in zip(of.columns, several, strict=True)}
            found[repr(several)] = row
    return list(found.values())


def canonical(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (value - _EPOCH).days if isinstance(value, datetime.date) else value


@dataclass
class LineTable:
    """A table of files of lines, its index, and what its files may hold."""

    rng: random.Random
    of: Form
    lake: Declared
    pools: dict[tuple[str, ...], list[Any]]
    held: dict[str, list[Row] | None]
    marks: dict[str, str]

    @classmethod
    def make(cls, rng: random.Random, root: Path) -> LineTable:
        of = form(rng)
        columns = tuple(Column(c.name, c.type) for c in of.columns)
        lake = Declared(root, columns, format=of.format, properties=of.properties)
        pools = {(c.name,): [_value(w, c.type) for w in WORDS[c.type]] for c in of.columns}
        table = cls(rng, of, lake, pools, {}, {})
        for number in range(FILES):
            table.put(f"f{number:02}")
        return table

    def put(self, stem: str) -> None:
        raw, mark = written(self.rng, self.of)
        whole, suffix, sound = packed(self.rng, raw)
        for name in [n for n in self.held if n.partition(".")[0] == stem]:
            del self.held[name]
            self.lake.path(name).unlink()
        self.lake.put(stem + suffix, whole)
        self.held[stem + suffix] = rows(self.of, raw, self.pools) if sound else None
        self.marks[stem + suffix] = mark

    def data(self, files: Sequence[str]) -> Table:
        paths = {(c.name,): c.type for c in self.of.columns}
        return Table(self.of.columns, paths, self.pools, [self.held[n] or [] for n in files])

    def check(self, planner: Planner, asks: Expression, semantics: Semantics) -> None:
        """Holds a plan, or Hive's list, to what the files hold now."""
        files = sorted(self.held)
        data = self.data(files)
        matching = RowsOracle(data, Oracle(semantics, data.paths)).matching(asks)
        bound = bind(asks, self.of.columns, (), semantics)
        broken = set() if bound == FALSE else {n for n in files if self.held[n] is None}
        wanted = broken | {n for n, m in zip(files, matching, strict=True) if m}
        read = self.trino(planner, asks) if semantics is TRINO else self.hive(planner, asks)
        assert wanted <= read, (self.of, asks, [(n, self.held[n]) for n in wanted - read])
        for name in set(files) - read:
            header = "headed" if int(self.of.header or 0) else "plain"
            asked[f"{header} {self.marks[name]}"] += 1
            asked["never"] += 1
        asked["pairs"] += len(files)

    def trino(self, planner: Planner, asks: Expression) -> set[str]:
        return {uri.rpartition("/")[2] for uri in kept(planner, asks, semantics=TRINO)}

    def hive(self, planner: Planner, asks: Expression) -> set[str]:
        columns = [[c.name, str(c.type)] for c in self.of.columns]
        told = json.dumps({"properties": self.of.properties, "columns": columns})
        table = self.lake.table()
        found = list_skippable_files(
            table,
            planner.views.view(table),
            ScanRequest(NAME, asks, semantics=HIVE),
            recipe=parse_declaration(told),
        )
        states = zip(found.sizes.tolist(), found.modified.tolist(), strict=True)
        skipped = dict(zip(found.paths.to_pylist(), states, strict=True))
        return {name for name in self.held if self._state(name) != skipped.get(self._uri(name))}

    def _uri(self, name: str) -> str:
        return f"file://{self.lake.path(name)}"

    def _state(self, name: str) -> tuple[int, int]:
        found = self.lake.path(name).stat()
        return found.st_size, found.st_mtime_ns // 1000


def _value(word: str, type: Type) -> Any:
    if type == DATE:
        return canonical(datetime.date.fromisoformat(word))
    return word.encode() if type == STRING else int(word) if type == BIGINT else float(word)


def asks(rng: random.Random, data: Table, calls: dict[Call, Type], depth: int) -> Expression:
    if depth:
        parts = tuple(asks(rng, data, calls, depth - 1) for _ in range(2))
        found: Expression = rng.choice((And, Or))(parts)
        return Not(found) if rng.random() < 0.2 else found
    if calls and rng.random() < 0.25:
        return random_predicate(rng, data, calls)
    return expression(rng, data, depth=0)


@pytest.mark.parametrize("number", range(TABLES))
def test_no_line_is_lost(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    table = LineTable.make(rng, tmp_path)
    data = table.data(())
    calls: dict[Call, Type] = {}
    for path, type in data.paths.items():
        found = random_call(rng, path, type, data.pools[path])
        calls |= {} if found is None else {found: type}
    indexed = [f"expression={c.text}" for c in calls if c.function != "like"]
    kinds = [f"{rng.choice(('bloom', 'values'))}={c.name}" for c in table.of.columns]
    table.lake.bring_up(*indexed, *rng.sample(kinds, 2))
    planner = table.lake.planner()
    try:
        for step in range(PREDICATES):
            if step == PREDICATES - 6:  # the index knows these files in another state
                for stem in rng.sample([n.partition(".")[0] for n in sorted(table.held)], 6):
                    table.put(stem)
            wanted = asks(rng, data, calls, rng.choice((0, 0, 1, 2)))
            table.check(planner, wanted, TRINO)
            table.check(planner, wanted, HIVE)
    finally:
        planner.lister.close()


def test_files_were_left_out_whatever_marks_they_have() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["never"] > asked["pairs"] // 6, asked
    for what in ("plain none", "headed none", "headed start", "headed field"):
        assert asked[what] > 50, (what, asked)
