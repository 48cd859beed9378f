"""Recognises files in a directory that are not part of its table, by their first and last bytes.

No file that engines would read is skipped silently: a file outside every partition is left out, a
file inside one stays in the file set, and both are reported.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.formats.registry import file_formats, recognise
from bridge.kernel.errors import UnsupportedTable
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import ask_all

_MARKS = (
    (b"ARROW1", "an Arrow file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"PK\x03\x04", "a zip file"),
    (b"SQLite", "an SQLite database"),
)
_HEAD = 512
OTHER_DELIMITERS = ";|\t:\x01"
"""What may separate the fields of CSV, besides commas."""
_OWN = "move it to a table of its own: a directory is read in one format"


@dataclass(frozen=True, slots=True)
class Stray:
    """A file that is not a readable file of the table.

    Attributes:
        what: the end of a sentence that starts with "<uri> is".
        remedy: what to do about it.
        read: whether it is inside a partition, so that engines read it and fail.
    """

    uri: str
    what: str
    remedy: str
    read: bool = True

    def __str__(self) -> str:
        told = "queries that read it fail" if self.read else "left out: no partition holds it"
        return f"{self.uri} is {self.what}; {told} -> {self.remedy}"


def describe_stray_file(storage: Storage, uri: str, size: int, *, read: bool = True) -> Stray:
    """Describes a file that cannot be read as part of the table. Errors: FileUnreadable."""
    whole = recognise(storage, uri, size)
    if whole is not None and whole.read_schema is not None:
        return Stray(uri, f"{_one(whole.spelled)} file among files of another format", _OWN, read)
    if whole is not None:
        return Stray(uri, f"{_one(whole.spelled)} file", _OWN, read)
    (head,) = storage.read_ranges(uri, [(0, min(_HEAD, size))])
    what = what_is(head, uri)
    if what.startswith("a damaged"):
        return Stray(uri, what, "restore it or write it again", read)
    own = what in _KINDS and what != "text"  # a README
    return Stray(uri, what, _OWN if own else "move it out of the table", read)


def what_is(head: bytes, uri: str) -> str:
    """Describes a file that no format recognises, by its first bytes.

    >>> what_is(b"a,b,c", "file:///t/a.csv")
    'CSV text'
    >>> what_is(b"PAR1....", "file:///t/a.parquet")
    'a damaged Parquet file: its end is missing'
    """
    for known in file_formats().values():
        if head.startswith(known.begins):
            return f"a damaged {known.spelled} file: its end is missing"
    for mark, what in _MARKS:
        if head.startswith(mark):
            return what
    try:
        text = head.decode("utf-8", "strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        return "of an unknown format"
    if "\0" in text:
        return "of an unknown format"
    if text.lstrip()[:1] in ("{", "["):
        return "JSON text"
    if uri.lower().endswith((".csv", ".tsv")):
        return "CSV text"
    return "text"


_TEXTS = {
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".txt": "text",
}  # fmt: skip
_CODECS = (".gz", ".bz2", ".zst", ".deflate", ".snappy", ".lz4", ".lzo")
_SPELLED = {"csv": "CSV text", "json": "JSON text", "text": "text"}


def format_of(storage: Storage, uri: str, size: int) -> tuple[str | None, str]:
    """The name of a file's format, by its bytes or else its name, and what to call the file.

    None where it is not known, or the file is damaged. Errors: FileUnreadable, StorageFailure.
    """
    whole = recognise(storage, uri, size)
    if whole is not None:
        return whole.name, _one(whole.spelled) + " file"
    (head,) = storage.read_ranges(uri, [(0, min(_HEAD, size))])
    name = uri.rpartition("/")[2].lower()
    codec = next((c for c in _CODECS if name.endswith(c)), "")
    what = what_is(head, uri)
    found = next((f for end, f in _TEXTS.items() if name.removesuffix(codec).endswith(end)), None)
    if found is None or what.startswith("a damaged") or (not codec and what not in _KINDS):
        named = file_formats().get(name.rpartition(".")[2])
        damaged = named is not None and named.recognise is not None  # it is not what its name says
        return None if damaged else _KINDS.get(what), what
    return found, _SPELLED[found] + (f", compressed ({codec})" if codec else "")


_KINDS = {spelled: name for name, spelled in _SPELLED.items()}


def refuse_undescribed(storage: Storage, location: str, files: Sequence[tuple[str, int]]) -> None:
    """For a directory of which no file tells a table's columns.

    Errors:
        UnsupportedTable: says what the first file is, if that is a format of tables.
    """
    uri, size = files[0]
    format, what = format_of(storage, uri, size)
    if format is not None and file_formats()[format].read_schema is None:
        raise UnsupportedTable(
            f"{location} holds files that do not tell a table's columns: "
            f"{uri.rpartition('/')[2]} is {what}",
            "register it in a metastore (for trials: skipbridge metastore start): skipbridge sync "
            f"DB.TABLE --location {shlex.quote(location)}"
            f"{options(format, find_delimiter(storage, uri, size))}; then name DB.TABLE",
        )


def options(format: str, delimiter: str = ",") -> str:
    """The options of ``skipbridge sync`` that a new table of a format needs."""
    spelled = "$'\\t'" if delimiter == "\t" else shlex.quote(delimiter)
    other = "" if delimiter == "," else f" --delimiter {spelled}"
    more = {
        "csv": f"{other} --header (or --columns 'a, b')",
        "text": " --columns 'a int, b string'",
    }
    return f" --format {format}{more.get(format, '')}"


def find_delimiter(storage: Storage, uri: str, size: int) -> str:
    """What seems to separate the fields of a CSV file; a comma if it is not plain to see."""
    if uri.lower().endswith(tuple(f".tsv{codec}" for codec in _CODECS)):
        return "\t"
    (head,) = storage.read_ranges(uri, [(0, min(_HEAD, size))])
    line = head.decode("utf-8", "replace").splitlines()[0] if head else ""
    if "," in line or not line.replace("\t", "").isprintable():
        return ","
    return next((mark for mark in OTHER_DELIMITERS if mark in line), ",")


def _one(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def is_data(storage: Storage, uri: str, size: int) -> bool:
    """Whether a file is whole and has a format that schemas are inferred from.

    Errors:
        FileUnreadable, StorageFailure.
    """
    found = recognise(storage, uri, size)
    return found is not None and found.read_schema is not None


def without_data(
    storage: Storage, files: Sequence[tuple[str, int]], most: int = 20
) -> list[tuple[str, int]]:
    """The files that hold no data; none if they are too many to check."""
    if not files or len(files) > most:
        return []
    data = ask_all(storage, lambda file: is_data(storage, *file), files, files[0][0])
    return [file for file, holds in zip(files, data, strict=True) if not holds]
