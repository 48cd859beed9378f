"""A file format of another distribution: recognised, described, indexed, pruned; refused by name
where an engine has no reader for it. No file of the package is edited for it."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bridge
from bridge.app.explain import explain
from bridge.engines.registry import engine, engines, refuse_unreadable
from bridge.expression.nodes import AlwaysTrue
from bridge.formats.registry import file_format, file_formats, inferred_formats
from bridge.kernel.config import Config
from bridge.kernel.errors import UnsupportedTable
from bridge.planner.request import ScanRequest
from bridge.planner.splits.coalesce import SplitSettings
from bridge.runtime.compose import planner_of, storage_of
from bridge.runtime.create_table import create_table
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.service.handler import PlannerHandler
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import SCHEMA, DirectoryCatalog
from tests.support.wheels import install, wheel_of

PROJECT = Path(__file__).parents[2] / "plugins" / "toy_formats"
Row = tuple[int, str | None, dt.date]
FILES = 12
NULL = r"\N"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("toy")
    install(wheel_of(PROJECT, root), root / "site")
    return root / "site"


@pytest.fixture(scope="module")
def rows() -> list[list[Row]]:
    """Of each file; the days of the files are disjoint."""
    chance = random.Random(7)
    return [
        [
            (
                chance.randrange(1000),
                chance.choice(["ann", "bob", "zoë", None]),
                dt.date(2024, 1 + i, chance.randrange(1, 29)),
            )
            for _ in range(20)
        ]
        for i in range(FILES)
    ]


@pytest.fixture
def table(tmp_path: Path, rows: list[list[Row]]) -> Path:
    directory = tmp_path / "people"
    directory.mkdir()
    for i, content in enumerate(rows):
        lines = "".join(
            f"{a}\t{b if b is not None else chr(92) + 'N'}\t{c}\n" for a, b, c in content
        )
        write(directory / f"f{i:02d}.tsv", f"#tsv\tid:bigint\tname:string\tday:date\n{lines}")
    return directory


def write(path: Path, text: str) -> None:
    path.write_text(text)
    past = path.stat().st_mtime - 60
    os.utime(path, (past, past))


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Callable[..., str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "SKIPBRIDGE_CACHE": str(tmp_path / "c")}

    def run(*arguments: str, status: int = 0) -> str:
        command = [sys.executable, "-m", "bridge", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In this process."""
    monkeypatch.syspath_prepend(str(site))
    file_formats.cache_clear()
    yield
    file_formats.cache_clear()


def test_it_is_indexed_and_prunes(
    table: Path, rows: list[list[Row]], run: Callable[..., str]
) -> None:
    run("index", "build", f"{table}/", "--local")

    def kept(where: str) -> set[int]:
        found = json.loads(run("explain", f"{table}/", where, "--files", "--output", "json"))
        return {int(path[-6:-4]) for path in found["files"]["paths"]}

    def matching(matches: Callable[[Row], Any]) -> set[int]:
        return {i for i, content in enumerate(rows) if any(map(matches, content))}

    march, july = rows[2][0][2], rows[6][0][2]
    assert kept(f"day = DATE '{march}' OR day = DATE '{july}'") == {2, 6}
    assert kept("id < 30") == matching(lambda row: row[0] < 30) < set(range(FILES))
    assert kept("name = 'bob'") >= matching(lambda row: row[1] == "bob")
    assert kept("name > 'zoë'") == set()
    assert kept("name IS NULL") == matching(lambda row: row[1] is None)


def test_27_a_damaged_file_is_read_by_every_query(table: Path, run: Callable[..., str]) -> None:
    write(table / "f99.tsv", "#tsv\tid:bigint\tname:string\tday:date\nno number\tann\t2024-01-01\n")
    run("index", "build", f"{table}/", "--local", status=3)
    told = json.loads(run("explain", f"{table}/", "id < -5", "--files", "--output", "json"))
    assert [path[-7:] for path in told["files"]["paths"]] == ["f99.tsv"]


@pytest.mark.usefixtures("installed")
def test_a_large_file_is_not_cut(table: Path) -> None:
    big = "#tsv\tid:bigint\tname:string\tday:date\n" + "1\tann\t2024-01-01\n" * 20_000
    write(table / "f50.tsv", big)
    config = Config({})
    storage = storage_of(config)
    catalog = DirectoryCatalog(storage, f"file://{table}")
    planner = planner_of(config, catalog, storage)
    request = ScanRequest(table=catalog.name, predicate=AlwaysTrue())
    settings = SplitSettings(target_bytes=1 << 16, parallelism=1)
    assert len(big) > settings.cut_above
    report = explain(planner, request, settings)
    planner.lister.close()
    assert report.files_kept == FILES + 1
    assert report.splits.count <= FILES + 1


@pytest.mark.usefixtures("installed")
def test_it_is_recognised_and_its_columns_are_inferred(table: Path) -> None:
    assert inferred_formats() == {"parquet", "orc", "typed_tsv"}
    catalog = DirectoryCatalog(open_storage(), f"file://{table}")
    found = catalog.table(catalog.name)
    assert found.format == "typed_tsv"
    assert [(c.name, str(c.type)) for c in found.columns] == [
        ("id", "bigint"),
        ("name", "string"),
        ("day", "date"),
    ]


@pytest.mark.usefixtures("installed")
def test_its_rows_are_read(table: Path, rows: list[list[Row]]) -> None:
    with bridge.connect() as session:
        found = session.table(f"{table}/").scan("id < 100", columns=["day", "id"]).to_arrow()
    every = [row for content in rows for row in content]
    wanted = [(day, id) for id, _, day in every if id < 100]
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(wanted) != []


@pytest.mark.usefixtures("installed")
def test_a_file_cut_short_and_a_foreign_one_are_named(table: Path) -> None:
    write(table / "f98.tsv", "#tsv\tid:bigint\tname:string\tday:da")
    write(table / "f99.json", '{"id": 1}')
    catalog = DirectoryCatalog(open_storage(), f"file://{table}")
    catalog.table(catalog.name)
    assert [s.what for s in catalog.strays] == [
        "a damaged typed TSV file: its end is missing",
        "JSON text",
    ]
    assert "a directory is read in one format" in catalog.strays[1].remedy


@pytest.mark.usefixtures("installed")
def test_engines_without_a_reader_refuse_it_by_name(table: Path, tmp_path: Path) -> None:
    for each in engines().values():
        assert each.reader(file_format("typed_tsv")) is None
    config = Config({})
    storage = storage_of(config)
    catalog = DirectoryCatalog(storage, f"file://{table}")
    handler = PlannerHandler(planner_of(config, catalog, storage), "127.0.0.1:1", SplitSettings())
    request = ttypes.PlanRequest(
        schema_name=SCHEMA, table_name="people", engine="trino", protocol=PROTOCOL
    )
    try:
        for ask in (
            lambda: handler.plan(request),
            lambda: handler.get_table(SCHEMA, "people", "trino", "", "", PROTOCOL),
            lambda: handler.get_statistics(request),
        ):
            with pytest.raises(ttypes.BridgeFailure) as raised:
                ask()
            assert raised.value.code == "UNSUPPORTED_TABLE"
            assert "typed_tsv: Trino has no reader for it" in raised.value.message
    finally:
        handler.close()


@pytest.mark.usefixtures("installed")
def test_hive_can_hold_no_table_of_it(table: Path) -> None:
    with pytest.raises(UnsupportedTable, match="typed TSV, for which Hive has no classes"):
        create_table(
            Config({}), "d.people", str(table), dry_run=True, progress=lambda done, total: None
        )
    catalog = DirectoryCatalog(open_storage(), f"file://{table}")
    with pytest.raises(UnsupportedTable, match="typed_tsv: Hive has no reader"):
        refuse_unreadable(catalog.table(catalog.name), engine("hive"))
