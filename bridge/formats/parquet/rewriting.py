"""Parquet files as clustering reads and writes them; implements `DataFiles`.

Values are read and written as they are stored, without a calendar or time zone of this program, and
the footer's properties that tell engines how to read them are copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.checksum import checksum
from bridge.formats.data_files import (
    Decoded,
    Rejected,
    Run,
    Writing,
    name_file_in_errors,
    rewrite_problem,
)
from bridge.formats.parquet.encoding import encode_parquet, group_cuts
from bridge.formats.parquet.footer import Speller
from bridge.formats.parquet.tail import footer_of, read_tail
from bridge.formats.rows import all_rows, expect_rows
from bridge.storage.child import ChildReader, storage_in_memory
from bridge.storage.port import Storage
from bridge.storage.reading.source import WHOLE, RangeSource

_OWN = (b"pandas", b"ARROW:schema")
"""Properties that describe one file's rows, or are made anew."""
_CODED = 2.5
"""Text that takes at most so many bytes a value is kept as codes into its dictionary."""
_PROBED_ROWS = 4096
_SHORTEST, _LONGEST = 1 << 16, 1 << 20
"""Bytes that are read at once of a column of a large file."""
_FEWEST_ROWS, _MOST_ROWS = 16, 1 << 15
_PART, _PART_ROWS = 256 << 20, 1 << 20
"""Bytes and rows of a part of a file that is decoded for a rewrite; a quarter of the bytes."""
_AT_ONCE = 64 << 20
"""Bytes of a file that a child reads at once."""
_A_FILE = "a Parquet file"
_PLAIN = {("INT32", "INT_32"), ("INT64", "INT_64")}
"""Annotations that say no more than the type below them. Trino, DuckDB and Polars write them."""


def _parquet(source: bytes | pa.NativeFile, **options: Any) -> pq.ParquetFile:
    """A file whose pages are checked where they have checksums: new ones would hide the damage."""
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    return pq.ParquetFile(source, page_checksum_verification=True, **options)


def _group(file: pq.ParquetFile, group: int, threads: bool) -> pa.Table:
    """Errors: FileCorrupt: rows are missing."""
    table = file.read_row_group(group, use_threads=threads)
    expect_rows(table.num_rows, file.metadata.row_group(group).num_rows, _A_FILE)
    return table


def _all(file: pq.ParquetFile) -> pa.Table:
    """All rows. Read at once, a column may go on in the rows of the next group."""
    groups = [_group(file, i, False) for i in range(file.num_row_groups)]
    return pa.concat_tables(groups) if groups else file.read()


class ParquetFile:
    """Implements `DataFile`."""

    def __init__(self, content: bytes, decoded: bool = False) -> None:
        # Arrow ends the process where it meets some kinds of damage.
        Speller().read(footer_of(content, _A_FILE), _A_FILE)
        if not decoded:
            _PROBE.read(storage_in_memory(content), _A_FILE, len(content))
        self.file = _parquet(content)
        self._content = content

    @property
    def num_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def batches(self) -> Iterator[pa.Table]:
        coded = _parquet(self._content, read_dictionary=_repeated(self.file))
        for group in range(coded.num_row_groups):
            yield _without_views(_group(coded, group, True))


@dataclass(frozen=True, slots=True)
class _Schema:
    """What files have in common that can be written as one."""

    fingerprint: Hashable
    has_int96: bool

    @classmethod
    def of(cls, file: pq.ParquetFile) -> _Schema:
        physical = {file.schema.column(i).physical_type for i in range(len(file.schema))}
        return cls(_fingerprint(file), "INT96" in physical)

    def run(self, files: Sequence[int], counts: Sequence[int], tables: int, total: int) -> Run:
        return Run(self.fingerprint, tuple(files), tuple(counts), tables, total)


class ParquetFiles:
    """Implements `DataFiles`."""

    suffix = "parquet-data"

    def open(self, content: bytes, *, decoded: bool = False) -> ParquetFile:
        return ParquetFile(content, decoded)

    def decode(self, contents: Sequence[bytes], verify: bool) -> Iterator[pa.Table | Decoded]:
        lengths = [len(content) for content in contents]
        whole = storage_in_memory(contents[0] if len(contents) == 1 else b"".join(contents))
        for item in _DECODED.stream(whole, _A_FILE, sum(lengths), lengths, verify):
            with name_file_in_errors(_A_FILE):  # a child may send anything before it ends
                found = item if isinstance(item, Decoded) else pa.ipc.open_stream(item).read_all()
            yield found

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        if size <= min(WHOLE, memory):
            yield from self.open(storage.read(uri)).batches()
            return
        Speller().read(footer_of(read_tail(storage, uri, size), uri), uri)
        yield from _PARTS.stream(storage, uri, size, memory)

    def cuts(self, rows: int, writing: Writing, row_bytes: float) -> list[int]:
        return group_cuts(rows, writing.group_bytes / row_bytes)

    def encode(self, groups: Iterable[pa.Table], like: ParquetFile, writing: Writing) -> bytes:
        return encode_parquet(groups, like.file, writing, _properties(like.file))

    def check(self, old: ParquetFile, new: ParquetFile) -> None:
        _check_schema(old.file, new.file)


def probe(storage: Storage, uri: str, size: int) -> None:
    """Decodes all pages as clustering will. Runs in the child. Errors: FileCorrupt."""
    with name_file_in_errors(uri):
        source = storage.read(uri)
        reader = _parquet(source, read_dictionary=_repeated(_parquet(source)))
        for _ in reader.iter_batches(_PROBED_ROWS, use_threads=False):
            pass


def parts(storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
    """The rows of a large file. Runs in the child. Errors: FileCorrupt."""
    with name_file_in_errors(uri):
        source = pa.PythonFile(RangeSource(storage, uri, size), mode="r")
        yield from _tables(source, _parquet(source), memory, _MOST_ROWS)


def _tables(
    source: bytes | pa.NativeFile,
    file: pq.ParquetFile,
    memory: int,
    most_rows: int,
    check_int96: bool = False,
) -> Iterator[pa.Table]:
    """All rows of a file in parts."""
    about, columns = file.metadata, max(file.metadata.num_columns, 1)
    options: dict[str, Any] = {
        "metadata": about,
        "read_dictionary": _repeated(file),
        "buffer_size": max(_SHORTEST, min(_LONGEST, memory // (4 * columns))),
        "pre_buffer": False,
    }
    reader = _parquet(source, **options)
    coarse = _parquet(source, coerce_int96_timestamp_unit="us", **options) if check_int96 else None
    if not about.num_rows:
        yield _without_views(reader.schema_arrow.empty_table())
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        rows = int(memory / 4 * group.num_rows / max(group.total_byte_size, 1))
        rows = max(_FEWEST_ROWS, min(most_rows, rows))
        fine_sum = 0
        read = reader.iter_batches(rows, [number], use_threads=False)
        for batch in all_rows(read, group.num_rows, _A_FILE):
            table = pa.Table.from_batches([batch])
            if coarse is not None:
                fine_sum += _coarse_sum(table, coarse.schema_arrow)
            yield _without_views(table)
        if coarse is not None:
            read = coarse.iter_batches(rows, [number], use_threads=False)
            coarse_sum = sum(checksum(pa.Table.from_batches([batch])) for batch in read)
            _compare(fine_sum % 2**64, coarse_sum % 2**64)


def decode(
    storage: Storage, uri: str, size: int, lengths: Sequence[int], verify: bool
) -> Iterator[bytes | Decoded]:
    """The rows of files whose bytes follow one another, as Arrow streams; then what they are.

    Runs in the child. One file comes in parts. Several come together, and are to be small.
    """
    if len(lengths) == 1:
        return _decode_one(storage, uri, size, verify)
    return _decode_many(storage.read(uri), lengths, verify)


def _decode_many(whole: bytes, lengths: Sequence[int], verify: bool) -> Iterator[bytes | Decoded]:
    speller, begin = Speller(), 0
    schemas: list[_Schema] = []
    number_of: dict[Hashable, int] = {}
    found: dict[int, list[tuple[int, pa.Table]]] = {}
    failed: dict[int, str] = {}
    for place, length in enumerate(lengths):
        content = whole[begin : begin + length]
        begin += length
        try:
            with name_file_in_errors(_A_FILE):
                footer = speller.read(footer_of(content, _A_FILE), _A_FILE)
                file = _parquet(content)
                keys = (each for each in footer.end.keys.items() if each[0] != b"pandas")
                key = footer.schema.spelled, *keys
                number = number_of.get(key)
                if number is None:
                    schema = _Schema.of(file)
                    if schema not in schemas:
                        schemas.append(schema)
                    number = number_of[key] = schemas.index(schema)
                table = _all(file)
                if schemas[number].has_int96:
                    _check_int96(content, table)
        except Exception as error:
            failed[place] = rewrite_problem(error)
            continue
        found.setdefault(number, []).append((place, table))
    runs = []
    for number, tables in found.items():
        table = pa.concat_tables([each for _, each in tables]).replace_schema_metadata(None)
        table = _without_views(table).combine_chunks()
        yield _stream(table)
        places, counts = zip(*((place, len(each)) for place, each in tables), strict=True)
        runs.append(schemas[number].run(places, counts, 1, checksum(table) if verify else 0))
    yield Decoded(tuple(runs), failed)


def _decode_one(storage: Storage, uri: str, size: int, verify: bool) -> Iterator[bytes | Decoded]:
    total = count = 0
    try:
        with name_file_in_errors(uri):
            Speller().read(footer_of(read_tail(storage, uri, size), uri), uri)
            source: Any = pa.PythonFile(RangeSource(storage, uri, size), mode="r")
            if size <= _AT_ONCE:
                source = storage.read(uri)
            file = _parquet(source)
            schema = _Schema.of(file)
            for table in _tables(source, file, _PART, _PART_ROWS, schema.has_int96):
                total += checksum(table) if verify else 0
                count += 1
                yield _stream(table.replace_schema_metadata(None))
        run = schema.run((0,), (int(file.metadata.num_rows),), count, total % 2**64)
        yield Decoded((run,), {})
    except Exception as error:
        yield Decoded((), {0: rewrite_problem(error)})


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


_PROBE: ChildReader[None] = ChildReader(probe)
_PARTS: ChildReader[pa.Table] = ChildReader(parts)
_DECODED: ChildReader[Any] = ChildReader(decode)


def _check_int96(content: bytes, table: pa.Table) -> None:
    coarse = _all(_parquet(content, coerce_int96_timestamp_unit="us"))
    _compare(_coarse_sum(table, coarse.schema), checksum(coarse))


def _coarse_sum(table: pa.Table, schema: pa.Schema) -> int:
    return checksum(table.cast(schema, safe=False))


def _compare(fine: int, coarse: int) -> None:
    """Compares sums of rows, not the rows, for NaN differs from itself.

    Errors:
        Rejected: a timestamp is outside the years that nanoseconds can count.
    """
    if fine != coarse:
        raise Rejected("UNSUPPORTED: an INT96 timestamp is too far from 1970 to be kept exactly")


def _repeated(file: pq.ParquetFile) -> list[str]:
    """Names of plain columns of text whose values are repeated much."""
    found = []
    count = Counter(file.schema_arrow.names)
    for i in range(len(file.schema)):
        column = file.schema.column(i)
        if column.physical_type != "BYTE_ARRAY" or column.max_repetition_level:
            continue
        if column.converted_type == "DECIMAL" or count[column.path] != 1:
            continue
        if not _is_text(file.schema_arrow.field(column.path).type):
            continue
        size = values = 0
        for group in range(file.num_row_groups):
            chunk = file.metadata.row_group(group).column(i)
            if not chunk.has_dictionary_page:
                break
            size, values = size + chunk.total_uncompressed_size, values + chunk.num_values
        else:
            if values and size / values <= _CODED:
                found.append(column.path)
    return found


def _is_text(type: pa.DataType) -> bool:
    return type in (pa.string(), pa.binary(), pa.string_view(), pa.binary_view())


def _without_views(table: pa.Table) -> pa.Table:
    """Text whose type is that of a view, as large text: Arrow does not reorder rows of views."""
    types = [_without_view(field.type) for field in table.schema]
    if types == table.schema.types:
        return table
    fields = [f.with_type(type) for f, type in zip(table.schema, types, strict=True)]
    return table.cast(pa.schema(fields, table.schema.metadata))


def _without_view(type: pa.DataType) -> pa.DataType:
    if type == pa.string_view():
        return pa.large_string()
    if type == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_dictionary(type):
        return pa.dictionary(type.index_type, _without_view(type.value_type), type.ordered)
    if pa.types.is_struct(type):
        return pa.struct([f.with_type(_without_view(f.type)) for f in type])
    if pa.types.is_map(type):
        key, item = type.key_field, type.item_field
        return pa.map_(
            key.with_type(_without_view(key.type)), item.with_type(_without_view(item.type))
        )
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        make = pa.list_ if pa.types.is_list(type) else pa.large_list
        return make(type.value_field.with_type(_without_view(type.value_type)))
    return type


def _properties(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """Properties of the footer that new files take over."""
    held = dict(file.metadata.metadata or {})
    return {key: value for key, value in held.items() if key not in _OWN}


def _leaves(file: pq.ParquetFile) -> tuple[Any, ...]:
    """How each leaf is stored, so that a reader of one file reads the other alike."""
    found = []
    for column in (file.schema.column(i) for i in range(len(file.schema))):
        physical, converted = column.physical_type, column.converted_type
        found.append(
            (
                physical,
                "NONE" if (physical, converted) in _PLAIN else converted,
                column.length,
                # Of decimals alone; elsewhere a writer may state anything.
                *((column.precision, column.scale) if converted == "DECIMAL" else ()),
                column.max_definition_level,
                column.max_repetition_level,
            )
        )
    return tuple(found)


def _fields(fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    """Names, ids and nullability at every depth; inner names of lists do not matter."""
    found = []
    for field in fields:
        id = (field.metadata or {}).get(b"PARQUET:field_id")
        type, inner = field.type, []
        if pa.types.is_struct(type):
            inner = [type.field(i) for i in range(type.num_fields)]
        elif pa.types.is_map(type):
            inner = [type.key_field.with_name(""), type.item_field.with_name("")]
        elif hasattr(type, "value_field"):
            inner = [type.value_field.with_name("")]
        found.append((field.name, id, field.nullable, type.id, _fields(inner)))
    return tuple(found)


def _fingerprint(file: pq.ParquetFile) -> Any:
    properties = tuple(sorted(_properties(file).items()))
    schema = file.schema_arrow
    names = tuple(file.schema.column(i).path for i in range(len(file.schema)))
    return _fields(list(schema)), _leaves(file), names, properties, str(schema.remove_metadata())


def _check_schema(old: pq.ParquetFile, new: pq.ParquetFile) -> None:
    """Errors: Rejected: the new file stores a column in another way than the old one."""
    if _leaves(old) == _leaves(new) and _fields(list(old.schema_arrow)) == _fields(
        list(new.schema_arrow)
    ):
        return
    for i, (one, other) in enumerate(zip(_leaves(old), _leaves(new), strict=False)):
        if one != other:
            raise Rejected(
                f"UNSUPPORTED: {old.schema.column(i).path} is stored as {one[0]} {one[1]}, and "
                f"would be as {other[0]} {other[1]}"
            )
    raise Rejected("UNSUPPORTED: names, ids or nullability of columns would change")


FILES = ParquetFiles()
