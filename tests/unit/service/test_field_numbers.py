"""Field numbers and types of the compiled code and of both Java codecs are bridge.thrift's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from thrift.Thrift import TType

from bridge.service._gen import Planner, ttypes
from tests.support.bridge_thrift import METHODS, ROOT, STRUCTS, Field

TRINO = ROOT / "trino_plugin_gen/template/src/main/java/io/skipbridge/trino/wire"
CLIENT = ROOT / "jvm_client/java/io/skipbridge/client"
HIVE = ROOT / "hive_hooks/java/src/main/java/io/skipbridge/hive/wire"
# Java class to struct; whoever adds a class that reads or writes a struct names it here.
CODECS = {
    TRINO / "AggregateRequest.java": ("AggregateRequest", "Aggregate"),
    TRINO / "AggregateResult.java": ("AggregateResult",),
    CLIENT / "BridgeFailure.java": ("BridgeFailure",),
    TRINO / "ColumnDescription.java": ("Column",),
    TRINO / "Health.java": ("Health",),
    TRINO / "PartitionEntry.java": ("PartitionEntry",),
    TRINO / "Plan.java": ("Plan",),
    TRINO / "PlanRequest.java": ("PlanRequest",),
    TRINO / "ReaderSpec.java": ("ReaderSpec",),
    TRINO / "SortKey.java": ("SortKey",),
    TRINO / "SplitBatch.java": ("SplitBatch",),
    TRINO / "SystemPage.java": ("SystemPage",),
    TRINO / "TableDescription.java": ("Table",),
    HIVE / "FileBatch.java": ("SplitBatch",),
    HIVE / "FilePlan.java": ("Plan",),
    HIVE / "FileRequest.java": ("PlanRequest",),
    HIVE / "IndexedTables.java": ("IndexedTables",),
    HIVE / "ReaderSpec.java": ("ReaderSpec",),
    HIVE / "SkippableFiles.java": ("SkippableFiles",),
    HIVE / "TableVersion.java": ("Table", "Column"),
}
# What a Java class calls otherwise than bridge.thrift does.
ALIASES = {
    "dynamicFilterWaitMs": "dynamicFilterWaitMillis",
    "hint": "remedy",
    "maxWaitMs": "maxWaitMillis",
    "projectedColumns": "columns",
    "schemaName": "schema",
    "skipped": "count",
    "tableName": "table",
}
WRITES = re.compile(r"writer\.(\w+?)Field\((\d+), ?([^\n]*?)\)?;")
READS = re.compile(
    r"(?:case (\d+)(?: ->|:)\s+|\bid == (\d+)\) \{\s+if \(reader\.is)(?:(\w+) = reader\.is)?"
    r"\(WireType\.(\w+)"
)


def wire_type(type: str) -> str:
    """A type of bridge.thrift as its name on the wire."""
    simple = {"string": "STRING", "binary": "STRING", "i32": "I32", "i64": "I64"}
    simple |= {"bool": "BOOL", "double": "DOUBLE"}
    return simple.get(type) or type.partition("<")[0].upper().replace(type.upper(), "STRUCT")


def method_type(type: str) -> str:
    """A type of bridge.thrift as the method that writes a field of it."""
    if type.startswith("list"):
        return "stringList" if type == "list<string>" else "structList"
    return "stringMap" if type.startswith("map") else type


def words(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def named(variable: str, fields: set[tuple[int, str, str]]) -> bool:
    return any(variable in (name, ALIASES.get(name)) for _, _, name in fields)


def numbered(names: tuple[str, ...]) -> set[tuple[int, str, str]]:
    return {
        (field.number, field.type, words(name))
        for struct in names
        for name, field in STRUCTS[struct].items()
    }


@pytest.mark.parametrize("path", CODECS, ids=lambda path: f"{path.parts[-3]} {path.stem}")
def test_a_java_codec(path: Path) -> None:
    text = path.read_text()
    fields = numbered(CODECS[path])
    found = 0
    for kind, number, value in WRITES.findall(text):
        alike = {f for f in fields if f[0] == int(number) and method_type(f[1]) == kind}
        assert alike, f"{path.name} writes field {number} as {kind}"
        if re.fullmatch(r"[a-z]\w*", value):
            assert named(value, alike), value
        found += 1
    for case, equal, name, type in READS.findall(text):
        number = int(case or equal)
        alike = {f for f in fields if f[0] == number and wire_type(f[1]) == type}
        assert alike, f"{path.name} reads field {number} as {type}"
        assert not name or named(name, alike), name
        found += 1
    assert found, f"nothing of {path.name} was understood"


def test_no_java_codec_is_left_out() -> None:
    codec = re.compile(r"\b(void write\(BinaryWriter|read\(BinaryReader) ?\w*\)")
    found = {
        path
        for folder in (TRINO, HIVE, CLIENT)
        for path in folder.glob("*.java")
        if codec.search(path.read_text())
    }
    assert found - set(CODECS) <= {CLIENT / "Reply.java"}


def test_arguments_that_the_connector_writes() -> None:
    text = (TRINO / "PlannerClient.java").read_text()
    # One helper writes the two methods that list names of a schema.
    text = text.replace("call(method, ", 'call("list_tables", ')
    calls = re.findall(
        r'(?:call|exchange)\((?:\w+, )?"(\w+)", (.*?)(?<!\()WireType\.\w+,', text, re.S
    )
    assert {method for method, _ in calls} | {"list_views"} == set(METHODS) - {
        "list_skippable_files",
        "list_indexed_tables",
    }
    for method, arguments in calls:
        written = re.findall(r"(\w+)Field\((\d+),|field\(WireType\.(STRUCT), (\d+)\)", arguments)
        types = [(int(n or m), kind or "STRUCT") for kind, n, _, m in written]
        expected = [
            (field.number, method_type(field.type) if field.type.islower() else "STRUCT")
            for field in METHODS[method].values()
        ]
        assert types == expected, method


def test_the_compiled_code() -> None:
    for name, fields in STRUCTS.items():
        assert specified(getattr(ttypes, name)) == fields_of(fields), name
    for name, fields in METHODS.items():
        assert specified(getattr(Planner, f"{name}_args")) == fields_of(fields), name


def specified(cls: type) -> set[tuple[int, str, str]]:
    kinds = ("STRING", "I32", "I64", "BOOL", "DOUBLE", "STRUCT", "LIST", "MAP")
    names = {getattr(TType, kind): kind for kind in kinds}
    return {(f[0], f[2], names[f[1]]) for f in cls.thrift_spec if f}  # type: ignore[attr-defined]


def fields_of(fields: dict[str, Field]) -> set[tuple[int, str, str]]:
    return {(field.number, name, wire_type(field.type)) for name, field in fields.items()}
