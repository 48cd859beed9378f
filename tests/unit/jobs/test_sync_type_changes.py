"""Changes of types that metastores refuse, as tried with 2.3.10 and 4.0.1."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.kernel.errors import SchemaConflict
from bridge.metastore._gen import ttypes
from bridge.sync.schemas.type_changes import SETTING, refuse_type_changes


class Server:
    def __init__(self, version: str, value: str | None) -> None:
        self.version, self.value = version, value

    def get_config_value(self, name: str, default: str) -> str:
        assert name in (SETTING, SETTING.removeprefix("hive."))
        known = name == SETTING or self.version[0] == "4"
        return default if self.value is None or not known else self.value


def ask(version: str, value: str | None, *types: str) -> list[str]:
    before, after = ([ttypes.FieldSchema("x", t)] for t in types)
    client: Any = Server(version, value)
    return refuse_type_changes(client, "d.t", before, after)


NESTED = [
    ("struct<a:int>", "struct<a:int,b:int>"),
    ("struct<a:int>", "struct<a:bigint>"),
    ("array<int>", "array<bigint>"),
    ("array<struct<a:int>>", "array<struct<a:int,b:string>>"),
    ("map<string,int>", "map<string,bigint>"),
]
FINE = [
    ("int", "bigint"),
    ("tinyint", "smallint"),
    ("float", "double"),
    ("decimal(10,2)", "decimal(12,2)"),
    ("int", "decimal(20,0)"),
    ("varchar(5)", "string"),
    ("string", "varchar(5)"),
    ("timestamp", "string"),
    ("struct<A:int>", "struct<a:int>"),
    ("int", "string"),
]
REFUSED = [
    ("date", "timestamp"),
    ("binary", "string"),
    ("bigint", "int"),
    ("string", "int"),
    ("bigint", "timestamp"),
]


@pytest.mark.parametrize(("old", "new"), [*NESTED, *FINE, *REFUSED])
@pytest.mark.parametrize("version", ["2.3.10", "4.0.1"])
def test_what_servers_refuse_is_known_and_named(version: str, old: str, new: str) -> None:
    refused = (old, new) in REFUSED or ((old, new) in NESTED and version[0] == "2")
    assert ask(version, "false", old, new) == []
    doubts = ask(version, None, old, new)
    assert bool(doubts) is ((old, new) not in FINE)
    assert all("may be refused" in line and SETTING in line for line in doubts)
    if not refused:
        assert ask(version, "true", old, new) == []
        return
    with pytest.raises(SchemaConflict, match=SETTING) as error:
        ask(version, "TRUE", old, new)
    assert f"column x {old} -> {new}" in error.value.message


def test_columns_are_compared_at_their_positions() -> None:
    client: Any = Server("4.0.1", "true")
    one, other = ttypes.FieldSchema("a", "int"), ttypes.FieldSchema("b", "string")
    with pytest.raises(SchemaConflict, match="column a string -> int"):
        refuse_type_changes(client, "d.t", [one, other], [other, one])
    assert refuse_type_changes(client, "d.t", [one], [one, other]) == []
