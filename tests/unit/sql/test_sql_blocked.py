"""Operations that tables of segments do not have: each is refused by name, with its remedy."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import OperationBlocked
from bridge.segments.sql.blocked import BLOCKED, operation_blocked
from bridge.segments.sql.parser import parse

CREATE = "CREATE TABLE t (a int) STORED BY 'CarbonData'"
CASES = [
    ("LOAD DATA", "LOAD DATA INPATH 'path/to/data1'\nINTO TABLE t"),
    ("LOAD DATA", "LOAD DATA LOCAL INPATH 'p' OVERWRITE INTO TABLE t OPTIONS('HEADER'='true')"),
    ("INSERT", "INSERT INTO t VALUES (1)"),
    ("INSERT", "INSERT INTO TABLE t SELECT * FROM u"),
    ("INSERT", "insert overwrite table t select 1"),
    ("UPDATE", "UPDATE t SET a = 1"),
    ("UPDATE", "UPDATE t SET (a) = (a + 1) WHERE b = 'x'"),
    ("DELETE", "DELETE FROM t"),
    ("DELETE", "DELETE FROM TABLE t WHERE a = 1"),
    ("DELETE", "DELETE FROM t WHERE SEGMENT.STATUS = 'x'"),
    ("MERGE", "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE"),
    ("TRUNCATE", "TRUNCATE TABLE t"),
    ("CREATE TABLE AS SELECT", f"{CREATE} AS SELECT * FROM u"),
    ("CREATE TABLE AS SELECT", "CREATE TABLE t STORED BY 'CarbonData' AS SELECT 1"),
    ("ADD COLUMNS", "ALTER TABLE t ADD COLUMNS (b int)"),
    ("REPLACE COLUMNS", "ALTER TABLE t REPLACE COLUMNS (b int)"),
    ("RENAME COLUMN", "ALTER TABLE t CHANGE a b int"),
    ("RENAME COLUMN", "ALTER TABLE t RENAME COLUMN a TO b"),
    ("MERGE INDEX", "ALTER TABLE t COMPACT 'SEGMENT_INDEX'"),
    ("MERGE INDEX", "ALTER TABLE t MERGE INDEX"),
    ("PARTITION", f"{CREATE} PARTITIONED BY (b string)"),
    ("PARTITION", f"{CREATE} TBLPROPERTIES('format'='csv', 'PARTITION_TYPE'='HASH')"),
    ("PARTITION", "ALTER TABLE t ADD PARTITION (b='1')"),
    ("PARTITION", "ALTER TABLE t ADD IF NOT EXISTS PARTITION (b='1')"),
    ("PARTITION", "ALTER TABLE t DROP PARTITION (b='1')"),
    ("PARTITION", "ALTER TABLE t DROP IF EXISTS PARTITION (b='1')"),
    ("PARTITION", "ALTER TABLE t SPLIT PARTITION(2) INTO ('2', '3')"),
    ("PARTITION", "ALTER TABLE t PARTITION (b='1') SET LOCATION 'x'"),
    ("PARTITION", "ALTER TABLE t RECOVER PARTITIONS"),
    ("PARTITION", "SHOW PARTITIONS t"),
    ("PARTITION", "MSCK REPAIR TABLE t"),
    ("BUCKETING", f"{CREATE} CLUSTERED BY (a) INTO 4 BUCKETS"),
    ("BUCKETING", f"{CREATE} TBLPROPERTIES('format'='csv', 'BUCKETNUMBER'='4')"),
    ("BUCKETING", f"{CREATE} TBLPROPERTIES('format'='csv', 'bucketcolumns'='a')"),
    ("BUCKETING", f"{CREATE} SKEWED BY (a) ON (1)"),
    ("BUCKETING", "ALTER TABLE t CLUSTERED BY (a) INTO 4 BUCKETS"),
    ("BUCKETING", "ALTER TABLE t NOT CLUSTERED"),
    ("BUCKETING", "ALTER TABLE t SKEWED BY (a) ON (1)"),
    ("BUCKETING", "ALTER TABLE t SET SKEWED LOCATION (1='x')"),
    ("SET LOCATION", "ALTER TABLE t SET LOCATION 's3://b/d'"),
    ("SET FILEFORMAT", "ALTER TABLE t SET FILEFORMAT ORC"),
    ("SET SERDEPROPERTIES", "ALTER TABLE t SET SERDEPROPERTIES ('field.delim'='|')"),
    ("SET SERDEPROPERTIES", "ALTER TABLE t UNSET SERDEPROPERTIES ('field.delim')"),
    ("SET SERDEPROPERTIES", "ALTER TABLE t SET SERDE 'x.Y' WITH SERDEPROPERTIES ('a'='b')"),
    ("PREAGGREGATE", "CREATE DATAMAP d ON TABLE t USING 'preaggregate' AS SELECT sum(a) FROM t"),
    ("TIMESERIES", "CREATE DATAMAP d ON TABLE t USING 'timeseries' DMPROPERTIES('x'='y')"),
    ("LUCENE", "CREATE DATAMAP d ON TABLE t USING 'lucene' DMPROPERTIES('INDEX_COLUMNS'='a')"),
    ("LUCENE", "CREATE INDEX i ON TABLE t (a) AS 'lucene'"),
    ("CONCURRENT REBUILD", "REFRESH MATERIALIZED VIEW CONCURRENTLY t"),
    ("CONCURRENT REBUILD", "REBUILD DATAMAP t CONCURRENTLY"),
    ("EXTERNAL TABLE", "CREATE EXTERNAL TABLE t (a int) STORED AS csv LOCATION 's3://b/d'"),
]
ELSEWHERE = {"SET TBLPROPERTIES", "UNSET TBLPROPERTIES"}
"""The parser cannot know these: they depend on the table's format (`test_sql_run.py`)."""


@pytest.mark.parametrize(("operation", "text"), CASES, ids=[text for _, text in CASES])
def test_a_blocked_statement_is_refused_by_name(operation: str, text: str) -> None:
    # What comes before it in the same text does not run either.
    with pytest.raises(OperationBlocked) as caught:
        parse(f"DESC other; {text}; DESC another")
    wanted = operation_blocked(operation, "t")
    assert caught.value.message.startswith(
        operation_blocked(operation, "").message.removesuffix(" on ")
    )
    assert caught.value.code == "OPERATION_BLOCKED"
    assert " on t" in caught.value.message
    assert caught.value.hint == wanted.hint


def test_every_blocked_operation_has_a_case() -> None:
    assert {operation for operation, _ in CASES} | ELSEWHERE == set(BLOCKED)
    assert all(BLOCKED.values())
