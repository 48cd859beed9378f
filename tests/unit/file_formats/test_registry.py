"""The registry of file formats: what is built in, and distributions that are broken or late."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.formats.file_format import EntryBuilder
from bridge.formats.registry import (
    GROUP,
    file_format,
    file_formats,
    indexed_formats,
    inferred_formats,
    recognise,
    spell_formats,
)
from bridge.kernel.errors import UnsupportedTable
from bridge.storage.reading.ahead import Job
from bridge.storage.routed import open_storage
from tests.support.wheels import write_wheel


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    file_formats.cache_clear()
    yield
    file_formats.cache_clear()


def test_what_is_built_in() -> None:
    assert set(file_formats()) == {
        "avro",
        "csv",
        "hudi",
        "hudi_by_id",
        "hudi_log",
        "json",
        "orc",
        "parquet",
        "rcfile",
        "regex",
        "sequencefile",
        "text",
    }
    assert indexed_formats() == {"parquet", "orc", "avro", "csv", "json", "text"}
    lines = {"csv", "json", "text", "regex", "sequencefile", "rcfile"}
    read = {f.name for f in file_formats().values() if f.trino_reader}
    assert read >= {"hudi", "parquet", *lines}
    assert {f.name for f in file_formats().values() if f.of_slices} == {
        "hudi",
        "hudi_by_id",
        "hudi_log",
    }
    assert spell_formats(["csv"]) == "CSV" and spell_formats(inferred_formats()) == "Parquet or ORC"
    with pytest.raises(UnsupportedTable, match="no file format 'lance'"):
        file_format("lance")


def test_what_is_indexed_can_be_recognised_and_read_or_is_declared() -> None:
    for name in indexed_formats():
        found = file_format(name)
        if found.chunks is not None:
            continue
        assert found.recognise and found.read_schema and found.read_rows and found.begins


class _Ways:
    """What a format asks of the builder; implements `EntryBuilder`."""

    def __init__(self, has_kinds: bool) -> None:
        self.has_kinds = has_kinds
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Job]:
        return lambda *readers: self._note(name)

    def _note(self, name: str) -> Job:
        self.asked.append(name)
        yield from ()


@pytest.mark.parametrize("has_kinds", [False, True])
def test_each_format_makes_entries_in_one_way_that_serves_its_index_kinds(has_kinds: bool) -> None:
    for name in {*indexed_formats(), "hudi_log"}:
        found = file_format(name)
        assert found.collect is not None
        ways = _Ways(has_kinds)
        assert list(found.collect(ways)) == []
        (way,) = ways.asked
        assert way in vars(EntryBuilder)
        assert not (has_kinds and found.index_kinds and way == "from_statistics"), name


def test_no_two_formats_share_classes_of_hive() -> None:
    owner: dict[tuple[str, str], str] = {}
    for known in file_formats().values():
        for input_format in known.hive.input_formats if known.hive else ():
            for serde in known.hive.serdes if known.hive else ():
                pair = input_format.rpartition(".")[2], serde.rpartition(".")[2]
                assert owner.setdefault(pair, known.name) == known.name
    assert len(owner) == 11


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PAR1....PAR1", "parquet"),
        (b"PAR1....PARE", "parquet"),
        (b"PAR1....", None),
        (b"ORC....ORC\x18", "orc"),
        (b"ORC....", None),
        (b"Obj\x01....", "avro"),
        (b"a,b\n1,2\n", None),
        (b"", None),
    ],
)
def test_recognition_by_bytes(tmp_path: Path, content: bytes, name: str | None) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    found = recognise(open_storage(), f"file://{path}", len(content))
    assert (found and found.name) == name


def test_a_broken_distribution_is_left_out_and_none_replaces_what_is_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    modules = {
        "odd_formats.py": "from bridge.formats.file_format import FileFormat\n"
        "MINE = FileFormat('mine', 'Mine')\nPARQUET = FileFormat('parquet', 'Not ours')\n"
    }
    entries = {"mine": "odd_formats:MINE", "p": "odd_formats:PARQUET", "bad": "odd_formats:GONE"}
    wheel = write_wheel(tmp_path, "odd_formats", modules, {GROUP: entries})
    monkeypatch.syspath_prepend(str(wheel))  # Python imports from an archive, too
    assert file_format("mine").spelled == "Mine"
    assert file_format("parquet").spelled == "Parquet"
    assert "bad" not in file_formats() and "bad of odd_formats:GONE" in caplog.text


def test_naming_formats_loads_no_library_that_reads_them() -> None:
    code = (
        "import sys; from bridge.formats.registry import file_formats; file_formats(); "
        "assert not {'pyarrow.orc', 'pyarrow.parquet', 'pyarrow.csv'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
