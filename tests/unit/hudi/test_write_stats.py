"""Write statistics are decoded as fastavro decodes them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import FileCorrupt
from bridge.table.hudi.timeline import commit_metadata
from bridge.table.hudi.timeline.commit_metadata import read_commit
from tests.support.hudi_fixtures import hudi_fixtures

_LONG: Any = ["null", "long"]
_TEXT: Any = ["null", {"type": "string", "avro.java.string": "String"}]
_OTHERS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (_LONG, st.none() | st.integers(-(2**63), 2**63 - 1)),
    (_LONG, st.none() | st.integers(0, 300)),
    (_TEXT, st.none() | st.text(max_size=200)),
    ("string", st.text(max_size=3)),
    ("long", st.integers(-70, 70)),
    (["null", "boolean"], st.none() | st.booleans()),
    (["null", "double"], st.none() | st.floats(allow_nan=False)),
    (["null", {"type": "array", "items": "string"}], st.none() | st.lists(st.text(), max_size=3)),
    (
        ["null", {"type": "map", "values": "long"}],
        st.none() | st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=3),
    ),
    (["null", {"type": "fixed", "name": "Four", "size": 4}], st.none() | st.just(b"four")),
    (
        [
            "null",
            {"type": "record", "name": "Times", "fields": [{"name": "a", "type": _LONG}]},
        ],
        st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9)}),
    ),
]


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema whose statistics have any further fields, and a body."""
    others = draw(st.permutations(range(len(_OTHERS))))[: draw(st.integers(0, len(_OTHERS)))]
    named: list[tuple[str, Any, st.SearchStrategy[Any]]] = [
        ("path", _TEXT, st.sampled_from(["p/a", "p/b"])),
        ("prevCommit", _TEXT, st.none() | st.sampled_from(["null", "1", "2"])),
        ("fileSizeInBytes", _LONG, st.integers(0, 2**40)),
        ("logOffset", _LONG, st.none() | st.integers(0, 5)),
    ] + [(f"f{i}", *_OTHERS[i]) for i in others]
    named = draw(st.permutations(named))
    fields = [{"name": name, "type": type} for name, type, _ in named]
    stat = {"type": "record", "name": "HoodieWriteStat", "fields": fields}
    values = {"type": "array", "items": stat}
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "partitionToWriteStats", "type": ["null", {"type": "map", "values": values}]},
            {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
            {"name": "operationType", "type": ["null", "string"]},
        ],
    }
    one = st.fixed_dictionaries({name: strategy for name, _, strategy in named})
    stats = draw(st.none() | st.just({"p": draw(st.lists(one, max_size=5))}))
    extra = draw(st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=2))
    body = {"partitionToWriteStats": stats, "extraMetadata": extra, "operationType": "UPSERT"}
    return schema, body


@settings(max_examples=200)
@given(case=bodies())
def test_any_statistics_are_those_of_fastavro(case: tuple[Any, Any]) -> None:
    schema, body = case
    out = io.BytesIO()
    fastavro.writer(out, schema, [body])
    fast = commit_metadata._fast_commit(out.getvalue())
    assert fast is not None
    (slow,) = commit_metadata.read_avro(out.getvalue())
    assert commit_metadata._commit(fast) == commit_metadata._commit(slow)


def test_commits_that_hudi_wrote_need_no_other_reader() -> None:
    seen = 0
    for fixture in hudi_fixtures(bundle="1.2.0", prefix="mor_up") + hudi_fixtures(bundle="1.0.2"):
        for path in (fixture.path() / ".hoodie" / "timeline").glob("*commit"):
            content = path.read_bytes()
            fast = commit_metadata._fast_commit(content)
            assert fast is not None
            (slow,) = commit_metadata.read_avro(content)
            assert commit_metadata._commit(fast) == commit_metadata._commit(slow)
            for length in range(0, len(content), 41):
                with pytest.raises(FileCorrupt):
                    read_commit(content[:length], path.name)
            seen += 1
    assert seen


def test_other_schemas_are_left_to_fastavro() -> None:
    schema = {"type": "record", "name": "X", "fields": [{"name": "a", "type": "long"}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"a": 1}])
    assert commit_metadata._fast_commit(out.getvalue()) is None
    assert commit_metadata._fast_commit(json.dumps({"a": 1}).encode()) is None


_FILE_ID = "8020aaaa-1111-4222-8333-444455556666-0"
_FILES = [
    f"{_FILE_ID}_0-1-2_20240101000000000.parquet",
    f".{_FILE_ID}_20240101000000000.log.1_0-1-2",
]
_SPELLINGS = [
    "{path}",
    "/{path}",
    "file:{path}",
    "file:/{path}",
    "hdfs://nn:8020{path}",
    "hdfs://nn:8020/{path}",
    "s3a://bucket/some/table/{path}",
    "file:///some/ta:ble/{path}",
    "file:/some/table/{path}",
    "/some/table/{path}",
]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("partition", ["", "dt=2024-01-01", "a/b=c", "null", "at=10:30"])
@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_a_path_is_spelled_in_many_ways(spelling: str, partition: str, fast: bool) -> None:
    paths = [spelling.format(path=f"{partition}/{name}" if partition else name) for name in _FILES]
    commit = _read({partition: paths}, fast=fast)
    assert commit.names == _FILES
    assert (commit.partitions, commit.counts) == ([partition], [2])


@pytest.mark.parametrize("fast", [False, True])
def test_a_table_without_partitions_may_name_its_partition_null(fast: bool) -> None:
    commit = _read({"null": _FILES}, fast=fast)
    assert (commit.names, commit.partitions) == (_FILES, [""])


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("path", ["dt=2/{}", "/t/dt=2/{}", "xdt=1/{}", "{}", "s3://b/dt=1/c/{}"])
def test_a_path_in_another_partition_is_an_error(path: str, fast: bool) -> None:
    with pytest.raises(FileCorrupt, match="is not in partition 'dt=1'"):
        _read({"dt=1": [path.format(_FILES[0])]}, fast=fast)


def _read(paths: dict[str, list[str]], *, fast: bool) -> commit_metadata.CommitMetadata:
    """A commit of these files, as JSON or as Avro."""
    stats = {
        partition: [
            {
                "fileId": _FILE_ID,
                "path": path,
                "prevCommit": "null",
                "fileSizeInBytes": 7,
                "logOffset": 0,
            }
            for path in each
        ]
        for partition, each in paths.items()
    }
    body = {"partitionToWriteStats": stats, "extraMetadata": {}, "operationType": "UPSERT"}
    if not fast:
        return read_commit(json.dumps(body).encode(), "20240101000000000.commit")
    fields = [
        {"name": "fileId", "type": _TEXT},
        {"name": "path", "type": _TEXT},
        {"name": "prevCommit", "type": _TEXT},
        {"name": "fileSizeInBytes", "type": _LONG},
        {"name": "logOffset", "type": _LONG},
    ]
    stat = {"type": "record", "name": "HoodieWriteStat", "fields": fields}
    values = {"type": "array", "items": stat}
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "partitionToWriteStats", "type": ["null", {"type": "map", "values": values}]},
            {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
            {"name": "operationType", "type": ["null", "string"]},
        ],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [body])
    return read_commit(out.getvalue(), "20240101000000000.commit")
