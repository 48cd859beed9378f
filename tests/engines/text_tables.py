"""Tables of text files in the metastore, read by the connector and by Trino's own: the oracle."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trino

from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from tests.engines.stack import Stack

SCHEMA = "lines"
_QL = "org.apache.hadoop.hive.ql.io."
_SERDE = "org.apache.hadoop.hive.serde2."
TEXT_FILES = (
    "org.apache.hadoop.mapred.TextInputFormat",
    f"{_QL}HiveIgnoreKeyTextOutputFormat",
)
SEQUENCE_FILES = (
    "org.apache.hadoop.mapred.SequenceFileInputFormat",
    f"{_QL}HiveSequenceFileOutputFormat",
)
RC_FILES = (f"{_QL}RCFileInputFormat", f"{_QL}RCFileOutputFormat")
PARQUET_FILES = (
    f"{_QL}parquet.MapredParquetInputFormat",
    f"{_QL}parquet.MapredParquetOutputFormat",
)
CSV = f"{_SERDE}OpenCSVSerde"
TEXT = f"{_SERDE}lazy.LazySimpleSerDe"
JSON = "org.apache.hive.hcatalog.data.JsonSerDe"
HIVE_JSON = f"{_SERDE}JsonSerDe"
OPENX_JSON = "org.openx.data.jsonserde.JsonSerDe"
REGEX = f"{_SERDE}RegexSerDe"
RC_TEXT = f"{_SERDE}columnar.ColumnarSerDe"
RC_BINARY = f"{_SERDE}columnar.LazyBinaryColumnarSerDe"
PARQUET = f"{_QL}parquet.serde.ParquetHiveSerDe"

Columns = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows in an order of their own, or the error of a query."""

    rows: list[str] = field(default_factory=list)
    error: str = ""


@dataclass(frozen=True, slots=True)
class TextTables:
    """Makes tables of files below a directory and asks both connectors.

    Attributes:
        prefix: of the tables' names.
        release: another server, whose connector is asked in place of the first one's.
        schema: that is meant in queries.
    """

    stack: Stack
    root: Path
    prefix: str
    release: Stack | None = None
    schema: str = SCHEMA

    def files(self, name: str, contents: Mapping[str, bytes | str]) -> Path:
        """A directory with these files."""
        directory = self.root / name
        past = time.time() - 60
        for file, content in contents.items():
            path = directory / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.utime(path, (past, past))
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def table(
        self,
        name: str,
        columns: Columns,
        serde: str,
        directory: Path,
        parameters: Mapping[str, str] | None = None,
        table_parameters: Mapping[str, str] | None = None,
        classes: tuple[str, str] = TEXT_FILES,
        keys: Columns = (),
    ) -> str:
        """Registers a table; returns its name without the schema."""
        full = f"{self.prefix}_{name}"
        record = records.Table(
            tableName=full,
            dbName=SCHEMA,
            owner="test",
            sd=_descriptor(columns, serde, directory, parameters, classes),
            partitionKeys=[records.FieldSchema(n, t, "") for n, t in keys],
            parameters={"EXTERNAL": "TRUE", **(table_parameters or {})},
            tableType="EXTERNAL_TABLE",
        )
        with MetastoreClient(self.stack.metastore_uri) as client:
            client.create_database(SCHEMA)
            client.create_table(record)
        return full

    def partition(
        self,
        table: str,
        values: Sequence[str],
        columns: Columns,
        serde: str,
        directory: Path,
        parameters: Mapping[str, str] | None = None,
        partition_parameters: Mapping[str, str] | None = None,
        classes: tuple[str, str] = TEXT_FILES,
    ) -> None:
        part = records.Partition(
            values=list(values),
            dbName=SCHEMA,
            tableName=table,
            sd=_descriptor(columns, serde, directory, parameters, classes),
            parameters=dict(partition_parameters or {}),
        )
        with MetastoreClient(self.stack.metastore_uri) as client:
            client.add_partitions(SCHEMA, table, [part])

    def ask(self, catalog: str, sql: str) -> Answer:
        """``{t}`` in the SQL is replaced by the catalog and the schema."""
        asked = self.release if self.release and catalog == "bridge" else self.stack
        connection = trino.dbapi.connect(
            host="127.0.0.1",
            port=asked.trino_port,
            user="test",
            catalog=catalog,
            legacy_primitive_types=True,
        )
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("{t}", f"{catalog}.{self.schema}"))
            found = cursor.fetchall()
        except trino.exceptions.TrinoQueryError as error:
            return Answer(error=f"{error.error_name}: {error.message}")
        return Answer(self.json_of(found))

    @staticmethod
    def json_of(rows: Sequence[object]) -> list[str]:
        return sorted(json.dumps(row, default=repr, sort_keys=True) for row in rows)

    def same(self, sql: str) -> Answer:
        """Asks both: the same rows, or an error from both. Returns the connector's answer."""
        mine, stock = self.ask("bridge", sql), self.ask("hive", sql)
        assert bool(mine.error) == bool(stock.error), f"{sql}\nours {mine}\nstock {stock}"
        assert "SKIPBRIDGE_INTERNAL" not in mine.error, mine.error
        assert mine.rows == stock.rows, f"{sql}\nours {mine}\nstock {stock}"
        return mine

    def same_columns(self, table: str, columns: Sequence[str]) -> dict[str, Answer]:
        """All columns, each column, and the number of rows; the answers by what was asked."""
        found = {
            "*": self.same(f"SELECT * FROM {{t}}.{table}"),
            "count": self.same(f"SELECT count(*) FROM {{t}}.{table}"),
        }
        if found["*"].error and len(columns) > 1:
            found |= {c: self.same(f"SELECT {c} FROM {{t}}.{table}") for c in columns}
        return found


def _descriptor(
    columns: Columns,
    serde: str,
    directory: Path,
    parameters: Mapping[str, str] | None,
    classes: tuple[str, str],
) -> records.StorageDescriptor:
    return records.StorageDescriptor(
        cols=[records.FieldSchema(n, t, "") for n, t in columns],
        location=f"file://{directory}",
        inputFormat=classes[0],
        outputFormat=classes[1],
        numBuckets=-1,
        serdeInfo=records.SerDeInfo(serializationLib=serde, parameters=dict(parameters or {})),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
