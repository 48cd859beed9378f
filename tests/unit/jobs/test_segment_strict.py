"""Strict loads: what would be NULL because it cannot be cast refuses the files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidRequest, SegmentBadValue
from bridge.kernel.types import parse_hive_type
from bridge.segments.commands import add, tables
from bridge.segments.commands.casts import castable

CONFIG = Config()
COLUMNS = [("id", "bigint"), ("name", "string"), ("day", "date"), ("price", "decimal(6,2)")]


def table(tmp_path: Path, **properties: str) -> str:
    name = str(tmp_path / "t")
    given = {f"csv.{key}": value for key, value in properties.items()}
    tables.create_table(
        CONFIG, name, format="csv", columns=COLUMNS, properties={"csv.header_lines": "1", **given}
    )
    return name


def load(name: str, path: Path, **options: bool) -> None:
    add.add_segment(CONFIG, name, paths=[str(path)], local=True, **options)  # type: ignore[arg-type]


def test_the_message_names_file_line_column_and_value(tmp_path: Path) -> None:
    name = table(tmp_path)
    where = tmp_path / "facts"
    where.mkdir()
    (where / "a.csv").write_text("id,name,day,price\n1,x,2024-01-05,1.5\n")
    lines = 'name,id,price,day\n"a ""b""",1,2,2024-01-05\n\nx, 2 ,1e1,2024-01-05\ny,two,3,\n'
    (where / "b.csv.gz").write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(SegmentBadValue, match=r"b\.csv\.gz, line 5: 'two' is no bigint, .* id is"):
        load(name, where, strict=True)
    with bridge.connect() as session:
        assert session.table(name).scan().to_arrow().num_rows == 0
    load(name, where)


def test_null_is_what_the_table_says(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("id,name,day,price\n1,,,\n2\n")
    with pytest.raises(SegmentBadValue, match="line 2: '' is no date, which column day is"):
        load(table(tmp_path / "a"), tmp_path / "f.csv", strict=True)
    load(table(tmp_path / "b", null=""), tmp_path / "f.csv", strict=True)


def test_what_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    name = table(tmp_path)
    (tmp_path / "f.csv").write_text("id,name,day,price\nx\0,,,\n")
    with pytest.raises(InvalidRequest, match=r"cannot check a file: .* a NUL"):
        load(name, tmp_path / "f.csv", strict=True)
    tables.create_table(CONFIG, str(tmp_path / "j"), format="json", columns=COLUMNS)
    (tmp_path / "f.json").write_text("{}\n")
    with pytest.raises(BridgeError, match="these are json"):
        load(str(tmp_path / "j"), tmp_path / "f.json", strict=True)


@pytest.mark.parametrize(
    ("type", "good", "bad"),
    [
        ("bigint", ("0", "+1", " 7 ", "007", "9223372036854775807"), ("", "1.0", "1e3", "9" * 19)),
        ("tinyint", ("127", "-128"), ("128", "-129", "--1")),
        ("boolean", ("true", "T", "0", "FALSE"), ("yes", "", " true", "fal\u017fe")),
        ("double", ("1e400", "NaN", "-Infinity", ".5", "5.", "1d", "0x1p3"), ("", "nan", "1,5")),
        ("decimal(4,2)", ("99.994", "1e1", "-.5"), ("99.995", "100", " 1", "1d", "")),
        ("date", ("2024-02-29", " 2024-2-9 "), ("2023-02-29", "2024-13-01", "20240229", "")),
        (
            "timestamp",
            ("2024-02-29", "2024-02-29 10:11", "2024-02-29 1:2:3.4", "2024-02-29 10:11:12 UTC"),
            ("2024-02-29T10:11:12", "2024-02-29 24:00:00", "2024-02-29 10:11:12 Nowhere/Land"),
        ),
        ("string", ("", "x"), ()),
    ],
)
def test_values_are_cast_as_the_connector_casts_them(
    type: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    declared = parse_hive_type(type)
    assert [text for text in good if not castable(text, declared)] == []
    assert [text for text in bad if castable(text, declared)] == []
