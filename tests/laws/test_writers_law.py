"""The law asked of files whose writers state wrong bounds and counts.

Each writer's mistake is made again in the footers of real files. Some orders are not those of the
values, some statistics are of a part of the values, and some counts are counted more than once.
Indexes that an older reader made, which believed all this, are asked, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import Literal, Op, Predicate, Reference
from bridge.formats.parquet.writers import NO_DOUBTS
from bridge.kernel.types import BIGINT, STRING, Type, decimal
from bridge.table.model import Column
from tests.support import footers
from tests.support.lake import Lake, age, kept
from tests.tiers import examples

FILES = 60
TABLES = examples(1, 1, 6)
WIDE = decimal(20, 2)
COLUMNS = {"d": WIDE, "v": WIDE, "s": STRING, "c": STRING, "i": BIGINT}
_WIDTH = 9
Raw = Sequence[bytes | None]
Stated = tuple[bytes | None, bytes | None, int]
"""The least and the greatest value that a footer states, and its NULL count."""


def by_order(key: Callable[[bytes], Any], values: Raw) -> Stated:
    known = [v for v in values if v is not None]
    nulls = len(values) - len(known)
    if not known:
        return None, None, nulls
    return min(known, key=key), max(known, key=key), nulls


def by_value(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def by_signed_bytes(raw: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in raw]


def by_length(raw: bytes) -> tuple[int, bytes]:
    return len(raw), raw


def plain(raw: bytes) -> bytes:
    return raw


def pages(values: Raw) -> list[Raw]:
    return [values[i : i + 2] for i in range(0, len(values), 2)]


def arrow_2(column: str, values: Raw) -> Stated | None:
    return by_order(by_signed_bytes, values) if column in "dv" else None


def arrow_3(column: str, values: Raw) -> Stated | None:
    found = arrow_2(column, values)
    if column != "c":
        return found
    lower, upper, _ = by_order(plain, values[: (len(values) + 1) // 2])
    return lower, upper, 0


def arrow_5(column: str, values: Raw) -> Stated | None:
    return arrow_3(column, values) if column == "c" else None


def rust_5(column: str, values: Raw) -> Stated | None:
    return by_order(by_length, values) if column in "sc" else rust_58(column, values)


def rust_58(column: str, values: Raw) -> Stated | None:
    return by_order(plain, values) if column == "v" else None


def polars(column: str, values: Raw) -> Stated | None:
    """Bounds of pages are right, and merged as plain bytes; NULLs are counted once per page."""
    if column == "v":
        return None
    order = by_value if column in "di" else plain
    found = [by_order(order, page) for page in pages(values)]
    lows = [low for low, _, _ in found if low is not None]
    highs = [high for _, high, _ in found if high is not None]
    nulls = sum(nulls for _, _, nulls in found) * len(found)
    merged = plain if column == "d" else order
    if not lows:
        return None, None, nulls
    low, high = min(lows, key=merged), max(highs, key=merged)
    # A writer may be told to leave bounds out; then a count can stand alone.
    return (low, high, nulls) if len(values) % 2 else (None, None, nulls)


def arrow2(column: str, values: Raw) -> Stated | None:
    if column == "v":
        return None
    return by_order(by_value if column in "di" else plain, pages(values)[-1])


def hyparquet(column: str, values: Raw) -> Stated | None:
    """Long text is cut, at the upper bound too."""
    if column not in "sc":
        return None
    low, high, nulls = by_order(plain, values)
    return low, None if high is None else high[:2], nulls


WRITERS: dict[str, Callable[[str, Raw], Stated | None]] = {
    "parquet-cpp version 1.5.1-SNAPSHOT": arrow_3,
    "parquet-cpp-arrow version 3.0.0": arrow_3,
    "parquet-cpp-arrow version 5.0.0": arrow_5,
    "parquet-cpp-arrow version 11.0.0": arrow_5,
    "parquet-rs version 5.0.0": rust_5,
    "parquet-rs version 58.3.0": rust_58,
    "another writer": rust_58,
    "Polars": polars,
    "Arrow2 - Native Rust implementation of Arrow": arrow2,
    "hyparquet": hyparquet,
}
BARE = "parquet-cpp-arrow version 11.0.0"
"""A program in C++ that leaves no Arrow schema, so that no file tells which columns were coded."""
TEXTS = ("a", "ab", "abc", "abd", "b", "ba", "lexington", "reading", "zz", "")
SHORT = (5, 200, 300, 1536, 70_000)
DIGITS = (0, 5, 100, 200, 300, 1536, 65_535, 70_000, -1, -5, -200, -300, -70_000, 10**19, -(10**19))


def rows(rng: random.Random) -> list[dict[str, Any]]:
    nulls = rng.choice((0.0, 0.3, 0.5))
    texts, digits = rng.sample(TEXTS, 3), rng.sample(rng.choice((DIGITS, SHORT)), 4)

    def one() -> dict[str, Any]:
        pools = {"d": digits, "v": digits, "s": texts, "c": texts, "i": range(-3, 40, 7)}
        return {c: None if rng.random() < nulls else rng.choice(p) for c, p in pools.items()}

    return [one() for _ in range(rng.choice((1, 2, 3, 4, 5, 6)))]


def spelled(column: str, value: Any) -> bytes | None:
    """A value's bytes as statistics have them."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if column == "i":
        return int(value).to_bytes(8, "big", signed=True)
    width = _WIDTH if column == "d" else (value.bit_length() // 8) + 1
    return int(value).to_bytes(width, "big", signed=True)


def written(path: Path, writer: str, held: list[dict[str, Any]], size: int) -> None:
    data = {name: [row[name] for row in held] for name in COLUMNS}
    wide = [None if v is None else Decimal(v).scaleb(-2) for v in data["d"]]
    table = pa.table(
        {
            "d": pa.array(wide, pa.decimal128(20, 2)),
            "v": pa.array([spelled("v", v) for v in data["v"]], pa.binary()),
            "s": pa.array(data["s"], pa.string()),
            "c": pa.array(data["c"], pa.string()).dictionary_encode(),
            "i": pa.array(data["i"], pa.int64()),
        }
    )
    pq.write_table(table, path, row_group_size=size, store_schema=writer != BARE)


def misstated(
    path: Path,
    writer: str,
    mistake: Callable[[str, Raw], Stated | None],
    held: list[dict[str, Any]],
    size: int,
) -> None:
    """Makes the footer that of another writer, with its mistakes."""
    data, footer = footers.take_apart(path.read_bytes())
    footers.set_to(footer, 6, footers.BINARY, writer.encode())
    varying = footers.elements(footer)[2]
    scale, precision = [1, footers.I32, WIDE.scale], [2, footers.I32, WIDE.precision]
    footers.set_to(varying, 6, footers.I32, 5)
    footers.set_to(varying, 7, footers.I32, WIDE.scale)
    footers.set_to(varying, 8, footers.I32, WIDE.precision)
    footers.set_to(varying, 10, footers.STRUCT, [[5, footers.STRUCT, [scale, precision]]])
    for number, group in enumerate(footers.groups(footer)):
        part = held[number * size : (number + 1) * size]
        for column, chunk in zip(COLUMNS, footers.get(group, 1)[1], strict=True):
            values = [spelled(column, row[column]) for row in part]
            stated = mistake(column, values)
            if stated is None and column == "v":  # Arrow saw plain bytes
                stated = by_order(by_value, values)
            if stated is None:
                continue
            low, high, nulls = stated
            if column == "i":
                low, high = (None if b is None else b[::-1] for b in (low, high))
            fields: footers.Struct = [[3, footers.I64, nulls]]
            if low is not None and high is not None:
                fields += [[5, footers.BINARY, high], [6, footers.BINARY, low]]
            footers.set_to(footers.get(chunk, 3), 12, footers.STRUCT, fields)
    path.write_bytes(footers.put_together(data, footer))
    age(path)


def truth(value: Any, op: Op, given: Any) -> bool:
    if op is Op.IS_NULL:
        return value is None
    if value is None:
        return False
    match op:
        case Op.EQ:
            return bool(value == given)
        case Op.NE:
            return bool(value != given)
        case Op.LT:
            return bool(value < given)
        case Op.GE:
            return bool(value >= given)
    return True


Held = dict[str, list[dict[str, Any]]]


def table_of(root: Path, writer: str, seed: int) -> tuple[Lake, Held]:
    """A table of files of one writer, and their rows by the name of the file."""
    rng = random.Random(f"{writer}{seed}")
    lake = Lake(root, tuple(Column(name, type) for name, type in COLUMNS.items()))
    held = {f"f{i:02}": rows(rng) for i in range(FILES)}
    for name, content in held.items():
        size = rng.choice((2, 3, 100))
        written(lake.path(name), writer, content, size)
        misstated(lake.path(name), writer, WRITERS[writer], content, size)
    return lake, held


def lost(lake: Lake, held: Held) -> tuple[set[str], int]:
    """Files that hold a matching row and are not read, and how often others are not."""
    planner = lake.planner()
    missing: set[str] = set()
    skipped = 0
    try:
        for column, type in COLUMNS.items():
            pool: Sequence[Any] = DIGITS if type == WIDE else TEXTS if type == STRING else range(9)
            for op in (Op.EQ, Op.NE, Op.LT, Op.GE, Op.IS_NULL, Op.IS_NOT_NULL):
                for given in pool if op not in (Op.IS_NULL, Op.IS_NOT_NULL) else (None,):
                    read = kept(planner, asked(column, type, op, given))
                    names = {uri.rpartition("/")[2] for uri in read}
                    matching = {
                        n for n, rs in held.items() if any(truth(r[column], op, given) for r in rs)
                    }
                    missing |= matching - names
                    skipped += len(held.keys() - names)
    finally:
        planner.lister.close()
    return missing, skipped


def asked(column: str, type: Type, op: Op, given: Any) -> Predicate:
    if given is None:
        return Predicate(op, Reference((column,)), ())
    value = given.encode() if isinstance(given, str) else given
    return Predicate(op, Reference((column,)), (Literal(value, type),))


@pytest.mark.rule("37")
@pytest.mark.parametrize("seed", range(TABLES))
@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_lost_for_a_writers_mistake(writer: str, seed: int, tmp_path: Path) -> None:
    lake, held = table_of(tmp_path, writer, seed)
    lake.build()
    missing, skipped = lost(lake, held)
    assert not missing
    if not writer.startswith(("Arrow2", "hyparquet")):  # nothing that they state is believed
        assert skipped > FILES


@pytest.mark.parametrize("writer", WRITERS)
def test_the_mistakes_are_real(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without doubts, every one of these writers would cost rows."""
    without_doubts(monkeypatch)
    lake, held = table_of(tmp_path, writer, 0)
    lake.build()
    missing, _ = lost(lake, held)
    assert missing


def without_doubts(patch: pytest.MonkeyPatch) -> None:
    for module in ("formats.parquet.statistics", "index.reading.trust"):
        patch.setattr(f"bridge.{module}.doubts_about", lambda _: NO_DOUBTS)
