"""A value of a JSON file that engines may read differently is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pytest

from bridge.app.api.file_reader import ScannedFile, read_file
from bridge.formats.lines.recipe import Recipe
from bridge.kernel.errors import FileAmbiguous
from bridge.kernel.types import BIGINT, STRING, parse_hive_type
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.model import Column

SERDE = (("serialization.lib", "org.apache.hive.hcatalog.data.JsonSerDe"),)
AVRO = (("serialization.lib", "org.apache.hadoop.hive.serde2.avro.AvroSerDe"),)


@pytest.mark.parametrize(
    ("value", "type", "why"),
    [
        ("[1, 2]", "array<int>", "under array<int>, only engines read it"),
        ("1.555", "decimal(5,2)", "one of them is no decimal(5,2) in JSON"),
        ('"abcdef"', "varchar(3)", "'abcdef' does not fit varchar(3)"),
        ("1.1", "float", "a number is rounded to float"),
        ('"x"', "date", "'x' does not fit date"),
        ("5", "string", "values of 'a': one of them is no string in JSON"),
    ],
)
def test_the_reason_is_told(tmp_path: Path, value: str, type: str, why: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(f'{{"id": 1, "a": {value}}}\n')
    columns = [Column("id", BIGINT), Column("a", parse_hive_type(type))]
    recipe = Recipe("json", SERDE, tuple((c.name, c.type) for c in columns))
    stat = path.stat()
    file = ScannedFile(path.as_uri(), stat.st_size, stat.st_mtime_ns // 1000, "json", None, recipe)
    with pytest.raises(FileAmbiguous) as refused:
        list(read_file(LocalStorage(), file, columns, columns, "trino"))
    assert why in refused.value.message and "t.json" in refused.value.message
    assert refused.value.hint.startswith("read it with the engine")


def test_an_avro_enum_is_no_string_that_is_read_here(tmp_path: Path) -> None:
    """Other strings of the file are read: the message does not say that none is."""
    path = tmp_path / "t.avro"
    names = {"type": "enum", "name": "e", "symbols": ["A"]}
    fields = [{"name": "s", "type": "string"}, {"name": "e", "type": names}]
    with path.open("wb") as file:
        fastavro.writer(
            file, {"type": "record", "name": "r", "fields": fields}, [{"s": "x", "e": "A"}]
        )
    columns = [Column("s", STRING), Column("e", STRING)]
    recipe = Recipe("avro", AVRO, tuple((c.name, c.type) for c in columns))
    stat = path.stat()
    told = ScannedFile(path.as_uri(), stat.st_size, stat.st_mtime_ns // 1000, "avro", None, recipe)
    ((found, _),) = read_file(LocalStorage(), told, columns[:1], columns, "trino")
    assert found["s"].to_pylist() == ["x"]
    with pytest.raises(FileAmbiguous, match="'e': stored as it is there") as refused:
        list(read_file(LocalStorage(), told, columns, columns, "trino"))
    assert "columns=[...]" in refused.value.hint
