"""Page indexes, codecs and page versions: a reader that re-addresses or rewrites bytes must use
nothing that was said of the bytes before (correctness 29).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.engines.parquet_pages import COLUMNS, REFUSED, rows, write_all
from tests.engines.stack import Stack, register

pytestmark = pytest.mark.full

OFF = {"pruning_enabled": "false"}


@dataclass(frozen=True, slots=True)
class Pages:
    """Table laws.pages and its rows."""

    rows: pa.Table


@pytest.fixture(scope="module")
def pages(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    directory = tmp_path_factory.mktemp("pages")
    table = write_all(directory)
    register(stack, "pages", directory, COLUMNS)
    yield Pages(table)


WHERE = {
    "id < 10": pc.field("id") < 10,
    "id BETWEEN 1490 AND 1510": (pc.field("id") >= 1490) & (pc.field("id") <= 1510),
    "id >= 11990": pc.field("id") >= 11990,
    "c = 'text-1' AND id > 7000": (pc.field("c") == "text-1") & (pc.field("id") > 7000),
    "c = 'text-2'": pc.field("c") == "text-2",
    "n = 8997": pc.field("n") == 8997,
    "n IS NULL AND id < 30": pc.field("n").is_null() & (pc.field("id") < 30),
    "id = 20 OR id = 11000": pc.field("id").isin([20, 11000]),
    "true": pc.scalar(True),
}


def _check(stack: Stack, pages: Pages) -> None:
    sql = (
        "SELECT f, count(*), sum(id), sum(n), count(DISTINCT c), min(p), max(p),"
        " sum(cardinality(l)), sum(reduce(l, BIGINT '0', (s, x) -> s + x, s -> s))"
        " FROM laws.pages WHERE {} GROUP BY f ORDER BY f"
    )
    for where, arrow in WHERE.items():
        chosen = pages.rows.filter(arrow)
        lists = chosen.append_column("len", pc.list_value_length(chosen["l"]))
        lists = lists.append_column("sum", pc.multiply(lists["len"], lists["id"]))
        expected = lists.group_by("f").aggregate(
            [
                ("id", "count"),
                ("id", "sum"),
                ("n", "sum"),
                ("c", "count_distinct"),
                ("p", "min"),
                ("p", "max"),
                ("len", "sum"),
                ("sum", "sum"),
            ]
        )
        wanted = sorted(list(row.values()) for row in expected.to_pylist())
        order = [expected.schema.get_field_index("f")]
        if order != [0]:
            wanted = sorted([row[-1], *row[:-1]] for row in wanted)
        for session in (None, OFF):
            assert stack.query(sql.format(where), session) == wanted, (where, session)


def skipped_rows(stack: Stack, sql: str) -> int:
    """Rows that the reader left out for what page indexes say."""
    lines = stack.query(f"EXPLAIN ANALYZE VERBOSE {sql}", OFF)
    text = "\n".join(line[0] for line in lines)
    found = re.findall(r"skipbridge rows skipped by page index.*?(?:total=|count=|=\s*)(\d+)", text)
    assert found, text
    return max(int(number) for number in found)


def test_29_rows_are_those_of_the_files(stack: Stack, pages: Pages) -> None:
    _check(stack, pages)


def test_29_page_indexes_prune_in_any_file_of_a_group(stack: Stack, pages: Pages) -> None:
    """48 files of 3,000 or 12,000 rows have page indexes; each leaves out most of its rows."""
    skipped = skipped_rows(stack, "SELECT sum(n), max(p) FROM laws.pages WHERE id < 10")
    indexed = 24 * 3_000 + 24 * 12_000
    assert skipped > indexed // 4  # the second row group of two is left out as a whole


def test_29_small_chunk_beside_a_large_one(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A column of few texts is rewritten, the wide one beside it is not."""
    directory = tmp_path_factory.mktemp("beside")
    table = pa.table({"id": range(50_000), "c": [f"t{i % 3}" for i in range(50_000)]})
    for number in range(3):
        pq.write_table(
            table,
            directory / f"f{number}.parquet",
            compression="zstd",
            write_page_index=True,
            data_page_size=4096,
        )
    register(stack, "beside", directory, (Column("id", BIGINT), Column("c", STRING)))
    sql = "SELECT count(*), min(c), max(c), sum(id) FROM laws.beside WHERE id < 100"
    for session in (None, OFF):
        assert stack.query(sql, session) == [[300, "t0", "t2", 3 * 4950]]
    assert skipped_rows(stack, sql) > 100_000


@pytest.mark.parametrize("codec", REFUSED)
def test_codec_that_trino_does_not_know_is_named(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory, codec: str
) -> None:
    directory = tmp_path_factory.mktemp(codec)
    pq.write_table(rows(0, 500), directory / "f.parquet", compression=codec)
    register(stack, f"codec_{codec}", directory, COLUMNS)
    with pytest.raises(Exception, match=rf"(?i)f\.parquet.*{codec}"):
        stack.query(f"SELECT max(p) FROM laws.codec_{codec}")
    # what needs no column needs no codec
    assert stack.query(f"SELECT count(*) FROM laws.codec_{codec}") == [[500]]


def test_29_on_the_newest_trino(stack_483: Stack, pages: Pages) -> None:
    _check(stack_483, pages)
    sql = "SELECT sum(n), max(p) FROM laws.pages WHERE id < 10"
    assert skipped_rows(stack_483, sql) > 90_000
