"""`.hoodie/hoodie.properties`: what is read, and which tables are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.errors import FileCorrupt, TableNotFound, UnsupportedTable
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.hudi import table_config
from bridge.table.hudi.merging.merge_mode import MergeMode
from bridge.table.hudi.table_config import (
    HudiTableConfig,
    TableType,
    load_table_config,
    parse_properties,
)
from tests.support.hudi_tables import HudiTable

MODEL = "org.apache.hudi.common.model."
EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD = "00000000-0000-0000-0000-000000000000"


def load(table: HudiTable) -> HudiTableConfig:
    return load_table_config(LocalStorage(), table.uri)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_config, "_PAUSE", 0.0)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"a=b\n", {"a": "b"}),
        (b"a:b", {"a": "b"}),
        (b"a b c\n", {"a": "b c"}),
        (b"  a  =  b \n", {"a": "b "}),
        (b"a=b=c:d\n", {"a": "b=c:d"}),
        (b"a\n", {"a": ""}),
        (b"a=\nb=c\n", {"a": "", "b": "c"}),
        (b"#a=b\n  !c=d\n\n\te=f\n", {"e": "f"}),
        (b"a=one\\\n   two\\\r\n\tthree\n", {"a": "onetwothree"}),
        (b"a\\=\\:\\ b=c\n", {"a=: b": "c"}),
        (b"a=\\t\\n\\\\\\u00e4\\u20AC\\z\n", {"a": "\t\n\\ä€z"}),
        (b"a=\\uD83D\\uDE00\n", {"a": "\U0001f600"}),
        (b"a=\xe4\r\nb=c\rd=e", {"a": "ä", "b": "c", "d": "e"}),
        (b"a=1\na=2\n", {"a": "2"}),
        (b"a=#b!\\#\n", {"a": "#b!#"}),
        (b'a={"type"\\:"record"}\n', {"a": '{"type":"record"}'}),
        (b"", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: bytes, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_paths_and_fields_of_version_6(tmp_path: Path) -> None:
    table = HudiTable(
        tmp_path / "t",
        6,
        "COPY_ON_WRITE",
        hoodie__table__partition__fields="year,month",
        hoodie__table__recordkey__fields="a,b",
        hoodie__table__precombine__field="ts",
        hoodie__datasource__write__hive_style_partitioning="true",
        hoodie__table__metadata__partitions="column_stats,files",
        hoodie__populate__meta__fields="false",
    )
    found = load(table)
    assert found.table_type is TableType.COPY_ON_WRITE
    assert found.base == table.uri
    assert found.timeline_uri == f"{table.uri}/.hoodie"
    assert found.history_uri == f"{table.uri}/.hoodie/archived"
    assert found.partition_fields == ("year", "month")
    assert found.record_key_fields == ("a", "b")
    assert found.ordering_fields == ("ts",)
    assert found.metadata_partitions == {"files", "column_stats"}
    assert found.hive_style
    assert not found.url_encoded
    assert not found.has_meta_fields
    assert found.timeline_zone == "LOCAL"


def test_paths_and_fields_of_version_9(tmp_path: Path) -> None:
    table = HudiTable(
        tmp_path / "t",
        9,
        hoodie__table__partition__fields="year:SIMPLE,ts:TIMESTAMP",
        hoodie__table__ordering__fields="a,b",
        hoodie__table__timeline__timezone="UTC",
        hoodie__table__legacy__payload__class=f"{MODEL}AWSDmsAvroPayload",
        hoodie__record__merge__mode="COMMIT_TIME_ORDERING",
    )
    found = load(table)
    assert found.timeline_uri == f"{table.uri}/.hoodie/timeline"
    assert found.history_uri == f"{table.uri}/.hoodie/timeline/history"
    assert found.partition_fields == ("year", "ts")
    assert found.partition_types == ("simple", "timestamp")
    assert found.ordering_fields == ("a", "b")
    assert found.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert found.timeline_zone == "UTC"
    assert found.has_meta_fields


@pytest.mark.parametrize(
    ("version", "properties", "mode"),
    [
        (
            6,
            {"hoodie.compaction.payload.class": f"{MODEL}OverwriteWithLatestAvroPayload"},
            "COMMIT",
        ),
        (6, {"hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload"}, "EVENT"),
        (6, {"hoodie.compaction.payload.class": "com.acme.Payload"}, "CUSTOM"),
        # The payload class comes first in version 6, the strategy from 8 on.
        (
            6,
            {
                "hoodie.compaction.payload.class": f"{MODEL}OverwriteWithLatestAvroPayload",
                "hoodie.compaction.record.merger.strategy": EVENT_TIME,
            },
            "COMMIT",
        ),
        (
            8,
            {
                "hoodie.compaction.payload.class": "com.acme.Payload",
                "hoodie.record.merge.strategy.id": EVENT_TIME,
            },
            "EVENT",
        ),
        (6, {}, "COMMIT"),
        # What the release that made it takes for granted merges whole records.
        (6, {"hoodie.table.precombine.field": "ts"}, "COMMIT"),
        (6, {"hoodie.record.merge.strategy.id": "some-other"}, "CUSTOM"),
        (8, {"hoodie.record.merge.mode": "SOMETHING"}, "CUSTOM"),
        (8, {"hoodie.table.precombine.field": "ts"}, "EVENT"),
        (8, {"hoodie.record.merge.strategy.id": PAYLOAD}, "CUSTOM"),
        (9, {"hoodie.table.ordering.fields": "ts"}, "EVENT"),
        (9, {}, "COMMIT"),
        (8, {"hoodie.record.merge.mode": "CUSTOM"}, "CUSTOM"),
    ],
)
def test_merge_modes(tmp_path: Path, version: int, properties: dict[str, str], mode: str) -> None:
    table = HudiTable(tmp_path / "t", version, **properties)
    assert load(table).merge_mode.value.startswith(mode)


@pytest.mark.parametrize(
    ("version", "properties", "says"),
    [
        (5, {}, "table version 5"),
        (7, {}, "table version 7"),
        (10, {}, "table version 10"),
        (6, {"hoodie.table.version": "six"}, "table version six"),
        (6, {"hoodie.table.version": "9" * 5000}, "table version 999"),
        (6, {"hoodie.timeline.layout.version": "2"}, "timeline layout 2"),
        (9, {"hoodie.timeline.layout.version": "1"}, "timeline layout 1"),
        (8, {"hoodie.bootstrap.base.path": "file:///old"}, "bootstrapped from file:///old"),
        (8, {"hoodie.table.base.file.format": "HFILE"}, "format hfile"),
        (8, {"hoodie.table.type": "SOMETHING"}, "table type SOMETHING"),
        (9, {"hoodie.table.format": "iceberg"}, "table format iceberg"),
        (9, {"hoodie.table.multiple.base.file.formats.enable": "true"}, "several formats"),
        (9, {"hoodie.table.log.file.format": "LANCE"}, "logs of the format LANCE"),
    ],
)
def test_tables_that_would_be_read_wrong_are_refused(
    tmp_path: Path, version: int, properties: dict[str, str], says: str
) -> None:
    table = HudiTable(tmp_path / "t", version, **properties)
    with pytest.raises(UnsupportedTable, match=says):
        load(table)


def test_no_table() -> None:
    with pytest.raises(TableNotFound):
        load_table_config(LocalStorage(), "file:///nowhere/at/all")


def test_the_backup_counts_while_the_file_is_missing_or_cut(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8)
    path = table.meta / "hoodie.properties"
    whole = path.read_bytes()
    (table.meta / "hoodie.properties.backup").write_bytes(whole)
    path.unlink()
    assert load(table).version == 8
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert load(table).version == 8


def test_a_cut_file_without_a_backup_is_refused_at_every_byte(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8)
    path = table.meta / "hoodie.properties"
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(FileCorrupt, match="not whole"):
            load(table)
    path.write_bytes(whole.replace(b"hoodie.table.name=t", b"hoodie.table.name=u"))
    with pytest.raises(FileCorrupt, match="checksum"):
        load(table)


class _CountedText(str):
    """Counts the characters that are copied out of it."""

    copied = 0

    def replace(self, *_: object) -> _CountedText:
        return self

    def __getitem__(self, place: object) -> str:
        found = super().__getitem__(place)  # type: ignore[index]
        _CountedText.copied += len(found)
        return found


class _CountedBytes(bytes):
    def decode(self, *_: object) -> _CountedText:
        return _CountedText(super().decode("latin-1"))


def test_properties_are_copied_once_however_many_they_are() -> None:
    lines = 5_000
    content = b"".join(b" a%d = b\n#\n" % i for i in range(lines))
    _CountedText.copied = 0
    assert len(parse_properties(_CountedBytes(content))) == lines
    assert _CountedText.copied < 2 * len(content)
