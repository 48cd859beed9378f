"""What the planner lets Hive leave out by all kinds of indexes, against brute force.

The law: no file that the answer names holds a row that one of Hive's readers would return, whatever
index named it. Some texts are longer than their column's type.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from bridge.engines.hive.translate import translate
from bridge.expression.parsing.text import parse_call
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.kernel.types import (
    BIGINT,
    DATE,
    DOUBLE,
    HIVE,
    INTEGER,
    INTEGER_RANGE,
    STRING,
    TIMESTAMP,
    Kind,
    varchar,
)
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.index_view import IndexView
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.laws.test_hive_law import lengthened
from tests.support.hive_filters import Filter, Judge
from tests.support.kinds_law import leaf_names, write
from tests.support.lake import NAME, Lake
from tests.support.strategies import TYPES, Table, table
from tests.tiers import examples, seed

TABLES, FILES, ASKED = examples((4, 40, 60), (10, 60, 100), (60, 100, 200))
_OFTEN = (STRING, STRING, varchar(10), INTEGER, BIGINT, DATE, TIMESTAMP, DOUBLE)
_TEXT = ("lower({})", "upper({})", "substring({}, 1, 1)", "substring({}, 2)", "substring({}, 1, 2)")
_TIME = ("year({})", "month({})", "day({})", "quarter({})")
_NUMBER = ("{} % 7", "{} + 1", "{} * 10", "{} - 2")
_DAY = 86_400_000_000
# Values about which no engines differ, so that indexes of functions hold something.
_TAME = {
    Kind.DATE: (0, 31, 18_000, 19_783, 19_784, 2_000),
    Kind.TIMESTAMP: tuple(n * _DAY + 3_723_000_001 * n for n in (0, 1, 18_000, 19_783, 59, 60)),
    Kind.STRING: (b"", b"a", b"Ab", b"aB", b"abC7", b"Zz top"),
    Kind.VARCHAR: (b"", b"a", b"Ab", b"aB", b"abC7", b"Zz top"),
    **dict.fromkeys(INTEGER_RANGE, (0, 1, 7, -7, 100, -128)),
}
asked: Counter[str] = Counter()


def tamed(rng: random.Random, data: Table) -> None:
    """Exchanges the values of some columns for tame ones."""
    for path, type in data.paths.items():
        others = _TAME.get(type.kind)
        if others is None or rng.random() < 0.3:
            continue
        change = dict(zip(data.pools[path], others, strict=False))
        data.pools[path] = list(others)
        for row in (row for rows in data.files for row in rows):
            if row[path] is not None:
                row[path] = change[row[path]]  # type: ignore[index]


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.rule("40")
def test_no_row_of_hives_is_left_out_by_any_index(number: int, tmp_path: Path) -> None:
    rng = random.Random(seed(4000 + number))
    types = tuple(rng.choice(_OFTEN if rng.random() < 0.7 else TYPES) for _ in range(3))
    data = table(rng, types, FILES)
    tamed(rng, data)
    lengthened(rng, data)
    columns = tuple(Column(c.name, c.type) for c in data.columns)
    lake = Lake(tmp_path, columns)
    write(lake, data, rng)
    definitions = []
    for column, type in leaf_names(data):
        definitions += [kind(name).define(column) for name in rng.sample(("values", "bloom"), 1)]
        texts = _TEXT if type.is_text else _NUMBER if type.is_integer else ()
        texts = _TIME if type.kind in (Kind.DATE, Kind.TIMESTAMP) else texts
        for text in texts:
            assert parse_call(text.format(column)) is not None
            made = rng.choice(("expression", "bloom"))
            definitions.append(kind(made).define(text.format(column)))
    modes = {c: rng.choice(("none", "full")) for c, _ in leaf_names(data)}

    def settings(held: IndexSettings) -> IndexSettings:
        return held.adding(definitions).with_modes(modes)

    report = lake.build(settings=settings, nan=rng.choice(("footer", "scan")))
    assert not report.failed, report.failed
    view = IndexView(lake.snapshot())
    for _ in range(ASKED):
        of = Filter(rng, data, functions=0.7)
        tree = of.condition(rng.choice((0, 1, 2)))
        document = json.dumps({"version": 1, "expression": tree})
        request = ScanRequest(NAME, translate(document).expression, semantics=HIVE)
        found = list_skippable_files(lake.table(), view, request)
        assert not found.not_used and sum(n for _, n in found.by_index) == len(found.paths)
        named = {int(Path(uri).name.removeprefix("f")) for uri in found.paths.to_pylist()}
        for judge in (Judge(of, data, vectorised=each) for each in (True, False)):
            for i in named:
                for row in data.files[i]:
                    assert judge.truth(tree, row) is not True, (found.by_index, tree, row)
        assert "minmax" not in [name for name, _ in found.by_index[1:]]  # these come first
        for name, count in found.by_index:
            asked[name.partition("(")[0]] += count
        asked["files"] += FILES


def test_every_kind_did_name_files() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for name in ("minmax", "values", "bloom", "expression"):
        assert asked[name] > asked["files"] // 200, asked
