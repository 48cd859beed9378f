"""list_skippable_files: what the index alone says need not be read."""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from thrift.protocol import TBinaryProtocol
from thrift.transport import TTransport

from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from tests.support.service import Service

COLUMNS = json.dumps({"columns": [["x", "int"]], "keys": [["p", "int"]]})


def request(leaf: dict[str, Any] | None, **options: str) -> ttypes.PlanRequest:
    predicate = ""
    if leaf is not None:
        tree = {"op": "LEAF", "leaf": 0}
        predicate = json.dumps({"version": 1, "search_argument": {"leaves": [leaf], "tree": tree}})
    return ttypes.PlanRequest(
        schema_name="db",
        table_name="t",
        query_id="q",
        engine="hive",
        engine_version="4.0.1",
        predicate=predicate,
        projected_columns=["x"],
        options={"table_columns": COLUMNS} | options,
        protocol=PROTOCOL,
    )


def equals(column: str, value: int) -> dict[str, Any]:
    return {"operator": "EQUALS", "type": "LONG", "column": column, "literal": value}


def unpack(found: ttypes.SkippableFiles) -> list[tuple[str, int, int]]:
    n = found.skipped
    sizes = struct.unpack_from(f"<{n}q", found.files, 0)
    times = struct.unpack_from(f"<{n}q", found.files, 8 * n)
    offsets = struct.unpack_from(f"<{n + 1}i", found.files, 16 * n)
    text = found.files[16 * n + 4 * (n + 1) :]
    paths = [found.root + text[a:b].decode() for a, b in itertools.pairwise(offsets)]
    return list(zip(paths, sizes, times, strict=True))


def select(service: Service, asked: ttypes.PlanRequest) -> ttypes.SkippableFiles:
    return service.handler.list_skippable_files(asked)


@pytest.mark.rule("41")
@pytest.mark.parametrize(
    ("columns", "keys", "skipped"),
    [
        ([["x", "int"]], [["p", "int"]], 8),
        ([["X", "INT"]], [["P", "int"]], 8),
        ([["y", "int"]], [["p", "int"]], 0),
        ([["x", "bigint"]], [["p", "int"]], 0),
        ([["x", "int"]], [["p", "string"]], 0),
        ([["x", "int"]], [], 0),
        ([["x", "int"], ["y", "int"]], [["p", "int"]], 0),
        ([["x", "no type"]], [["p", "int"]], 0),
    ],
)
def test_a_query_that_was_compiled_with_other_columns_reads_every_file(
    service: Service, columns: Any, keys: Any, skipped: int
) -> None:
    told = json.dumps({"columns": columns, "keys": keys})
    found = select(service, request(equals("x", 1), table_columns=told))
    assert found.skipped == skipped
    assert any("OTHER_COLUMNS" in note for note in found.notes) == (skipped == 0)


@pytest.mark.rule("41")
@pytest.mark.parametrize("told", ["", "x", "x,p"])
def test_hooks_that_tell_no_types_read_every_file(service: Service, told: str) -> None:
    assert select(service, request(equals("x", 1), table_columns=told)).skipped == 0


@pytest.mark.parametrize("told", ["{", "{}", '{"columns": [1], "keys": []}', '{"columns": 3}'])
def test_columns_that_cannot_be_read_are_an_error(service: Service, told: str) -> None:
    with pytest.raises(ttypes.BridgeFailure) as failure:
        select(service, request(equals("x", 1), table_columns=told))
    assert failure.value.code == "INVALID_REQUEST"


def test_files_that_cannot_match_are_named_with_size_and_time(service: Service) -> None:
    found = select(service, request(equals("x", 1)))
    named_files = unpack(found)
    assert found.generation >= 0 and found.known == 12
    assert len(named_files) == 8
    for path, size, time in named_files:
        assert not path.endswith("/1.parquet")
        told = Path(path.removeprefix("file://")).stat()
        assert (size, time) == (told.st_size, told.st_mtime_ns // 1_000_000)


@pytest.mark.rule("31")
@pytest.mark.parametrize("most", [1, 600, 700, 800, 1000, 1 << 20])
def test_an_answer_is_no_longer_than_its_client_takes(service: Service, most: int) -> None:
    found = select(service, request(equals("x", 1), max_answer_bytes=str(most)))
    out = TTransport.TMemoryBuffer()
    found.write(TBinaryProtocol.TBinaryProtocol(out))
    assert len(out.getvalue()) + 64 <= max(most, 600)
    assert unpack(found) == unpack(select(service, request(equals("x", 1))))[: found.skipped]
    assert found.skipped < 8 or most > 800
    assert (found.by_index, found.unnamed) == ({"minmax": 8}, 8 - found.skipped)


def test_nothing_is_named_without_a_predicate_or_with_pruning_off(service: Service) -> None:
    assert select(service, request(None)).skipped == 0
    assert select(service, request(equals("x", 1), pruning_enabled="false")).skipped == 0


def test_a_partition_key_limits_what_is_named_and_proves_nothing(service: Service) -> None:
    # Only files that are read anyway are of interest; that their directory still belongs to the
    # partition, the index cannot know.
    found = select(service, request(equals("p", 2)))
    assert (found.known, found.skipped) == (3, 0)


@pytest.mark.rule("41")
def test_a_contradiction_names_nothing(service: Service) -> None:
    leaf = {"operator": "EQUALS", "type": "LONG", "column": "x", "literal": 2**40}
    found = select(service, request(leaf))
    assert found.generation >= 0 and found.skipped == 0


def test_a_column_that_is_not_there_is_an_error(service: Service) -> None:
    with pytest.raises(ttypes.BridgeFailure) as failure:
        select(service, request(equals("y", 1)))
    assert failure.value.code == "COLUMN_NOT_FOUND"
