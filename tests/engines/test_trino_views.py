"""Trino's conventions about what a metastore holds beside tables: comments, views, versions; and
numbers without sign.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, STRING, decimal
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.table.model import Column
from tests.engines.stack import Stack, register

pytestmark = pytest.mark.full

NUMBERS = [0, 1, None, 2**63 - 1, 2**63, 2**64 - 1]


def _view(name: str, parameters: dict[str, str], text: str) -> ttypes.Table:
    return ttypes.Table(
        tableName=name,
        dbName="commented",
        owner="alice",
        createTime=0,
        lastAccessTime=0,
        retention=0,
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("dummy", "string", "")],
            location="",
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.IgnoreKeyTextOutputFormat",
            compressed=False,
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(
                serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters=parameters,
        tableType="VIRTUAL_VIEW",
        viewOriginalText=text,
        viewExpandedText=text,
    )


@pytest.fixture(scope="module")
def commented(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Schema commented: table t with comments, a view of Trino and one of Hive."""
    directory = tmp_path_factory.mktemp("commented")
    numbers = pa.array(NUMBERS, pa.uint64())
    table = pa.table({"id": range(6), "s": list("abcdef"), "u": numbers})
    pq.write_table(table, directory / "f.parquet", use_dictionary=["s", "u"])
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database("commented")
    columns = (
        Column("id", BIGINT, "which one"),
        Column("s", STRING),
        Column("u", decimal(20, 0)),
    )
    register(stack, "commented", directory, columns)
    definition = {
        "originalSql": "SELECT id, s FROM bridge.laws.commented WHERE id > 2",
        "catalog": "bridge",
        "schema": "laws",
        "columns": [{"name": "id", "type": "bigint"}, {"name": "s", "type": "varchar"}],
        "comment": "the later ones",
        "owner": "bob",
        "runAsInvoker": False,
        "path": [],
    }
    encoded = base64.b64encode(json.dumps(definition).encode()).decode()
    made = {"presto_view": "true", "comment": "Presto View"}
    with MetastoreClient(stack.metastore_uri) as client:
        found = client.get_table("laws", "commented")
        found.dbName, found.tableName = "commented", "t"
        found.parameters = {**found.parameters, "comment": "a table with a comment"}
        client.create_table(found)
        client.create_table(_view("trinos", made, f"/* Presto View: {encoded} */"))
        client.create_table(_view("hives", {}, "SELECT 1"))
        client.create_table(_view("broken", made, "/* Presto View: e30= */"))
    yield directory


def conventions(stack: Stack) -> None:
    """What holds in every Trino."""
    assert stack.query("SHOW TABLES FROM commented") == [["broken"], ["hives"], ["t"], ["trinos"]]
    assert stack.query(
        "SELECT table_name, table_type FROM information_schema.tables"
        " WHERE table_schema = 'commented' ORDER BY 1"
    ) == [["broken", "VIEW"], ["hives", "VIEW"], ["t", "BASE TABLE"], ["trinos", "VIEW"]]
    assert stack.query("SELECT * FROM commented.trinos ORDER BY id") == [
        [3, "d"],
        [4, "e"],
        [5, "f"],
    ]
    assert stack.query("DESCRIBE commented.trinos") == [
        ["id", "bigint", "", ""],
        ["s", "varchar", "", ""],
    ]
    assert "SECURITY DEFINER" in stack.query("SHOW CREATE VIEW commented.trinos")[0][0]
    with pytest.raises(Exception, match=r"commented\.hives is a view of Hive"):
        stack.query("SELECT * FROM commented.hives")
    with pytest.raises(Exception, match=r"View commented\.broken cannot be read: it has no SQL"):
        stack.query("SELECT * FROM commented.broken")
    comments = dict(
        stack.query(
            "SELECT table_name, comment FROM system.metadata.table_comments"
            " WHERE catalog_name = 'bridge' AND schema_name = 'commented'"
        )
    )
    assert comments["t"] == "a table with a comment"
    assert comments["trinos"] == "the later ones"
    shown = stack.query("SHOW CREATE TABLE commented.t")[0][0]
    assert "COMMENT 'a table with a comment'" in shown and "COMMENT 'which one'" in shown
    assert stack.query("DESCRIBE commented.t")[0] == ["id", "bigint", "", "which one"]
    assert ["id", "which one"] in stack.query(
        "SELECT column_name, comment FROM information_schema.columns"
        " WHERE table_schema = 'commented' AND table_name = 't'"
    )
    for version in ("VERSION AS OF 1", "TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00 UTC'"):
        with pytest.raises(Exception, match=r"commented\.t keeps no older versions"):
            stack.query(f"SELECT * FROM commented.t FOR {version}")
        with pytest.raises(Exception, match=r"Table 'bridge\.commented\.none' does not exist"):
            stack.query(f"SELECT * FROM commented.none FOR {version}")


def numbers_without_sign(stack: Stack) -> None:
    """A decimal(20,0), as sync and Spark declare them, over 64 bits without sign."""
    wanted = [[i, None if n is None else Decimal(n)] for i, n in enumerate(NUMBERS)]
    off = {"pruning_enabled": "false"}
    for session in (None, off):
        assert stack.query("SELECT id, u FROM laws.commented ORDER BY id", session) == wanted
        assert stack.query("SELECT count(u), max(u) FROM laws.commented", session) == [
            [5, Decimal(2**64 - 1)]
        ]
        for n in (0, 2**63 - 1, 2**63, 2**64 - 1):
            sql = f"SELECT id FROM laws.commented WHERE u = DECIMAL '{n}'"
            assert stack.query(sql, session) == [[NUMBERS.index(n)]]
        sql = f"SELECT id FROM laws.commented WHERE u > DECIMAL '{2**63 - 1}' ORDER BY 1"
        assert stack.query(sql, session) == [[4], [5]]
        assert stack.query("SELECT id FROM laws.commented WHERE u IS NULL", session) == [[2]]


def test_comments_views_and_versions(stack: Stack, commented: Path) -> None:
    conventions(stack)


@pytest.mark.rule("36")
def test_36_filters_by_names_of_relations_that_cannot_be_read(
    stack: Stack, commented: Path
) -> None:
    """As tools send them: what can be told of the others is told. The engine itself leaves out one
    that is refused, where the filter names it alone.
    """
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database("filtered")
        for name in ("t", "trinos", "hives", "broken"):
            found = client.get_table("commented", name)
            found.dbName = "filtered"
            client.create_table(found)
        found = client.get_table("filtered", "t")
        found.tableName = "iceberg"
        found.parameters = {**found.parameters, "table_type": "ICEBERG"}
        client.create_table(found)
    names = ("t", "trinos", "hives", "broken", "iceberg", "none")
    sources = {
        "information_schema.tables": ("table_schema", "table_name"),
        "information_schema.columns": ("table_schema", "table_name"),
        "system.jdbc.tables": ("table_schem", "table_name"),
        "system.jdbc.columns": ("table_schem", "table_name"),
        "system.metadata.table_comments": ("schema_name", "table_name"),
    }
    for source, (schema, table) in sources.items():
        whole = f"SELECT DISTINCT {table} FROM {source} WHERE {schema} = 'filtered'"
        if not source.startswith("information"):
            catalog = "catalog_name" if "comments" in source else "table_cat"
            whole += f" AND {catalog} = 'bridge'"
        every = {name for (name,) in stack.query(whole)}
        assert {"t", "trinos"} <= every <= {*names}, source
        for asked in (*((name,) for name in names), names, ("iceberg", "hives"), ("t", "broken")):
            listed = ", ".join(f"'{name}'" for name in asked)
            told = {name for (name,) in stack.query(f"{whole} AND {table} IN ({listed})")}
            assert {"t", "trinos"} & {*asked} <= told <= every & {*asked}, (source, asked)


def test_numbers_without_sign(stack: Stack, commented: Path) -> None:
    numbers_without_sign(stack)


def test_both_on_the_newest_trino(stack_483: Stack, commented: Path) -> None:
    conventions(stack_483)
    numbers_without_sign(stack_483)
