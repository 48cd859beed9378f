"""Sync of Hudi tables that Spark wrote: what is registered, in stages, killed, and in step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.kernel.errors import InvalidRequest, SchemaConflict, TableExists, TableNotFound
from bridge.kernel.types import DATE
from bridge.sync.report import diff_text, summary, table_changes
from bridge.table.model import Column
from bridge.table.partition import NULL_MARKER
from tests.support.hudi_fixtures import HudiFixture, few, hudi_fixtures
from tests.support.hudi_sync import Hidden, ModelTables, commit_json, sync_hudi
from tests.support.sync_lake import ModelMetastore

EVERY = [pytest.param(f, id=f.id) for f in few(hudi_fixtures())]
STAGED = [pytest.param(f, id=f.id) for f in hudi_fixtures(names=["cow_upserts", "mor_upserts"])]
OLD_COW = hudi_fixtures(bundle="0.15.0", names=["cow_upserts"])[0]


def record(store: ModelTables, table: str = "t") -> ModelMetastore:
    return store.tables[table]


@pytest.mark.parametrize("fixture", EVERY)
def test_a_partition_is_registered_if_it_has_a_slice(fixture: HudiFixture) -> None:
    answers = fixture.answers()
    if not answers.slices:
        pytest.skip("nothing was committed")
    store, root = ModelTables(), fixture.path()
    report = sync_hudi(store, root)
    wanted = {s.partition for s in answers.slices} - {""}
    merged = answers.table_type == "MERGE_ON_READ"
    assert set(store.tables) == ({"t", "t_ro", "t_rt"} if merged else {"t"})
    for name in store.tables:
        assert store.paths(root, name) == wanted
    assert not report.problems and not report.unparsable and len(report.added) == len(wanted)
    newest = max(i.requested for i in answers.timeline if i.completed and "commit" in i.action)
    made = record(store).record
    assert made is not None and made.parameters["last_commit_time_sync"] == newest
    assert ("last_commit_completion_time_sync" in made.parameters) == (answers.table_version >= 8)
    columns = [c.name for c in made.sd.cols] + [k.name for k in made.partitionKeys]
    if answers.snapshot.error is None:
        assert sorted(columns) == sorted(f.name.lower() for f in answers.snapshot.schema)
    before, writes = store.contents(), store.writes
    for full in (False, True):
        again = sync_hudi(store, root, full=full)
        assert again.outcome == "in step" and again.unchanged == len(wanted)
    assert (store.contents(), store.writes) == (before, writes)


@pytest.mark.parametrize("fixture", STAGED)
def test_the_records_are_those_of_hudis_own_sync(fixture: HudiFixture) -> None:
    store, root = ModelTables(), fixture.path()
    sync_hudi(store, root)
    hive = "org.apache.hadoop.hive.ql.io.parquet"
    plain = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    merged = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
    for name, table in store.tables.items():
        made = table.record
        assert made is not None
        optimised = name == "t_ro"
        input_format = plain if optimised or len(store.tables) == 1 else merged
        for held in (made, *table.partitions.values()):
            descriptor = held.sd
            assert descriptor.inputFormat == input_format
            assert descriptor.outputFormat == f"{hive}.MapredParquetOutputFormat"
            assert descriptor.serdeInfo.serializationLib == f"{hive}.serde.ParquetHiveSerDe"
            assert descriptor.serdeInfo.parameters == {
                "serialization.format": "1",
                "path": root.as_uri(),
                "hoodie.query.as.ro.table": str(optimised).lower(),
            }
        assert made.tableType == "EXTERNAL_TABLE" and made.parameters["EXTERNAL"] == "TRUE"
        assert made.parameters["spark.sql.sources.provider"] == "hudi"
        assert made.parameters["spark.sql.sources.schema.partCol.0"] == "day"
        assert made.sd.cols[0].name == "_hoodie_commit_time"


@pytest.mark.parametrize("fixture", STAGED)
def test_in_stages_as_at_once(fixture: HudiFixture, tmp_path: Path) -> None:
    root = fixture.unpack(tmp_path)
    staged, at_once = ModelTables(), ModelTables()
    sync_hudi(at_once, root)
    later = Hidden(root, 1, tmp_path / "hidden")
    first = sync_hudi(staged, root)
    later.put_back()
    planned = sync_hudi(staged, root, dry_run=True)
    second = sync_hudi(staged, root)
    assert staged.contents() == at_once.contents()
    assert first.created and second.compared == "changes"
    assert planned.added == second.added and planned.outcome in ("planned", "in step")
    assert second.outcome == "synced" and not second.dropped


@pytest.mark.parametrize("fixture", STAGED)
def test_killed_at_every_write_and_completed_by_the_next(
    fixture: HudiFixture, tmp_path: Path
) -> None:
    root = fixture.path()
    at_once = ModelTables()
    sync_hudi(at_once, root)

    class Killed(BaseException):
        pass

    for number in range(at_once.writes * 2):
        store = ModelTables()
        left = [number]

        def kill(method: str, moment: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        store.interfere = kill
        with pytest.raises(Killed):
            sync_hudi(store, root)
        store.interfere = lambda method, moment: None
        sync_hudi(store, root)
        assert store.contents() == at_once.contents()


def schema_of(root: Path) -> str:
    newest = max((root / ".hoodie").glob("*.commit"))
    return str(json.loads(newest.read_text())["extraMetadata"]["schema"])


def groups_of(root: Path, partition: str) -> set[str]:
    return {f.name.split("_")[0] for f in (root / partition).glob("*.parquet")}


def test_a_partition_whose_files_were_replaced_is_dropped(tmp_path: Path) -> None:
    root = OLD_COW.unpack(tmp_path)
    store = ModelTables()
    sync_hudi(store, root)
    gone, *others = sorted(store.paths(root))
    schema = schema_of(root)
    delete = {"operation": "DELETE_PARTITION", "schema": schema}
    commit_json(root, "20990101000000000", replaced={gone: groups_of(root, gone)}, **delete)  # type: ignore[arg-type]
    report = sync_hudi(store, root)
    assert report.dropped == [f"day={gone}"] and report.compared == "changes"
    assert store.paths(root) == set(others) and (root / gone).is_dir()
    # One group of a partition is replaced, another stays: it keeps its rows, and its record.
    other = others[0]
    group = "11111111-1111-1111-1111-111111111111-0"
    name = f"{group}_0-1-2_20990102000000000.parquet"
    commit_json(root, "20990102000000000", schema=schema, written={other: [name], gone: []})
    commit_json(root, "20990103000000000", replaced={other: [group]}, **delete)  # type: ignore[arg-type]
    assert not sync_hudi(store, root).dropped
    # Written again, it is registered again.
    back = f"{group}_0-1-2_20990104000000000.parquet"
    commit_json(root, "20990104000000000", schema=schema, written={gone: [back]})
    assert sync_hudi(store, root).added == [f"day={gone}"]


def test_a_write_that_completes_after_a_later_one_is_found(tmp_path: Path) -> None:
    root = OLD_COW.unpack(tmp_path)
    schema = schema_of(root)
    name = "11111111-1111-1111-1111-111111111111-0_0-1-2_{}.parquet"
    early, late = "20990101000000000", "20990102000000000"
    commit_json(root, early, schema=schema, written={"2024-05-01": [name.format(early)]})
    commit_json(root, late, schema=schema, written={"2024-05-02": [name.format(late)]})
    pending = root / ".hoodie" / f"{early}.commit"
    content = pending.read_bytes()
    pending.unlink()
    store = ModelTables()
    sync_hudi(store, root)
    assert "2024-05-02" in store.paths(root) and "2024-05-01" not in store.paths(root)
    pending.write_bytes(content)
    report = sync_hudi(store, root)
    assert report.added == ["day=2024-05-01"] and report.compared == "changes"


def test_an_archived_or_undone_instant_compares_all(tmp_path: Path) -> None:
    root = OLD_COW.unpack(tmp_path)
    store = ModelTables()
    sync_hudi(store, root)
    newest = max((root / ".hoodie").glob("*.commit"))
    for file in (root / ".hoodie").glob(f"{newest.name.split('.')[0]}.*"):
        file.unlink()
    report = sync_hudi(store, root)
    assert report.compared == "all" and report.outcome == "synced"
    made = record(store).record
    assert made is not None and made.parameters["last_commit_time_sync"] < newest.name


def test_a_new_schema_reaches_every_partition(tmp_path: Path) -> None:
    root = OLD_COW.unpack(tmp_path)
    store = ModelTables()
    sync_hudi(store, root)
    avro = json.loads(schema_of(root))
    by_name = {f["name"]: f for f in avro["fields"]}
    by_name["id"]["type"] = ["null", "long"]
    avro["fields"].append({"name": "Extra", "type": ["null", "string"], "default": None})
    commit_json(root, "20990101000000000", schema=json.dumps(avro))
    planned = sync_hudi(store, root, dry_run=True)
    report = sync_hudi(store, root)
    assert {"~ column id int -> bigint", "+ column extra string"} <= set(report.table_changes)
    assert planned.table_changes == report.table_changes
    table = record(store)
    assert table.record is not None
    types = {c.name: c.type for c in table.record.sd.cols}
    assert types["id"] == "bigint" and types["extra"] == "string"
    for partition in table.partitions.values():
        assert {c.name: c.type for c in partition.sd.cols} == types
    assert '"Extra"' in table.record.parameters["spark.sql.sources.schema.part.0"]
    assert sync_hudi(store, root).outcome == "in step"
    by_name["id"]["type"] = ["null", "boolean"]
    commit_json(root, "20990102000000000", schema=json.dumps(avro))
    with pytest.raises(SchemaConflict, match=r"id is bigint .* and boolean"):
        sync_hudi(store, root)


@pytest.mark.rule("45")
def test_a_partition_registered_under_another_name_is_not_registered_twice() -> None:
    store, root = ModelTables(), OLD_COW.path()
    sync_hudi(store, root)
    table = record(store)
    values, partition = next(iter(table.partitions.items()))
    del table.partitions[values]
    partition.values = ["otherwise"]
    table.partitions[("otherwise",)] = partition
    report = sync_hudi(store, root)
    assert not report.added and [k[0] for k in report.kept] == ["day=otherwise"]
    writes = store.writes
    assert sync_hudi(store, root).compared == "all" and store.writes == writes


def test_what_others_registered_is_taken_over_as_it_is() -> None:
    store, root = ModelTables(), OLD_COW.path()
    sync_hudi(store, root)
    table = record(store)
    made = table.record
    assert made is not None
    spark = made.parameters["spark.sql.sources.schema.part.0"]
    made.parameters = {
        k: v for k, v in made.parameters.items() if not k.startswith("skipbridge.")
    } | {"comment": "ours", "spark.sql.sources.schema.part.0": spark.replace(":", ": ")}
    made.owner = "hive"
    made.sd.serdeInfo.parameters["path"] = made.sd.location = f"file:{root}"
    del table.partitions[next(iter(table.partitions))]
    report = sync_hudi(store, root)
    assert report.adopted and len(report.added) == 1 and not report.table_changes
    assert table.record is not None and table.record.parameters["comment"] == "ours"


def test_other_tables_of_the_name_are_refused(tmp_path: Path) -> None:
    store, root = ModelTables(), OLD_COW.unpack(tmp_path)
    sync_hudi(store, root)
    table = record(store)
    assert table.record is not None
    with pytest.raises(InvalidRequest, match="partition keys day, not hour"):
        sync_hudi(store, root, keys=(Column("hour", DATE),))
    moved = root.rename(tmp_path / "moved")
    with pytest.raises(TableExists, match="--move"):
        sync_hudi(store, moved)
    report = sync_hudi(store, moved, move=True)
    assert len(report.updated) == 3 and store.paths(moved) == {
        p.name for p in moved.iterdir() if p.name[0] == "2"
    }
    for partition in table.partitions.values():
        assert partition.sd.serdeInfo.parameters["path"] == moved.as_uri()
    table.record.sd.inputFormat = "org.apache.hadoop.mapred.TextInputFormat"
    table.record.parameters.pop("spark.sql.sources.provider")
    with pytest.raises(TableExists, match="no Hudi table"):
        sync_hudi(store, moved)


def test_a_read_optimised_table_does_not_turn_into_a_real_time_one() -> None:
    store = ModelTables()
    root = hudi_fixtures(bundle="1.2.0", names=["mor_upserts"])[0].path()
    sync_hudi(store, root)
    store.tables = {"t": store.tables["t_ro"]}
    held = store.tables["t"].record
    assert held is not None
    held.tableName = "t"
    with pytest.raises(TableExists, match="read-optimised"):
        sync_hudi(store, root)
    assert sync_hudi(store, root, adopt=True).outcome == "synced"
    assert set(store.tables) == {"t", "t_ro", "t_rt"}


def test_the_report_shows_all_records() -> None:
    store = ModelTables()
    root = hudi_fixtures(bundle="1.2.0", names=["mor_upserts"])[0].path()
    planned = sync_hudi(store, root, dry_run=True)
    assert not store.tables and [v.table for v in planned.views] == ["lake.t_ro", "lake.t_rt"]
    assert diff_text(planned).count("+ partition day=") == 9
    report = sync_hudi(store, root)
    assert [line.split()[0] for line in summary(report).splitlines()] == [
        "lake.t_ro",
        "lake.t_rt",
        "lake.t",
    ]
    assert len(table_changes(report)) == 3 and len(report.to_dict()["views"]) == 2
    assert NULL_MARKER not in json.dumps(report.to_dict())


def test_a_move_takes_no_record_of_another_table(tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["mor_upserts"])
    store, root = ModelTables(), fixture.unpack(tmp_path / "a")
    sync_hudi(store, root)
    theirs = store.tables["t_rt"].record
    assert theirs is not None
    theirs.sd.location = "file:///theirs"
    moved = root.rename(tmp_path / "moved")
    writes = store.writes
    with pytest.raises(TableExists, match="t_rt is at file:///theirs"):
        sync_hudi(store, moved, move=True)
    assert store.writes == writes, "all names are checked before the first is written"
    theirs.sd.location = root.as_uri()
    assert sync_hudi(store, moved, move=True).outcome == "synced"


def test_a_record_that_is_dropped_is_not_created_again_by_the_same_job(tmp_path: Path) -> None:
    store, seen = ModelTables(), set[str]()
    root = hudi_fixtures(names=["mor_upserts"])[0].path()
    sync_hudi(store, root, seen=seen)
    assert set(store.tables) == {"t", "t_ro", "t_rt"}
    del store.tables["t_ro"]
    report = sync_hudi(store, root, seen=seen, full=True)
    assert set(store.tables) == {"t", "t_rt"}
    assert any("lake.t_ro was dropped" in line for line in table_changes(report))
    del store.tables["t"]
    with pytest.raises(TableNotFound, match="not created again"):
        sync_hudi(store, root, seen=seen)
    assert set(store.tables) == {"t_rt"}
    sync_hudi(store, root)
    assert set(store.tables) == {"t", "t_ro", "t_rt"}
