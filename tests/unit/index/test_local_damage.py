"""Damaged bytes in a planner's local copies: they are made again, and no process ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.kinds.registry import kind
from bridge.kernel.types import BIGINT, DOUBLE, STRING
from bridge.table.model import Column
from tests.support.lake import Lake, kept

TEXTS = [f"{i % 7}{'abc'[i % 3] * (i % 5)}" for i in range(40)]
ASKED = (
    "s = '3b'",
    "s > '5'",
    "s LIKE '2%'",
    "s IS NULL",
    "n = 7",
    "n < 2",
    "f > 3.5",
    "f IS NULL",
)
COPIES = ["kind-*.arrow", "[0-9a-f]*-*.arrow", "files.arrow", "meta.json", "[0-9a-f]*[0-9a-f].json"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    columns = Column("s", STRING), Column("n", BIGINT), Column("f", DOUBLE)
    made = Lake(tmp_path_factory.mktemp("damaged"), columns)
    for i, text in enumerate(TEXTS):
        made.write(f"f{i:02}", {"s": [text], "n": [i * 7 % 11], "f": [i % 5 / 1.0]})
    wanted = [kind(name).define("s") for name in ("bloom", "values")]
    made.build(settings=lambda held: held.adding(wanted))
    return made


def answers(lake: Lake) -> list[set[str]]:
    planner = lake.planner()
    try:
        return [kept(planner, parse_where(text)[0]) for text in ASKED]
    finally:
        planner.lister.close()


def copies(lake: Lake, pattern: str) -> list[Path]:
    return sorted((lake.root / "cache").glob(f"*/{pattern}"))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("pattern", COPIES)
def test_27_flipped_bits(lake: Lake, pattern: str, seed: int) -> None:
    sound = answers(lake)
    assert any(len(found) < len(TEXTS) / 2 for found in sound)
    rng = random.Random(f"{pattern}{seed}")
    path = rng.choice(copies(lake, pattern))
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 40))):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    try:
        found = answers(lake)
        if pattern == "files.arrow":  # a damaged path is that of no file
            assert all(a <= b for a, b in zip(sound, found, strict=True))
        else:
            assert found == sound
    finally:
        path.unlink(missing_ok=True)
