"""What is believed of a writer is a table in one place; its lowest versions are files here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bridge.formats.parquet import writers as parquet_writers
from bridge.formats.parquet.statistics import FooterReader
from bridge.formats.parquet.writers import LISTED, NO_DOUBTS, Doubts, doubts_about
from bridge.index.reading.local_cache import cache_index
from bridge.index.reading.trust import NotBelieved
from bridge.kernel.types import BIGINT, BOOLEAN, DOUBLE, STRING, Type
from bridge.planner.reports.effectiveness import Effectiveness
from bridge.planner.reports.effectiveness_text import effectiveness_text
from tests.support import footers
from tests.support.lake import Lake, age
from tests.tiers import examples, seed

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted([*FIXTURES.glob("writers/*.parquet"), FIXTURES / "parquet_mr" / "ascii.parquet"])
TYPES: dict[str, Type] = {"i": BIGINT, "b": BOOLEAN, "s": STRING, "f": DOUBLE}
_JAVA = "trino_plugin_gen/template/src/main/resources/io/skipbridge/trino/read/footer"
CONNECTORS = FIXTURES.parents[1] / _JAVA / "parquet-writers.txt"
UNLISTED = b"some writer version 99.0.0"


@pytest.fixture(autouse=True)
def _no_file_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table alone; what files show besides: `tests.laws.test_shown_writers`."""
    monkeypatch.setattr("bridge.index.building.collect.MOST", 0)


def _created_by(path: Path) -> str:
    return str(pq.read_metadata(path).created_by)


def _renamed(path: Path, created_by: bytes | None) -> None:
    footers.renamed(path, created_by)
    age(path)


def _lied(path: Path, column: int, nulls: int) -> None:
    """Makes a footer state another NULL count in the first row group."""
    data, footer = footers.take_apart(path.read_bytes())
    stated = footers.get(footers.get(footers.chunks(footer)[column], 3), 12)
    footers.set_to(stated, 3, footers.I64, nulls)
    path.write_bytes(footers.put_together(data, footer))
    age(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_believed_of_a_listed_writer_is_true_of_its_lowest_version(path: Path) -> None:
    raw, table = path.read_bytes(), pq.read_table(path)
    footer = FooterReader().read(raw, len(raw), str(path))
    doubts = doubts_about(footer.writer)
    assert footer.rows == table.num_rows
    for leaf in footer.leaves:
        (name,) = leaf.column.path
        values, stored = table[name], leaf.column.type
        if leaf.nulls is not None and not doubts.doubts_counts(stored, name):
            assert leaf.nulls == values.null_count or (doubts.some and leaf.nulls)
        if leaf.lower is None or doubts.doubts_bounds(stored, name):
            continue
        if stored.logical in ("bool", "int", "double") and leaf.exact and not doubts.exact:
            assert pc.min_max(values).as_py() == {"min": leaf.lower, "max": leaf.upper}


def test_each_listed_writer_has_a_file_of_its_lowest_version() -> None:
    found = {parquet_writers._named(_created_by(path)) for path in FILES}
    assert set(LISTED.items()) <= found


def test_the_mistakes_of_files_of_others_are_real() -> None:
    (polars,) = FIXTURES.glob("writers/polars*.parquet")
    raw = polars.read_bytes()
    stated = {leaf.key: leaf for leaf in FooterReader().read(raw, len(raw), "f").leaves}
    (b,) = (leaf for leaf in stated.values() if leaf.column.path == ("b",))
    assert (b.lower, b.exact) == (False, True)  # and no value is false
    assert pc.min(pq.read_table(polars)["b"]).as_py() is True


@pytest.mark.parametrize(
    ("writer", "listed"),
    [
        ("parquet-mr version 1.8.1 (build 4aba4da)", True),
        ("parquet-mr version 1.13.1-databricks-0002 (build 2)", True),
        ("parquet-mr version 1.8.0", False),
        ("parquet-mr version 99.0.0", True),
        ("parquet-cpp-arrow version 26.0.1", True),
        ("parquet-cpp-arrow version 9.0.0", False),
        ("parquet-cpp version 1.5.1", False),
        ("parquet-go version 17.0.0", False),
        ("DuckDB version v1.4.0 (build 1)", True),
        ("DuckDB", False),
        ("Polars", False),
        ("parquet-mr", False),
        ("not parquet-mr version 1.13.1", False),
        ("", False),
        ("x" * 500, False),
    ],
)
def test_the_list(writer: str, listed: bool) -> None:
    """A release does not lose its place by being new."""
    doubts = doubts_about(writer)
    told = doubts.rows, doubts.exact, doubts.counts or doubts.some, doubts.booleans
    assert told == (not listed,) * 4
    assert not doubts.bounds


@pytest.mark.rule("37")
def test_the_connector_s_table_says_the_same() -> None:
    """Read as the connector reads it, for writers of any name and version."""
    table = [
        (writer, tuple(map(int, version.split("."))), frozenset(words))
        for writer, version, *words in map(str.split, CONNECTORS.read_text().splitlines())
        if writer != "#"
    ]
    names = list(dict.fromkeys(writer for writer, _, _ in table))
    drawn = random.Random(seed(37))
    edges = [*(version for _, version, _ in table), *LISTED.values()]
    for _ in range(examples(3_000, 20_000, 100_000)):
        near = list(drawn.choice(edges))
        near[drawn.randrange(len(near))] += drawn.randrange(-1, 2)
        version = (near + [drawn.randrange(3) for _ in range(3)])[: drawn.randrange(1, 4)]
        version = [max(part, 0) for part in version]
        name = drawn.choice([*names, "another"]).rstrip("*")
        found = next(w for w in names if name == w or (w[-1] == "*" and name.startswith(w[:-1])))
        told = [words for w, least, words in table if w == found and tuple(version) >= least]
        writer = f"{name} version {'.'.join(map(str, version))} (build 1)"
        # A parquet-cpp without Arrow's schema: any text may have been a dictionary.
        assert told[-1] == _flags(doubts_about(parquet_writers.writer_of(writer.encode(), {})))
        unversioned = next(
            words for w, _, words in table if w[-1] == "*" and name.startswith(w[:-1])
        )
        assert unversioned == _flags(doubts_about(name))


def _flags(doubts: Doubts) -> frozenset[str]:
    """The attributes that the connector knows."""
    flags = {"bounds", "text", "booleans", "fixed", "varying", "counts", "some"}
    return frozenset(
        [name for name in flags if getattr(doubts, name)] + ["coded"] * (doubts.coded is None)
    )


@pytest.mark.rule("37")
def test_bounds_are_believed_of_any_writer_and_counts_of_the_listed(lake: Lake) -> None:
    for name, writer in (("a", None), ("b", UNLISTED), ("c", b"parquet-mr version 1.13.1 (x)")):
        _renamed(lake.write(name, {"i": [1, None], "b": [True, None]}), writer)
    lake.build()
    i, b = lake.column("i", BIGINT), lake.column("b", BOOLEAN)
    assert (i.lower.tolist(), i.upper.tolist(), i.lower_known) == ([1] * 3, [1] * 3, None)
    assert i.null_count.tolist() == b.null_count.tolist() == [-1, -1, 1]
    assert i.exact is not None and i.exact.tolist() == [False, False, True]
    assert b.lower_known is not None and b.lower_known.tolist() == [False, False, True]
    serving = lake.snapshot()
    assert serving.rows.tolist() == [2] * 3 and serving.counted_rows.tolist() == [-1, -1, 2]
    what = ("bounds of booleans", "NULL counts", "numbers of rows", "that bounds are values")
    told = serving.local.trust.not_believed()
    assert sorted(told, key=lambda each: each.writer) == [
        NotBelieved("", what, 1),
        NotBelieved(UNLISTED.decode(), what, 1),
    ]


def test_the_report_names_what_stays_unknown() -> None:
    doubted = (NotBelieved("Polars", ("NULL counts above zero",), 3), NotBelieved("", ("x",), 1))
    found = Effectiveness("t", 1, 0, 4, 0, 0, 0, 0, (), (), (), not_believed=doubted)
    text = effectiveness_text(found)
    assert "not believed in 3 files of Polars: NULL counts above zero\n" in text
    assert "not believed in 1 file of a writer without a name: x\n" in text
    assert found.to_dict()["not_believed"][0]["writer"] == "Polars"


def test_what_was_counted_in_the_values_is_believed_of_any_writer(lake: Lake) -> None:
    path = lake.write("a", {"i": [1, None, 3], "b": [True, None, True], "s": ["x", None, "y"]})
    _renamed(path, UNLISTED)
    for column in range(3):
        _lied(path, column, 0)
    lake.build(nan="scan")
    for name, kind in (("i", BIGINT), ("b", BOOLEAN), ("s", STRING)):
        found = lake.column(name, kind)
        assert found.null_count.tolist() == [1]
        assert found.exact is None or found.exact.all()
    assert lake.bounds("i", BIGINT) == (1, 3) and lake.bounds("b", BOOLEAN) == (1, 1)


def test_bounds_do_not_rest_on_a_null_count_that_is_not_believed(lake: Lake) -> None:
    """The first row group says falsely that it has no values, and so states no bounds."""
    path = lake.write("a", {"i": [50, 60, 1, 2]}, row_group_size=2)
    data, footer = footers.take_apart(path.read_bytes())
    stated = footers.get(footers.chunks(footer)[0], 3)
    footers.set_to(stated, 12, footers.STRUCT, [[3, footers.I64, 2]])
    path.write_bytes(footers.put_together(data, footer))
    _renamed(path, UNLISTED)
    lake.build()
    assert lake.bounds("i", BIGINT) == (None, None)


@pytest.mark.rule("37")
def test_a_new_rule_needs_no_new_build(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _renamed(lake.write("a", {"i": [1, None]}), UNLISTED)
    lake.build()
    assert lake.column("i", BIGINT).null_count.tolist() == [-1]
    with monkeypatch.context() as later:
        later.setattr(parquet_writers, "LISTED", {**LISTED, "some writer": (98,)})
        doubts_about.cache_clear()
        assert lake.column("i", BIGINT).null_count.tolist() == [1]
        assert lake.column("i", BIGINT).exact is None
    doubts_about.cache_clear()
    assert lake.column("i", BIGINT).null_count.tolist() == [-1]
    assert lake.build().read == 0


@pytest.mark.rule("37")
def test_a_process_that_believes_more_spoils_no_shared_copy(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes columns into the directory that another version of the program has made anew."""
    _renamed(lake.write("a", {"i": [1, None]}), UNLISTED)
    lake.build()
    store = lake.store()
    manifest = store.latest()
    assert manifest is not None
    with monkeypatch.context() as other:
        other.setattr(parquet_writers, "LISTED", {**LISTED, "some writer": (98,)})
        doubts_about.cache_clear()
        believing = cache_index(manifest, store, tmp_path / "copies")
    doubts_about.cache_clear()
    cache_index(manifest, store, tmp_path / "copies")
    (column,) = believing.columns
    assert believing.load(column).nulls.tolist() == [1]
    found = cache_index(manifest, store, tmp_path / "copies")
    assert found.load(column).nulls.tolist() == [-1]


@pytest.mark.rule("37")
def test_no_lie_about_nulls_loses_a_row(lake: Lake) -> None:
    """Random columns whose footers state any NULL count, by writers that are not listed."""
    rng = random.Random(9)
    writers = [None, b"", UNLISTED, b"parquet-go version 1.0", b"DuckDB"]
    held: dict[str, list[Any]] = {}
    for number in range(examples(60, 120, 2000)):
        values = [rng.choice((None, rng.randrange(5))) for _ in range(rng.choice((1, 2, 3, 6)))]
        name = f"f{number:04}"
        path = lake.write(name, {"i": pa.array(values, pa.int64())}, row_group_size=3)
        _lied(path, 0, rng.randrange(min(3, len(values)) + 1))
        _renamed(path, rng.choice(writers))
        held[name] = values
    lake.build()
    found = lake.column("i", BIGINT)
    assert (found.null_count == -1).all() and found.all_null is None
    names = [path.rpartition("/")[2] for path in lake.snapshot().paths.to_pylist()]
    for at, name in enumerate(names):
        known = [v for v in held[name] if v is not None]
        if known and (found.lower_known is None or found.lower_known[at]):
            assert found.lower[at] <= min(known) and found.upper[at] >= max(known)
    told = found.lower_known
    assert told is None or np.count_nonzero(told) > len(names) // 2


def test_nothing_is_doubted_that_no_footer_states() -> None:
    assert doubts_about(None) == NO_DOUBTS == Doubts()
