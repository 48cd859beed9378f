"""The design document's whole story by its own statements, with a real metastore."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import bridge
from bridge.app.cli.main import cli
from bridge.formats.registry import file_format
from bridge.kernel.errors import TableNotFound
from bridge.segments.sql.parser import parse
from tests.engines.conftest import RunningMetastore

pytestmark = pytest.mark.full

Sql = Callable[[str], Result]
ROWS = 20
VIEW = """CREATE DATAMAP fact_mv
using 'mv'
DMPROPERTIES(
  'SORT_COLUMNS'='col1, col2',
  'DICTIONATY_INCLUDE'='col2',
  'NO_INVERTED_INDEX'='col1, col2',
  'TABLE_BLOCKSIZE'='128MB',
  'SORT_SCOPE'='local_sort')
as
  'SELECT col1, col2 FROM fact_table';
"""
PAGE = (Path(__file__).parents[2] / "docs/reference/sql.md").read_text()


@pytest.fixture
def sql(
    metastore: RunningMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sql]:
    """``skipbridge sql`` in an empty directory, the schema story being new."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", metastore.uri)
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    with metastore.client() as client:
        for schema in ("story", "lake"):
            client.create_database(schema)

    def run(text: str) -> Result:
        return CliRunner().invoke(cli, ["sql", "--local", "--schema", "story", text])

    yield run
    with metastore.client() as client:
        for schema in ("story", "lake"):
            for table in client.get_all_tables(schema):
                run(f"DROP TABLE {schema}.{table}")
                with contextlib.suppress(TableNotFound):  # dropped, unless it was a plain one
                    client.drop_table(schema, table)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result, code: str, said: str) -> None:
    assert f"error {code}: " in result.stderr and said in result.stderr, result.output
    assert "\n  -> " in result.stderr and result.stdout == "" and result.exit_code == 2


def write_facts(path: Path, format: str, first: int) -> None:
    """A file of ROWS records of which col1 counts up, col2 is a word and col3 is cold."""
    ids = range(first, first + ROWS)
    data = pa.table({"col1": ids, "col2": [f"w{i % 7}" for i in ids], "col3": [-i for i in ids]})
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "csv":
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        pyarrow.csv.write_csv(data, path, options)
    else:
        pq.write_table(data, path)
    past = time.time() - 3600
    os.utime(path, (past, past))


def checksums(root: Path) -> dict[str, tuple[float, str]]:
    return {
        str(p): (p.stat().st_mtime, hashlib.sha256(p.read_bytes()).hexdigest())
        for p in sorted(root.rglob("*"))
        if p.is_file()
    }


def planned(metastore: RunningMetastore, where: str, table: str = "story.fact_table") -> list[str]:
    """Paths of the files that a query reads."""
    with bridge.connect(metastore_uri=metastore.uri) as session:
        found = session.table(table).scan(where).files()["path"].to_pylist()
    return [str(path).removeprefix("file://") for path in found]


def read(metastore: RunningMetastore, table: str = "story.fact_table") -> pa.Table:
    """All rows. CSV files are read here: the Python API does not read them."""
    paths = planned(metastore, "true", table)
    if all(path.endswith(".csv") for path in paths):
        names = pyarrow.csv.ReadOptions(column_names=["col1", "col2", "col3"])
        found = pa.concat_tables([pyarrow.csv.read_csv(path, names) for path in paths])
        with bridge.connect(metastore_uri=metastore.uri) as session:
            found = found.select(session.table(table).schema.names)
    else:
        with bridge.connect(metastore_uri=metastore.uri) as session:
            found = session.table(table).scan().to_arrow()
    return found.sort_by("col1").combine_chunks()


def reads_view(metastore: RunningMetastore) -> bool:
    """Whether a query of the hot columns reads a view's files, and none of the facts."""
    with bridge.connect(metastore_uri=metastore.uri) as session:
        scan = session.table("story.fact_table").scan("col1 >= 0", columns=["col1", "col2"])
        found = {"/_segments/views/" in path for path in scan.files()["path"].to_pylist()}
    assert len(found) == 1
    return found.pop()


def recorded(metastore: RunningMetastore, table: str) -> list[tuple[str, str]]:
    """The columns that the metastore tells."""
    with metastore.client() as client:
        return [(c.name, c.type) for c in client.get_table("story", table).sd.cols]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_the_documents_story(
    sql: Sql, metastore: RunningMetastore, tmp_path: Path, format: str
) -> None:
    for day in range(3):
        for part in range(2):
            first = 1000 * day + 100 * part
            write_facts(tmp_path / f"path/to/data{day}/deeper/{part}.{format}", format, first)
    facts = checksums(tmp_path / "path")
    options = "'csv.delimiter'=',',\n  'csv.header'='col1,col2,col3'"
    properties = f"'sourceType'='{format}'" + (f",\n  {options}" if format == "csv" else "")
    done(
        sql(
            f"""CREATE TABLE fact_table (
  col1 bigint, col2 string, col3 {"int" if format == "csv" else "bigint"})
STORED BY 'CarbonData'
TBLPROPERTIES(
  {properties});"""
        )
    )
    indexed = file_format(format).is_indexed
    if indexed:
        done(
            sql("""CREATE DATAMAP fact_dm1
ON TABLE fact_table
using 'minmax';

CREATE DATAMAP fact_dm2
ON TABLE fact_table
using 'bloomfilter'
DMPROPERTIES(
  'INDEX_COLUMNS'='col1');""")
        )
    done(sql(VIEW))
    made = done(
        sql("""CREATE DATAMAP mv_dm1
ON TABLE fact_mv
using 'bloomfilter'
DMPROPERTIES(
  'INDEX_COLUMNS'='col1');""")
    )
    assert "mv_dm1 on fact_mv" in made
    done(sql("ALTER TABLE fact_table\nADD SEGMENT LOCATION 'path/to/data0'"))
    done(sql("ALTER TABLE fact_table\nADD SEGMENT LOCATION 'path/to/data1,path/to/data2'"))
    whole = read(metastore)
    assert whole["col1"].to_pylist() == [
        1000 * d + 100 * p + i for d in range(3) for p in range(2) for i in range(ROWS)
    ]
    assert len(planned(metastore, "col1 = 1105")) == (1 if indexed else 6)

    shown = done(sql("SHOW SEGMENTS FOR TABLE fact_table")).splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["1", "Success"], ["0", "Success"]]
    assert all("fact_mv: built" in line for line in shown[1:])
    assert reads_view(metastore)
    told = done(sql("DESC FORMATTED fact_table"))
    assert re.search(rf"## format +{format}\n", told) and re.search(r"## files +6\n", told)
    assert indexed == ("## index fact_dm2" in told)

    shown = done(sql("SHOW DATAMAP ON TABLE fact_table; SHOW INDEXES ON fact_mv"))
    assert "fact_mv" in shown and shown.count("mv_dm1") == 2
    done(sql("ALTER MATERIALIZED VIEW fact_mv DISABLE"))
    assert not reads_view(metastore)
    done(sql("ALTER MATERIALIZED VIEW fact_mv ENABLE; REBUILD DATAMAP fact_mv"))
    assert reads_view(metastore)

    # Compaction maps files to another segment; queries and facts stay as they are.
    done(sql("ALTER TABLE fact_table COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (0,1)"))
    assert read(metastore).equals(whole)
    assert len(planned(metastore, "col1 = 1105")) == (1 if indexed else 6)
    done(sql("CLEAN FILES FOR TABLE fact_table"))
    refused(sql("DELETE FROM TABLE fact_table WHERE SEGMENT.ID IN (0)"), "SEGMENT_NOT_FOUND", "0")

    assert reads_view(metastore)
    refused(sql("ALTER TABLE fact_table DROP COLUMNS(col2)"), "INVALID_REQUEST", "fact_mv")
    done(sql("DROP DATAMAP fact_mv"))
    assert "fact_mv" not in done(sql("SHOW MATERIALIZED VIEWS"))

    # Columns by name: the others keep their values, in the metastore's record too.
    done(sql("ALTER TABLE fact_table DROP COLUMNS(col2)"))
    if format == "csv":
        done(sql("ALTER TABLE fact_table CHANGE col3 col3 bigint"))
    assert read(metastore).equals(whole.drop_columns(["col2"]))
    assert recorded(metastore, "fact_table") == [("col1", "bigint"), ("col3", "bigint")]
    done(sql("ALTER TABLE fact_table RENAME TO detail"))
    refused(sql("DESC fact_table"), "TABLE_NOT_FOUND", "fact_table")
    if indexed:
        done(sql("REBUILD DATAMAP fact_dm1 ON TABLE detail"))
    assert len(planned(metastore, "col1 >= 1000", "story.detail")) == (4 if indexed else 6)
    if indexed:
        shown = done(sql("SHOW DATAMAP ON TABLE detail"))
        assert "fact_dm1" in shown and "fact_dm2" in shown
        done(sql("DROP DATAMAP fact_dm2 ON TABLE detail; DROP DATAMAP fact_dm1 ON TABLE detail"))
    done(sql("ALTER TABLE detail DROP COLUMNS(col1)"))
    assert recorded(metastore, "detail") == [("col3", "bigint")]
    done(sql("DELETE FROM TABLE detail WHERE SEGMENT.STARTTIME BEFORE '2999-01-01 00:00:00'"))
    assert planned(metastore, "true", "story.detail") == []
    done(sql("DROP TABLE detail"))
    refused(sql("SHOW SEGMENTS ON detail"), "TABLE_NOT_FOUND", "detail")
    assert checksums(tmp_path / "path") == facts


def test_a_plain_external_table_takes_no_segment(sql: Sql, tmp_path: Path) -> None:
    write_facts(tmp_path / "plain/0.parquet", "parquet", 0)
    write_facts(tmp_path / "more/0.parquet", "parquet", 100)
    made = CliRunner().invoke(
        cli, ["table", "create", "story.plain", "--location", str(tmp_path / "plain")]
    )
    assert made.exit_code == 0, made.output
    for text in (
        "ALTER TABLE plain ADD SEGMENT LOCATION 'more'",
        "SHOW SEGMENTS FOR TABLE plain",
        "CREATE DATAMAP d ON TABLE plain USING 'minmax'",
        "ALTER TABLE plain COMPACT 'MINOR'",
        "ALTER TABLE plain DROP COLUMNS(col2)",
        "ALTER TABLE plain RENAME TO other",
        "DROP TABLE plain",
        "CLEAN FILES FOR TABLE plain",
    ):
        refused(sql(text), "OPERATION_BLOCKED", "story.plain")
    refused(sql("CREATE TABLE plain (a int) STORED AS csv"), "TABLE_ALREADY_EXISTS", "plain")
    assert "already" in done(sql("CREATE TABLE IF NOT EXISTS plain (a int) STORED AS csv"))


def test_a_record_that_lost_its_properties_is_still_a_table_of_segments(
    sql: Sql, metastore: RunningMetastore, tmp_path: Path
) -> None:
    """Hive before 4.0 lets anybody unset them; taken for a plain directory, it would be empty."""
    write_facts(tmp_path / "facts/0.parquet", "parquet", 0)
    done(sql("CREATE TABLE fact_table (col1 bigint) STORED AS parquet"))
    done(sql("ALTER TABLE fact_table ADD SEGMENT 'facts'"))
    with metastore.client() as client:
        record = client.get_table("story", "fact_table")
        for name in ("skipbridge.table_format", "storage_handler"):
            del record.parameters[name]
            client.alter_table("story", "fact_table", record)
            assert read(metastore)["col1"].to_pylist() == list(range(ROWS))


def test_a_record_of_an_earlier_version_is_written_anew(
    sql: Sql, metastore: RunningMetastore, tmp_path: Path
) -> None:
    """It named the SerDe of the fact files; Hive before 4.0 lets anybody change it by hand."""
    write_facts(tmp_path / "facts/0.parquet", "parquet", 0)
    done(sql("CREATE TABLE fact_table (col1 bigint) STORED AS parquet"))
    done(sql("ALTER TABLE fact_table ADD SEGMENT 'facts'"))

    def told() -> tuple[str, str, str]:
        with metastore.client() as client:
            record = client.get_table("story", "fact_table")
        names = ("skipbridge.table_format", "storage_handler")
        return record.sd.serdeInfo.serializationLib, *(record.parameters[n] for n in names)

    def doctor() -> str:
        return CliRunner().invoke(cli, ["doctor", "story.fact_table", "--all"]).stdout

    right = told()
    with metastore.client() as client:
        record = client.get_table("story", "fact_table")
        record.sd.serdeInfo.serializationLib = (
            "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
        )
        client.alter_table("story", "fact_table", record)
    assert told() != right
    assert "Hive cannot read the table" in doctor()
    mended = done(sql("ALTER TABLE fact_table REFRESH SEGMENTS"))
    assert "0 changed files" in mended and told() == right
    assert "Hive opens the table by it" in doctor()


def examples() -> list[tuple[str, list[str]]]:
    """The statements of each chapter of the reference page."""
    found = []
    for chapter in PAGE.split("\n## ")[1:]:
        blocks = re.findall(r"^```sql\n(.*?)^```", chapter, re.M | re.S)
        statements = [str(each) for block in blocks for each in parse(block)]
        if statements:
            found.append((chapter.splitlines()[0], statements))
    return found


@pytest.mark.parametrize(("chapter", "statements"), examples())
def test_every_example_of_the_reference_runs(
    sql: Sql, tmp_path: Path, chapter: str, statements: list[str]
) -> None:
    if not file_format("csv").is_indexed and chapter != "Tables":
        pytest.skip("CSV files have no indexes yet")
    for name in ("data/monday/0", "data/tuesday/a", *(f"old/{i}/0" for i in range(4))):
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1,rome,10\n2,oslo,20\n")
        past = time.time() - 3600
        os.utime(path, (past, past))
    facts = checksums(tmp_path)
    create = dict(examples())["Tables"][0]
    if chapter != "Tables":
        done(sql(create))
        for i in range(4):
            done(sql(f"ALTER TABLE lake.calls ADD SEGMENT 'old/{i}'"))
    for statement in statements:
        done(sql(statement))
    assert facts.items() <= checksums(tmp_path).items()
