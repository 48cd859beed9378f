"""Rules of partitions, freshness, formats, commits and answers, as planners meet them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.expression.prune import prune
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import BridgeError, IndexCorrupt, UnsupportedTable
from bridge.kernel.types import BIGINT, INTEGER, STRING, TRINO, Field
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.port import Storage
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.lake import Lake, age, kept


def names(uris: set[str]) -> list[str]:
    return sorted(uri.rpartition("/")[2] for uri in uris)


def asked(lake: Lake, text: str, **options: Any) -> list[str]:
    return names(kept(lake.planner(), parse_where(text)[0], **options))


@pytest.fixture
def keyed(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("p", STRING), Column("n", INTEGER)))
    lake.partition_values = [("a=b/c", "01"), ("a%3Db", "1"), (None, "2"), ("c", "two")]
    for number, values in enumerate(lake.partition_values):
        lake.write(f"f{number}", pa.table({"x": [number]}), values)
    lake.build()
    return lake


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("p = 'a=b/c'", ["f0"]),
        ("p = 'a%3Db'", ["f1"]),  # unescaped once, not twice
        ("p = 'a=b'", []),
        ("p IS NULL", ["f2"]),
        ("p = '__HIVE_DEFAULT_PARTITION__'", []),
        ("n = 1", ["f0", "f1", "f3"]),  # '01' is 1; 'two' may be anything
        ("n = 7", ["f3"]),
        ("p = 'c' AND x = 3", ["f3"]),
    ],
)
def test_18_partition_values(keyed: Lake, text: str, files: list[str]) -> None:
    assert asked(keyed, text) == files


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)))
    for n in range(4):
        made.write(f"f{n}", pa.table({"x": [n * 10, n * 10 + 9], "s": [f"{n}a", f"{n}b"]}))
    made.build()
    return made


def test_19_a_file_rewritten_at_its_size_and_within_its_tick(lake: Lake) -> None:
    """Same path, same size, same mtime: only an entry written within the grain could be wrong."""
    path = lake.root / "t" / "f1"
    lake.write("f1", pa.table({"x": [10, 19], "s": ["1a", "1b"]}))
    now = path.stat().st_mtime_ns + 3600 * 10**9  # a clock ahead: never settled
    os.utime(path, ns=(now, now))
    lake.build()
    lake.write("f1", pa.table({"x": [70, 79], "s": ["1a", "1b"]}))
    os.utime(path, ns=(now, now))
    for mode in ("live", "snapshot"):
        assert asked(lake, "x = 75", freshness=mode) == ["f1"]


def test_19_entries_without_files_and_files_without_entries(lake: Lake) -> None:
    (lake.root / "t" / "f0").rename(lake.root / "t" / "g0")
    assert asked(lake, "x = 5") == ["g0"]
    assert asked(lake, "x = 15") == ["f1", "g0"]  # unknown, hence read
    lake.build()
    assert asked(lake, "x = 15") == ["f1"]


def test_20_text_formats_are_refused_until_their_parsing_is_shared(tmp_path: Path) -> None:
    """Bounds of CSV are bounds of what the SerDe makes of it; a raw listing would guess."""

    class Csv(Lake):
        def table(self, name: TableName = TableName("db", "t")) -> CatalogTable:  # noqa: B008
            found = super().table(name)
            return CatalogTable(found.name, found.columns, (), found.location, format="textfile")

    lake = Csv(tmp_path, (Column("x", BIGINT),))
    (lake.root / "t" / "a").write_text("1\n")
    planner: Planner = lake.planner()
    with pytest.raises(UnsupportedTable, match="textfile"):
        planner.plan(ScanRequest(TableName("db", "t")))


def test_20_a_csv_among_the_files_is_kept_and_named(lake: Lake) -> None:
    age(_text(lake.root / "t" / "stray.csv"))
    report = lake.build()
    assert [Path(uri).name for uri, _ in report.failed] == ["stray.csv"]
    assert asked(lake, "x = 5") == ["f0", "stray.csv"]


def _text(path: Path) -> Path:
    path.write_text("x,s\n5,a\n")
    return path


class Killed(BaseException):
    """The builder's end; nothing may catch it."""


class _DiesAt:
    """A storage whose user dies before a write of a given name."""

    def __init__(self, storage: Storage, part: str) -> None:
        self._storage, self._part = storage, part

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Any] = getattr(self._storage, name)
        if name not in ("put", "put_if_absent"):
            return method

        def write(uri: str, content: bytes) -> Any:
            if self._part in uri:
                raise Killed
            return method(uri, content)

        return write


@pytest.mark.parametrize("part", ["-files.shard", "-columns.shard", "generations/"])
def test_21_a_build_that_dies_leaves_the_old_generation(lake: Lake, part: str) -> None:
    real = lake.storage
    lake.write("f9", pa.table({"x": [90], "s": ["9"]}))
    lake.storage = _DiesAt(real, part)  # type: ignore[assignment]
    with pytest.raises(Killed):
        lake.build()
    lake.storage = real
    assert lake.store().generations() == [1]
    assert asked(lake, "x = 15") == ["f1", "f9"]
    assert lake.build().read == 1
    assert asked(lake, "x = 15") == ["f1"]


def test_21_every_damaged_byte_of_an_index_is_noticed(lake: Lake) -> None:
    """A broken part makes its columns unknown; it never makes a file vanish."""
    (columns,) = lake.path(".skipbridge/shards").glob("*-columns.shard")
    whole = columns.read_bytes()
    noticed = 0
    for at in range(4, len(whole), max(len(whole) // 60, 1)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        columns.write_bytes(damaged)
        for file in (lake.root / "cache").rglob("*"):
            if file.is_file():
                file.unlink()
        planner = lake.planner()
        plan = planner.plan(ScanRequest(TableName("db", "t"), parse_where("x = 15")[0]))
        found = [uri for batch in plan.batches() for uri in batch.files.paths.to_pylist()]
        assert "f1" in names(set(found)), at
        reasons = {missing.reason for missing in plan.report().not_used}
        noticed += "INDEX_CORRUPT" in reasons
        assert len(found) == (4 if reasons else 1)
    assert noticed > 30
    columns.write_bytes(whole)


def test_22_only_what_is_exact_and_known_answers_for_a_file(lake: Lake) -> None:
    """ALWAYS with known rows is what LIMIT, count and the like may rest upon."""
    lake.write("f4", pa.table({"x": [40, None], "s": ["4a", "4b"]}))
    lake.write("f5", pa.table({"x": [50, 51], "s": ["5a", "5b"]}))
    os.utime(lake.root / "t" / "f5", (4e9, 4e9))  # from the future: not trusted
    lake.build()
    manifest = lake.store().latest()
    assert manifest is not None
    serving = IndexSnapshot.open(manifest, lake.store(), lake.root / "cache")
    fields = (Field("x", BIGINT), Field("s", STRING))
    statistics = serving.statistics(fields, TRINO)

    def always(text: str) -> list[bool]:
        bound = bind(parse_where(text)[0], fields, (), TRINO)
        found: list[bool] = prune(bound, statistics, TRINO).always.tolist()
        return found

    assert serving.rows.tolist() == [2, 2, 2, 2, 2, -1]
    assert always("x >= 0") == [True] * 4 + [False, False]  # a NULL; not trusted
    assert always("x >= 5") == [False, True, True, True, False, False]
    assert always("x = 10") == [False] * 6
    assert always("s >= '0a'")[:4] == [True] * 4
    assert always("s = '0a'") == [False] * 6


def test_22_an_unreadable_index_answers_nothing(lake: Lake) -> None:
    for file in lake.path(".skipbridge/generations").iterdir():
        file.write_text("{}")
    with pytest.raises(IndexCorrupt):
        lake.store().latest()
    assert asked(lake, "x = 15") == ["f0", "f1", "f2", "f3"]
    assert issubclass(IndexCorrupt, BridgeError)
