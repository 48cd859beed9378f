"""CSV with types: each value is TRY_CAST of its text, as Trino casts it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bridge.engines.trino.types import to_trino
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import parse_hive_type
from bridge.segments.commands.add import add_segment
from bridge.segments.commands.tables import create_table
from tests.engines.stack import Stack
from tests.engines.text_cases import SCALARS, VALUES
from tests.engines.text_tables import CSV, SCHEMA, TextTables
from tests.tiers import nightly

pytestmark = pytest.mark.full

ODD = (
    "", " ", "0", "1", "-1", "+1", "1.5", "-0", "TRUE", "tRuE", "T", "f", "yes", "nan", "NaN",
    "Infinity", "-Infinity", "1e400", "0x1p3", "1f", "1d", " 7 ", "\u00a07", "\u20037", "٣", "1_0",
    "9223372036854775807", "9223372036854775808", "127", "128", "-32769",
    "0.005", "0.0049999", "99999999.995", "123456789012345678901234567890.12345",
    "2024-02-29", "2023-02-29", "2024-2-9", " 2024-02-29 ", "-0044-03-15", "+12024-01-01",
    "12024-01-01", "0000-01-01", "1582-10-10", "2024-02-29 10:11", "2024-02-29 1:2:3.4",
    "2024-02-29 10:11:12.9999995", "2024-02-29 10:11:12.99999949", "2024-02-29 24:00:00",
    "2024-02-29 10:11:12 UTC", "2024-02-29 10:11:12 Europe/Berlin", "2024-02-29 10:11:12+05:30",
    "2024-02-29 02:30:00 Nowhere/Land", "2024-03-31 02:30:00 Europe/Berlin", "2024-02-29T10:11:12",
    "2024-02-29 10:11:12.123456789012345678", "2024-02-29 10:11:12.1234567890123456789",
    "999999999-01-01 00:00:00", "2024-02-29 10:", "2024-02-29 ", "abcdefgh", "日本語日本語",
    "\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600", "fal\u017fe", "\x00", "null",
    "ab   ",
)  # fmt: skip


@pytest.fixture(scope="module")
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TextTables]:
    yield TextTables(stack, tmp_path_factory.mktemp("typed"), "typed")


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "").replace('"', "") + '"'


def _mutated(rng: random.Random, value: str) -> str:
    at = rng.randrange(len(value) + 1)
    return value[:at] + rng.choice("0123456789-+.: eETZfd") + value[at + rng.randrange(2) :]


def test_each_value_is_cast_as_trino_casts_it(tables: TextTables) -> None:
    rng = random.Random(3)
    values = sorted({*ODD, *(v.replace("\\N", "") for some in VALUES.values() for v in some)})
    values = [v for v in values if not set(v) & {"\n", "\r"}]
    values += [_mutated(rng, rng.choice(values)) for _ in range(20_000 if nightly() else 500)]
    lines = [",".join([_quoted(v)] * len(SCALARS)) for v in values]
    # Fields in another order than the table's columns, and one that it does not have.
    names = [name for name, _ in SCALARS]
    order = rng.sample(names, len(names))
    directory = tables.files("all", {"a.csv": "\n".join(["line 1", *lines])})
    config = Config({"metastore.uri": Setting(tables.stack.metastore_uri, "test")})
    text = tables.table(
        "texts",
        [(name, "string") for name in order],
        CSV,
        directory,
        table_parameters={"skip.header.line.count": "1"},
    )
    root = (tables.root / "segments").as_uri()
    for bad in ("null", "error"):
        create_table(
            config,
            f"{SCHEMA}.typed_{bad}",
            format="csv",
            columns=SCALARS,
            properties={
                "csv.header": ",".join([*order, "more"]),
                "csv.header_lines": "0",
                "csv.bad_values": bad,
            },
            location=f"{root}/{bad}",
        )
    body = tables.files("body", {"a.csv": "\n".join(lines)})
    add_segment(config, f"{SCHEMA}.typed_null", paths=[body.as_uri()], local=True)
    casts = ", ".join(
        f"TRY_CAST({name} AS {to_trino(parse_hive_type(type_))})" for name, type_ in SCALARS
    )
    mine = tables.ask("bridge", f"SELECT {', '.join(names)} FROM {{t}}.typed_null")
    stock = tables.ask("hive", f"SELECT {casts} FROM {{t}}.{text}")
    assert not mine.error and not stock.error, (mine.error, stock.error)
    different = set(mine.rows) ^ set(stock.rows)
    assert mine.rows == stock.rows, sorted(different)[:6]
    good = tables.files("good", {"a.csv": ",".join(["1"] * len(SCALARS)) + "\n"})
    add_segment(config, f"{SCHEMA}.typed_error", paths=[good.as_uri()], local=True)
    found = tables.ask("bridge", "SELECT num, name FROM {t}.typed_error")
    assert found.rows == ['[1, "1"]'], found
    assert "record 1: " in tables.ask("bridge", "SELECT day FROM {t}.typed_error").error
