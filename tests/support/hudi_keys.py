"""Questions about keys and values of Hudi tables, and what each answer has to have."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bridge.formats.hudi.bloom_filters import BloomFilter, bits_of
from tests.fixtures.hudi.text import encode_table


def ask_for_keys(luck: random.Random) -> str:
    """A condition about the columns that recipes of record indexes and bloom filters write."""

    def one() -> str:
        keys = [luck.randrange(64) for _ in range(luck.choice((1, 1, 3)))]
        name = luck.choice(("id", "name", "_hoodie_record_key", "price"))
        texts = {"id": "{}", "name": "'k{:03}'", "price": "{}", "_hoodie_record_key": "'{}'"}
        form = luck.choice(("'{}'", "'k{:03}'")) if name == "_hoodie_record_key" else texts[name]
        return compare(luck, name, [form.format(key) for key in keys])

    return luck.choice((one(), one(), f"{one()} AND {one()}", f"{one()} OR {one()}"))


def compare(luck: random.Random, name: str, values: list[str]) -> str:
    """A comparison of a column with literals."""
    if len(values) > 1:
        return f'"{name}" IN ({", ".join(values)})'
    return f'"{name}" {luck.choice(("=", "=", "=", "<>"))} {values[0]}'


def require_all_rows(
    table: Any, luck: random.Random, ask: Callable[[random.Random], str], rounds: int, **read: Any
) -> int:
    """Compares scans with those without pruning; returns how many files were skipped."""
    skipped = 0
    for _ in range(rounds):
        asked = ask(luck)
        scan = table.scan(asked, **read)
        every = table.scan(asked, pruning=False, **read).to_arrow()
        assert encode_table(scan.to_arrow()) == encode_table(every), (asked, read)
        report = scan.explain()
        skipped += report.files_total - report.files_kept
    return skipped


def without_each(root: Path, files: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Each file, and where the table is without it: a place that no session has opened."""
    for at, lost in enumerate(files):
        content = lost.read_bytes()
        lost.unlink()
        moved = root.rename(root.with_name(f"{root.name}-{at}"))
        yield lost, moved
        moved.rename(root)
        lost.write_bytes(content)


def lacks(filter: BloomFilter, key: str) -> bool:
    """Whether the key is surely not in the file of a filter, bit by bit."""
    bits = bits_of(key.encode(), filter.hashes, filter.size)
    return not any(all(row[bit >> 3] >> (bit & 7) & 1 for bit in bits) for row in filter.rows)
