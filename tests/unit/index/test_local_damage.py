"""Damaged bytes in a planner's local copies: they are made again, and no process ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bridge.expression.text import parse_where
from bridge.index.registry import kind
from bridge.table.model import Column
from bridge.types import STRING
from tests.support.lake import Lake, kept

TEXTS = [f"{i % 7}{'abc'[i % 3] * (i % 5)}" for i in range(40)]
ASKED = ("s = '3b'", "s > '5'", "s LIKE '2%'", "s IS NULL")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("damaged"), (Column("s", STRING),))
    for i, text in enumerate(TEXTS):
        made.write(f"f{i:02}", {"s": [text]})
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
@pytest.mark.parametrize("pattern", ["kind-*.arrow", "[0-9a-f]*-*.arrow", "files.arrow"])
def test_27_flipped_bits(lake: Lake, pattern: str, seed: int) -> None:
    sound = answers(lake)
    assert any(len(found) < len(TEXTS) / 2 for found in sound)
    rng = random.Random(seed)
    path = rng.choice(copies(lake, pattern))
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 40))):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    try:
        found = answers(lake)
        if pattern != "files.arrow":  # its numbers have no checksum
            assert found == sound
    finally:
        path.unlink(missing_ok=True)
