"""Controls of the law of writes: builds in which a native handle goes further than it should.

A server of its own: a plugin cannot be added to one that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trino_plugin_gen.build as build_module
from bridge.servers.java import find_jdk
from tests.engines.catalog_writes import Copies, Draw, Law
from tests.engines.catalogs import running_catalogs
from tests.engines.conftest import RunningMetastore
from tests.support.servers.stock_trino import stock_plugins
from tests.tiers import seed

pytestmark = pytest.mark.full

STATEMENTS = 25
# The planner answers the filter of a scan that is to be changed, as of one that is only read.
NATIVE = (
    "BothMetadata.java",
    "mixed || executed.contains(StatementTable.of(session, table))\n",
    "table.tableName().isEmpty()\n",
)
# The table is converted without the native handle's conditions.
BY_NAME = ("HiveTables.java", "table.ofDomains() && table.predicate().isAll()", "table != null")
MUTANTS = {"filtered": (NATIVE,), "named": (NATIVE, BY_NAME)}


@pytest.fixture(scope="module")
def copies(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copies]:
    directory = tmp_path_factory.mktemp("controls")
    mutants = {name: _build(name, directory) for name in MUTANTS}
    with running_catalogs(metastore.uri, directory, mutants) as running:
        yield Copies(running, schema="controls")


def _build(name: str, directory: Path) -> Path:
    """The connector of that name, with its faults."""
    whole = build_module.generate

    def generate(*arguments: Any) -> dict[str, bytes]:
        files: dict[str, bytes] = whole(*arguments)
        for file, text, fault in MUTANTS[name]:
            [path] = [path for path in files if path.endswith(f"/hive/{file}")]
            assert files[path].count(text.encode()) == 1
            files[path] = files[path].replace(text.encode(), fault.encode())
        return files

    server = stock_plugins("hive")["hive"].parents[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_module, "generate", generate)
        return build_module.build(476, directory, find_jdk(24).home, server, name, hive=True)


def _ask(copies: Copies, catalog: str) -> int:
    """How many statements succeeded. Each did what it does in the hive connector, or nothing."""
    draw = Draw(seed(4242))
    law = Law(copies, catalog)
    succeeded = 0
    for _ in range(STATEMENTS):
        shape = draw.shape()
        pair = copies.pair(shape, draw.yes(0.4))
        statement = draw.statement(shape)
        told = law.tell(shape, statement, pair)
        if told[pair.ours].error:
            assert pair.left(pair.ours) == pair.files, statement
            continue
        assert told[pair.theirs].error == "", statement
        law.compare(pair, statement)
        succeeded += 1
    return succeeded


def test_the_conditions_of_a_native_handle_are_converted_with_it(copies: Copies) -> None:
    """Even if a filter lives in the native handle alone, nothing else is deleted."""
    assert _ask(copies, "filtered") * 5 >= STATEMENTS


def test_a_conversion_by_name_alone_breaks_the_law(copies: Copies) -> None:
    with pytest.raises(AssertionError):
        _ask(copies, "named")
