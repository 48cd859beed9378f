"""A catalog that is Trino's hive connector too: ACID tables, which HiveServer2 and Trino write.

A metastore, a HiveServer2 and a Trino of its own: transactions need a schema that others lack.
"""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.hive.server import HiveSession
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.servers.java import find_jdk
from bridge.servers.maven import Artifact, artifact_file
from bridge.servers.process import LOOPBACK
from tests.engines.catalogs import Catalogs, running_catalogs
from tests.engines.stack import ask
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)

pytestmark = pytest.mark.full

_SCHEMA = "scripts/metastore/upgrade/derby/hive-schema-4.0.0.derby.sql"
_DERBY = "10.14.2.0"
_TRANSACTIONS = {
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    # Else files of deletes have names under which Trino's hive connector does not find them.
    "hive.acid.direct.insert.enabled": "false",
    "hive.stats.autogather": "false",
}


@dataclass(slots=True)
class Acid:
    """Catalogs and a session of HiveServer2 over one metastore that keeps transactions."""

    catalogs: Catalogs
    hive: HiveSession

    def same(self, table: str) -> list[list[Any]]:
        """Hive's reader answers; the rows are the hive connector's and HiveServer2's."""
        sql = f"SELECT * FROM {table}"
        self.catalogs.same(sql, "hive")
        rows = sorted(self.catalogs.front(sql), key=repr)
        assert rows == sorted(map(list, self.hive.query(sql)), key=repr)
        return rows


@pytest.fixture(scope="module")
def acid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acid]:
    directory = tmp_path_factory.mktemp("acid")
    _create_schema(directory / "metastore_db", directory)
    spec = MetastoreSpec(
        directory, properties={"datanucleus.schema.autoCreateAll": "false"}, port=0
    )
    with ExitStack() as stack:
        metastore = stack.enter_context(start_metastore_for_hiveserver2(spec))
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        server = stack.enter_context(
            start_hiveserver2(HiveServer2Spec(directory / "hs2", uri, 0, properties=_TRANSACTIONS))
        )
        catalogs = stack.enter_context(running_catalogs(uri, directory / "catalogs"))
        session = HiveSession(f"{LOOPBACK}:{server.port}")
        stack.enter_context(session)
        catalogs.hive("CREATE SCHEMA acid")
        yield Acid(catalogs, session)


def _create_schema(database: Path, directory: Path) -> None:
    """Hive's own script, which makes the tables of transactions too."""
    name = "hive-standalone-metastore-server"
    archive = artifact_file(Artifact("org.apache.hive", name, "4.0.1", "tar.gz", "bin"))
    script = directory / "schema.sql"
    with tarfile.open(archive) as packed:
        [member] = [m for m in packed.getmembers() if m.name.endswith(_SCHEMA)]
        found = packed.extractfile(member)
        assert found is not None
        script.write_bytes(found.read())
    jars = [
        str(artifact_file(Artifact("org.apache.derby", name, _DERBY)))
        for name in ("derby", "derbytools")
    ]
    url = f"-Dij.database=jdbc:derby:{database};create=true"
    main = ("-cp", ":".join(jars), "org.apache.derby.tools.ij", str(script))
    log = f"-Dderby.stream.error.file={directory / 'derby.log'}"
    subprocess.run(
        [find_jdk(17, 24).java, url, log, *main], check=True, capture_output=True, timeout=120
    )


def _written(acid: Acid, name: str, kind: str = "") -> str:
    """A partitioned ACID table that HiveServer2 has written three times."""
    acid.hive.query(
        f"CREATE TABLE {name} (a bigint, b string) PARTITIONED BY (k int) STORED AS ORC"
        f" TBLPROPERTIES ('transactional' = 'true'{kind})"
    )
    for k in (1, 2):
        acid.hive.query(f"INSERT INTO {name} PARTITION (k = {k}) VALUES (1, 'x'), (2, NULL)")
    acid.hive.query(f"INSERT INTO {name} PARTITION (k = 1) VALUES (3, 'z')")
    return name


def test_rows_that_hiveserver2_changed(acid: Acid) -> None:
    table = _written(acid, "acid.changed")
    assert len(acid.same(table)) == 5
    acid.hive.query(f"UPDATE {table} SET b = 'new' WHERE a = 2")
    acid.hive.query(f"DELETE FROM {table} WHERE a = 1 AND k = 1")
    rows = [[2, "new", 1], [2, "new", 2], [3, "z", 1], [1, "x", 2]]
    assert acid.same(table) == sorted(rows, key=repr)


def test_rows_of_a_table_of_inserts(acid: Acid) -> None:
    table = _written(acid, "acid.inserts", ", 'transactional_properties' = 'insert_only'")
    assert len(acid.same(table)) == 5
    acid.hive.query(f"INSERT OVERWRITE TABLE {table} PARTITION (k = 1) VALUES (9, 'only')")
    assert acid.same(table) == [[1, "x", 2], [2, None, 2], [9, "only", 1]]


def test_statements_that_change_rows(acid: Acid) -> None:
    """Each does what it does through the hive connector, to a table written alike."""
    ours, theirs = (_written(acid, f"acid.{name}") for name in ("ours", "theirs"))
    for statement in (
        "INSERT INTO {t} VALUES (4, 'four', 3)",
        "UPDATE {t} SET b = b || '!' WHERE a > 1 AND k < 3",
        "DELETE FROM {t} WHERE a = 3",
        "MERGE INTO {t} AS t USING (VALUES (1, 'm'), (7, 'n')) AS v (a, b) ON t.a = v.a"
        " WHEN MATCHED AND k = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET b = v.b"
        " WHEN NOT MATCHED THEN INSERT (a, b, k) VALUES (v.a, v.b, 2)",
        "DELETE FROM {t} WHERE k = 1",
        "DELETE FROM {t} WHERE k IN (SELECT max(k) FROM {t})",
        "INSERT INTO {t} SELECT a + 10, b, k FROM {t}",
    ):
        ask(acid.catalogs.port, statement.format(t=theirs), "hive")
        acid.catalogs.front(statement.format(t=ours))
        assert acid.same(ours) == acid.same(theirs), statement
    for table, catalog in ((theirs, "hive"), (ours, "front")):
        ask(acid.catalogs.port, f"DELETE FROM {table}", catalog)
        assert acid.same(table) == []
