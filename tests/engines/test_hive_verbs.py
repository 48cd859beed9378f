"""`skipbridge hive`: hook, unhook and ddl against real metastores, 2.3.10 and 4.0.1."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridge.cli.main import cli
from bridge.config import Config, Setting
from bridge.errors import MetastoreFailure
from bridge.jobs.hive import hook_table, open_hooked, silent
from bridge.metastore._gen import ttypes
from bridge.metastore.hooks import ORIGINAL_PROPERTY, is_hooked, is_marked
from bridge.table.partition import NULL_MARKER
from tests.engines.test_metastore import ORC, PARQUET, SPECIAL, TEXT, Shop, descriptor

pytestmark = pytest.mark.full

PARQUET_HOOK = "io.skipbridge.hive.BridgeParquetInputFormat"
PARTITIONS = 200
Snapshot = tuple[ttypes.Table, dict[tuple[str, ...], ttypes.Partition]]


class Verbs:
    """One metastore, a database in it, and the command line set to it."""

    def __init__(self, uri: str, shop: Shop) -> None:
        self.uri = uri
        self.shop = shop
        self.client = shop.client
        self.config = Config({"metastore.uri": Setting(uri, "test")})

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(cli, ["hive", *words, "--metastore-uri", self.uri])
        assert "Traceback" not in result.output, result.output
        return result

    def report(self, *words: str) -> dict[str, object]:
        result = self.run(*words, "--output", "json")
        assert result.exit_code in (0, 3), result.output
        report: dict[str, object] = json.loads(result.stdout)
        assert (result.exit_code == 3) == bool(report.get("left")), result.output
        return report

    def name(self, table: str) -> str:
        return f"{self.shop.name}.{table}"

    def snapshot(self, table: str) -> Snapshot:
        record = self.client.get_table(self.shop.name, table)
        if not record.partitionKeys:
            return record, {}
        names = self.client.get_partition_names(self.shop.name, table)
        found = self.client.get_partitions_by_names(self.shop.name, table, names)
        return record, {tuple(p.values): p for p in found.partitions}

    def hooked(self, table: str) -> int:
        return sum(is_hooked(p.sd) for p in self.snapshot(table)[1].values())

    def first_is_hooked(self, table: str) -> bool:
        found = self.client.get_partitions_by_names(self.shop.name, table, ["p=0000"])
        return is_hooked(found.partitions[0].sd)

    def many(self, table: str, count: int) -> None:
        """A table of so many partitions."""
        self.shop.table(table, "p")
        parts = [self.shop.partition(table, [f"{i:04d}"]) for i in range(count)]
        for start in range(0, count, 100):
            self.client.add_partitions(self.shop.name, table, parts[start : start + 100])


@pytest.fixture(params=["metastore", "metastore_401"])
def verbs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Verbs]:
    running = request.getfixturevalue(request.param)
    with running.client() as client:
        yield Verbs(running.uri, Shop(client, tmp_path))


def before_4(verbs: Verbs) -> bool:
    return not verbs.client.get_version().startswith("4.")


def special_table(verbs: Verbs) -> str:
    """Partitions of strange names, of other formats, with properties and statistics."""
    shop = verbs.shop
    statistics = {"numFiles": "3", "numRows": "30", "totalSize": "999"}
    shop.table("special", "p", "q", parameters={"EXTERNAL": "TRUE", "note": "ä'\\x", **statistics})
    parts = [shop.partition("special", list(values)) for values in SPECIAL]
    parts[0].parameters = {**statistics, "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    parts.append(shop.partition("special", ["orc", "1"], classes=ORC))
    bucketed = shop.partition("special", ["bucketed", "1"])
    bucketed.sd.numBuckets, bucketed.sd.bucketCols = 4, ["k"]
    parts.append(bucketed)
    old = shop.partition(
        "special", ["old", "1"], classes=("parquet.hive.DeprecatedParquetInputFormat", *PARQUET[1:])
    )
    parts.append(old)
    verbs.client.add_partitions(shop.name, "special", parts)
    return "special"


def test_hook_takes_every_partition_and_unhook_is_exact(verbs: Verbs) -> None:
    table = special_table(verbs)
    before = verbs.snapshot(table)
    hookable = len(SPECIAL) + 1

    planned = verbs.report("hook", verbs.name(table), "--dry-run")
    assert verbs.snapshot(table) == before, "a dry run alters nothing"
    assert planned["partitions"] == hookable + 2 and planned["altered"] == hookable

    done = verbs.report("hook", verbs.name(table))
    assert {**done, "dry_run": True} == planned
    assert {left["reason"] for left in done["left"]} == {  # type: ignore[attr-defined]
        "format orc, the table parquet",
        "bucketed",
    }
    record, partitions = verbs.snapshot(table)
    assert record.sd.inputFormat == PARQUET_HOOK
    assert record.parameters[ORIGINAL_PROPERTY] == PARQUET[0]
    for values, partition in partitions.items():
        if values[0] in ("orc", "bucketed"):
            assert partition == before[1][values]
            continue
        assert partition.sd.inputFormat == PARQUET_HOOK
        original = before[1][values]
        assert partition.parameters.pop(ORIGINAL_PROPERTY) == original.sd.inputFormat
        partition.sd.inputFormat = original.sd.inputFormat
        assert partition == original, "nothing else changed"

    again = verbs.report("hook", verbs.name(table))
    assert (again["table_altered"], again["altered"]) == (False, 0)

    planned = verbs.report("unhook", verbs.name(table), "--dry-run")
    assert planned["altered"] == hookable and verbs.hooked(table) == hookable
    assert verbs.report("unhook", verbs.name(table))["altered"] == hookable
    assert verbs.snapshot(table) == before
    assert "nothing to do" in verbs.run("unhook", verbs.name(table)).stdout
    assert verbs.snapshot(table) == before


def test_a_table_without_partitions(verbs: Verbs) -> None:
    verbs.shop.table("single")
    before = verbs.snapshot("single")
    assert "would hook" in verbs.run("hook", verbs.name("single"), "--dry-run").stdout
    text = verbs.run("hook", verbs.name("single")).stdout
    assert f"hooked {verbs.name('single')}: the table" in text and PARQUET_HOOK in text
    assert is_hooked(verbs.snapshot("single")[0].sd)
    assert "nothing to do" in verbs.run("hook", verbs.name("single")).stdout
    assert verbs.run("unhook", verbs.name("single")).exit_code == 0
    assert verbs.snapshot("single") == before


def test_partitions_added_since_are_hooked_and_come_back(verbs: Verbs) -> None:
    verbs.many("grows", 3)
    verbs.report("hook", verbs.name("grows"))
    # As Hive and Spark add one: with the table's own storage descriptor.
    added = verbs.shop.partition("grows", ["new"])
    added.sd.inputFormat = verbs.snapshot("grows")[0].sd.inputFormat
    # As a tool adds one that knows nothing of hooks.
    foreign = verbs.shop.partition("grows", ["foreign"])
    verbs.client.add_partitions(verbs.shop.name, "grows", [added, foreign])
    assert verbs.report("hook", verbs.name("grows"))["altered"] == 1
    assert verbs.hooked("grows") == 5
    verbs.report("unhook", verbs.name("grows"))
    table, partitions = verbs.snapshot("grows")
    assert not is_marked(table) and table.sd.inputFormat == PARQUET[0]
    for partition in partitions.values():
        assert partition.sd.inputFormat == PARQUET[0] and not is_marked(partition)


def test_killed_on_the_way_it_goes_on_where_it_was(verbs: Verbs) -> None:
    verbs.many("long", PARTITIONS)
    before = verbs.snapshot("long")

    def killed(verb: str, hooked: bool) -> int:
        """Kills the command as soon as its first batch is altered; the partitions hooked then."""
        slowly = ("--metastore-batch-cap", "10", "--metastore-parallelism", "1")
        words = ("hive", verb, verbs.name("long"), "--metastore-uri", verbs.uri, *slowly)
        process = subprocess.Popen([sys.executable, "-m", "bridge", *words])
        deadline = time.monotonic() + 60
        while verbs.first_is_hooked("long") != hooked:
            assert process.poll() is None and time.monotonic() < deadline
        process.kill()
        process.wait()
        count = -1
        while count != (count := verbs.hooked("long")):  # a call under way is carried out
            time.sleep(0.2)
        return count

    hooked = killed("hook", True)
    assert 10 <= hooked < PARTITIONS
    rest = verbs.report("hook", verbs.name("long"))
    assert rest["altered"] == PARTITIONS - hooked and rest["table_altered"] is False
    assert verbs.hooked("long") == PARTITIONS

    hooked = killed("unhook", False)
    assert 0 < hooked <= PARTITIONS - 10
    table, _ = verbs.snapshot("long")
    assert is_marked(table) and not is_hooked(table.sd), "new partitions are not hooked any more"
    assert verbs.report("unhook", verbs.name("long"))["altered"] == hooked
    assert verbs.snapshot("long") == before


def test_a_partition_dropped_meanwhile_does_not_stop_the_rest(verbs: Verbs) -> None:
    verbs.many("shrinks", 12)
    of = open_hooked(verbs.client, verbs.config, verbs.name("shrinks"))
    dropped: list[str] = []

    def change(partition: ttypes.Partition) -> bool:
        if not dropped:
            dropped.append("p=0003")
            verbs.client.drop_partitions(verbs.shop.name, "shrinks", dropped)
        partition.parameters["seen"] = "1"
        return True

    survey, altered = of.alter_partitions(change)
    assert (survey.total, altered) == (11, 11)
    assert all(p.parameters["seen"] == "1" for p in verbs.snapshot("shrinks")[1].values())


def test_a_table_altered_meanwhile_is_not_overwritten(verbs: Verbs) -> None:
    verbs.shop.table("busy")
    of = open_hooked(verbs.client, verbs.config, verbs.name("busy"))
    theirs = verbs.client.get_table(verbs.shop.name, "busy")
    theirs.parameters["transient_lastDdlTime"] = "4102444800"
    theirs.parameters["theirs"] = "1"
    verbs.client.alter_table(verbs.shop.name, "busy", theirs)
    of.table.parameters["ours"] = "1"
    with pytest.raises(MetastoreFailure, match="transient_lastDdlTime"):
        of.alter()
    assert "ours" not in verbs.client.get_table(verbs.shop.name, "busy").parameters
    assert verbs.run("hook", verbs.name("busy")).exit_code == 0
    assert verbs.client.get_table(verbs.shop.name, "busy").parameters["theirs"] == "1"


def test_two_at_once(verbs: Verbs) -> None:
    """Hooking the same table twice at the same time: one of them may have to be run again."""
    from concurrent.futures import ThreadPoolExecutor

    verbs.many("both", 60)
    before = verbs.snapshot("both")
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(
                hook_table, verbs.config, verbs.name("both"), dry_run=False, progress=silent
            )
            for _ in range(2)
        ]
        for run in runs:
            run.result()
    assert verbs.hooked("both") == 60
    verbs.report("unhook", verbs.name("both"))
    assert verbs.snapshot("both") == before


def test_doctor_warns_of_versions_that_hand_no_filter_over(verbs: Verbs) -> None:
    verbs.many("filtered", 2)

    def findings() -> dict[str, dict[str, str]]:
        words = ["doctor", verbs.name("filtered"), "--output", "json"]
        result = CliRunner().invoke(cli, [*words, "--metastore-uri", verbs.uri])
        return {f["check"]: f for f in json.loads(result.stdout)}

    assert "Hive filters" not in findings()
    verbs.report("hook", verbs.name("filtered"))
    found = findings()
    assert "2 partitions" in found[f"Hive hooks of {verbs.name('filtered')}"]["detail"]
    if before_4(verbs):
        assert found["Hive filters"]["status"] == "warning"
        assert "hive.optimize.index.filter=true" in found["Hive filters"]["remedy"]
    else:
        assert "Hive filters" not in found


@pytest.mark.parametrize("verb", ["hook", "unhook", "ddl"])
def test_bad_input(verbs: Verbs, verb: str) -> None:
    verbs.shop.table("orders")

    def refused(code: str, table: str, *words: str) -> None:
        result = verbs.run(verb, table)
        assert f"error {code}: " in result.stderr and "\n  -> " in result.stderr, result.output
        for word in words:
            assert word in result.stderr
        assert (result.exit_code, result.stdout) == (2, "")

    refused("INVALID_REQUEST", "orders", "'orders'", "DB.TABLE")
    refused("INVALID_REQUEST", "a.b.c", "'a.b.c'")
    refused("SCHEMA_NOT_FOUND", "nowhere.orders", "'nowhere'")
    refused("TABLE_NOT_FOUND", verbs.name("oders"), f"did you mean {verbs.name('orders')}?")


def test_what_is_not_ours_is_refused(verbs: Verbs) -> None:
    shop = verbs.shop
    shop.table("view", tableType="VIRTUAL_VIEW", viewOriginalText="SELECT 1")
    shop.table("iceberg", parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG"})
    bucketed = descriptor((shop.root / "bucketed").as_uri())
    bucketed.numBuckets, bucketed.bucketCols = 4, ["k"]
    shop.table("bucketed", sd=bucketed)
    shop.table("text", sd=descriptor((shop.root / "text").as_uri(), TEXT))
    shop.table("acme", sd=descriptor((shop.root / "acme").as_uri(), ("com.acme.In", *PARQUET[1:])))
    if before_4(verbs):  # 4.0 creates an ACID table for Hive alone
        files = descriptor((shop.root / "acid").as_uri(), ORC)
        files.numBuckets, files.bucketCols = 4, ["k"]
        shop.table(
            "acid", sd=files, tableType="MANAGED_TABLE", parameters={"transactional": "true"}
        )
    for table in verbs.client.get_all_tables(shop.name):
        before = verbs.snapshot(table)
        for words in (["hook"], ["hook", "--dry-run"], ["ddl"]):
            result = verbs.run(words[0], verbs.name(table), *words[1:])
            assert "error UNSUPPORTED_TABLE: " in result.stderr, (table, result.output)
            assert (result.exit_code, result.stdout) == (2, "")
        assert verbs.snapshot(table) == before
        # The way back is open from anywhere.
        assert "nothing to do" in verbs.run("unhook", verbs.name(table)).stdout


def test_ddl_names_every_alteration(verbs: Verbs) -> None:
    table = special_table(verbs)
    result = verbs.run("ddl", verbs.name(table))
    lines = result.stdout.splitlines()
    assert len(lines) == 2 + len(SPECIAL) + 1
    assert all(line.startswith("ALTER TABLE `") and line.endswith(";") for line in lines)
    assert sum(NULL_MARKER in line for line in lines) == 2
    assert sum(PARQUET_HOOK in line for line in lines) == len(lines) - 1
    assert verbs.run("ddl", verbs.name(table), "--undo").stdout == ""
    verbs.report("hook", verbs.name(table))
    assert verbs.run("ddl", verbs.name(table)).stdout == ""
    lines = verbs.run("ddl", verbs.name(table), "--undo").stdout.splitlines()
    assert len(lines) == 2 + len(SPECIAL) + 1 and "UNSET TBLPROPERTIES" in lines[-1]
    assert not any(PARQUET_HOOK in line for line in lines)
    assert sum("DeprecatedParquetInputFormat" in line for line in lines) == 1
