"""The law of names: a file is left out only if no engine's way to find a column shows a match.

Engines ignore the case of names in different ways. Trino and Hive 4 compare names in lower case,
Hive before 4 and Trino within structs one letter after the other: there ``ſ`` is ``s``, ``ı`` and
``İ`` are ``i``. Where a file has several such columns, Hive before 4 takes the first, Hive 4 the
last, and Trino the one in lower case.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.bind import bind
from bridge.expression.nodes import Literal, Op, Predicate, Reference
from bridge.expression.prune import prune
from bridge.index.kinds.definition import IndexSettings, column_text
from bridge.index.kinds.registry import kind
from bridge.kernel.types import BIGINT, TRINO, Field, struct
from bridge.table.model import Column
from tests.support.lake import Lake
from tests.tiers import examples

TABLES = examples(4, 4, 60)
FILES = 60
NAMES = ("s", "i", "k", "sinif", "kis", "σ", "μ", "é", "ß", "i\u0307", "a", "ik")
ALIKE = ("sSſ", "kK\u212a", "iIıİ", "σΣς", "μΜµ", "éÉ", "ß", "aA", "nN", "fF", "zZ", "\u0307")
"""Letters that are one letter to a comparison that goes letter by letter."""
GROUP = {letter: group for group in ALIKE for letter in group}
LOWER = {"S": "s", "K": "k", "\u212a": "k", "I": "i", "İ": "i\u0307", "Σ": "σ", "Μ": "μ"}
LOWER |= {"É": "é", "A": "a", "N": "n", "F": "f"}
asked: Counter[str] = Counter()


def respelled(rng: random.Random, name: str) -> str:
    """The name in letters that may pass for its own."""
    if rng.random() < 0.5:
        return name
    found = "".join(rng.choice(GROUP[letter]) for letter in name)
    return found.replace("i\u0307", "İ") if rng.random() < 0.2 else found


def in_lower_case(name: str) -> str:
    return "".join(LOWER.get(letter, letter) for letter in name)


def letter_by_letter(one: str, other: str) -> bool:
    return [GROUP[letter] for letter in one] == [GROUP[letter] for letter in other]


def readings(name: str, held: dict[str, list[Any]], rows: int) -> Iterator[list[Any]]:
    """What engines may read as the column."""
    by_lower = [v for stored, v in held.items() if in_lower_case(stored) == name]
    by_letter = [v for stored, v in held.items() if letter_by_letter(stored, name)]
    nothing = [None] * rows
    yield by_lower[-1] if by_lower else nothing
    yield by_letter[0] if by_letter else nothing
    yield held.get(name) or (by_lower[0] if by_lower else nothing)


def satisfied(predicate: Predicate, values: list[Any]) -> bool:
    match predicate.op:
        case Op.IS_NULL:
            return None in values
        case Op.IS_NOT_NULL:
            return any(v is not None for v in values)
    wanted = [v.value for v in predicate.literals]
    known = [v for v in values if v is not None]
    if predicate.op is Op.GT:
        return any(v > wanted[0] for v in known)
    return any(v in wanted for v in known)


def asks(rng: random.Random, name: tuple[str, ...]) -> Predicate:
    op = rng.choice((Op.EQ, Op.IN, Op.GT, Op.IS_NULL, Op.IS_NOT_NULL))
    count = {Op.EQ: 1, Op.IN: 3, Op.GT: 1}.get(op, 0)
    literals = tuple(Literal(rng.randrange(30), BIGINT) for _ in range(count))
    return Predicate(op, Reference(name), literals)


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.parametrize("nested", (False, True), ids=("columns", "fields"))
@pytest.mark.rule("48")
def test_no_spelling_of_a_name_hides_a_row(number: int, nested: bool, tmp_path: Path) -> None:
    rng = random.Random(f"{number} {nested}")
    names = rng.sample(NAMES, 3)
    fields = [Field(name, BIGINT) for name in names]
    columns = [Field("r", struct(*fields))] if nested else fields
    lake = Lake(tmp_path, tuple(Column(f.name, f.type) for f in columns))
    files: list[tuple[int, dict[str, list[Any]]]] = []
    for i in range(FILES):
        rows = rng.randint(1, 3)
        spelled = {respelled(rng, rng.choice(names)) for _ in range(rng.randint(0, 4))} or {"zz"}
        held = {
            n: [rng.choice((None, *[rng.randrange(30)] * 4)) for _ in range(rows)]
            for n in sorted(spelled)
        }
        order = rng.sample(list(held), len(held))
        held = {n: held[n] for n in order}
        arrays = [pa.array(v, pa.int64()) for v in held.values()]
        table = pa.table(arrays, names=list(held))
        if nested:
            table = pa.table({"r": pa.StructArray.from_arrays(arrays, list(held))})
        lake.write(f"f{i:03}", table)
        files.append((rows, held))
    paths = [("r", name) if nested else (name,) for name in names]
    definitions = [
        kind(name).define(column_text(path)) for path in paths for name in ("values", "bloom")
    ]

    def settings(held: IndexSettings) -> IndexSettings:
        return held.adding(definitions)

    assert not lake.build(settings=settings).failed
    index = lake.snapshot()
    statistics = index.statistics(columns, TRINO)
    every = np.arange(FILES)
    for _ in range(60):
        path = rng.choice(paths)
        predicate = asks(rng, path)
        bound = bind(predicate, columns, (), TRINO)
        never = {"minmax": prune(bound, statistics, TRINO).never}
        for opened in index.kinds:
            if opened.concerns(bound):
                found = opened.never(bound, every, TRINO)
                assert opened.problem is None, opened.problem
                if found is not None:
                    never[opened.name] = found
        for i, (rows, held) in enumerate(files):
            matches = any(satisfied(predicate, v) for v in readings(path[-1], held, rows))
            for name, mask in never.items():
                assert not (mask[i] and matches), (name, predicate, held)
        asked["pairs"] += FILES
        asked["never"] += int(np.logical_or.reduce(list(never.values())).sum())


def test_names_were_found_and_files_left_out() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["never"] > asked["pairs"] // 4, asked
