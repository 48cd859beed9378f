"""Parquet files as clustering reads and writes them; implements `DataFiles`.

Values are read and written as they are stored, without a calendar or time zone of this program, and
the footer's properties that tell engines how to read them are copied.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from inspect import signature
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.clustering.checksum import checksum
from bridge.clustering.data_files import Rejected, Writing, blaming
from bridge.clustering.ranks import flat
from bridge.file_formats.rows import all_rows, expect_rows
from bridge.storage.child import ChildReader, held
from bridge.storage.parquet_footer import Speller
from bridge.storage.parquet_tail import footer_of, read_tail
from bridge.storage.port import Storage
from bridge.storage.source import WHOLE, RangeSource

_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
_OWN = (b"pandas", b"ARROW:schema")
"""Properties that describe one file's rows, or are made anew."""
_CODED = 2.5
"""Text that takes at most so many bytes a value is kept as codes into its dictionary."""
_PAYS = 0.8
"""A dictionary pays if a column takes at most this share of its plain size."""
_FALSE = 0.01
"""The share of absent values that a bloom filter does not exclude."""
_WRITES_BLOOMS = "bloom_filter_options" in signature(pq.ParquetWriter.__init__).parameters
_PROBED_ROWS = 4096
_SHORTEST, _LONGEST = 1 << 16, 1 << 20
"""Bytes that are read at once of a column of a large file."""
_FEWEST_ROWS, _MOST_ROWS = 16, 1 << 15
_PLAIN = {("INT32", "INT_32"), ("INT64", "INT_64")}
"""Annotations that say no more than the type below them. Trino, DuckDB and Polars write them."""
_WIDTHS = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


def _parquet(source: bytes | pa.NativeFile, **options: Any) -> pq.ParquetFile:
    """A file whose pages are checked where they have checksums: new ones would hide the damage."""
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    return pq.ParquetFile(source, page_checksum_verification=True, **options)


def _group(file: pq.ParquetFile, group: int, columns: list[str] | None = None) -> pa.Table:
    """Errors: FileCorrupt: rows are missing."""
    table = file.read_row_group(group, columns)
    expect_rows(table.num_rows, file.metadata.row_group(group).num_rows, "a Parquet file")
    return table


def _all(file: pq.ParquetFile, columns: list[str] | None = None) -> pa.Table:
    """All rows. Read at once, a column may go on in the rows of the next group."""
    groups = [_group(file, i, columns) for i in range(file.num_row_groups)]
    return pa.concat_tables(groups) if groups else file.read(columns)


class ParquetFile:
    """Implements `DataFile`."""

    def __init__(self, content: bytes) -> None:
        # Arrow ends the process where it meets some kinds of damage.
        Speller().read(footer_of(content, "a Parquet file"), "a Parquet file")
        _PROBE.read(held(content), "a Parquet file", len(content))
        self.content = content
        self.file = _parquet(content)

    @property
    def fingerprint(self) -> Hashable:
        found: Hashable = _fingerprint(self.file)
        return found

    @property
    def num_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    @property
    def names(self) -> list[str]:
        return list(self.file.schema_arrow.names)

    def read(self, places: Sequence[int] | None = None) -> pa.Table:
        if places is not None:
            return _without_views(self._some(list(places)))
        table = _all(self._coded)
        _check_int96(self.file, self.content, table)
        return _without_views(table)

    @cached_property
    def _coded(self) -> pq.ParquetFile:
        """The file, read without decoding dictionaries of text that is repeated much."""
        names = _repeated(self.file)
        if not names:
            return self.file
        return _parquet(self.content, read_dictionary=names)

    def _some(self, places: list[int]) -> pa.Table:
        names = self.file.schema_arrow.names
        wanted = [names[place] for place in places]
        # The reader finds columns by name, and treats a name with a dot as a path.
        count = Counter(names)
        if not wanted or any(count[name] > 1 or "." in name for name in wanted):
            return _all(self.file).select(places)
        return _all(self.file, wanted).select(wanted)

    def batches(self) -> Iterator[pa.Table]:
        for group in range(self.file.num_row_groups):
            yield _without_views(_group(self._coded, group))


class ParquetFiles:
    """Implements `DataFiles`."""

    suffix = "parquet-data"

    def open(self, content: bytes) -> ParquetFile:
        return ParquetFile(content)

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        if size <= min(WHOLE, memory):
            yield from self.open(storage.read(uri)).batches()
            return
        Speller().read(footer_of(read_tail(storage, uri, size), uri), uri)
        yield from _PARTS.stream(storage, uri, size, memory)

    def encode(
        self, table: pa.Table, like: ParquetFile, writing: Writing, row_bytes: float
    ) -> bytes:
        group_rows = int(min(max(writing.group_bytes / row_bytes, 1), 64 * 1024**2))
        return _encode(table, like.file, writing, group_rows)

    def check(self, old: ParquetFile, new: ParquetFile) -> None:
        _check_schema(old.file, new.file)


def probe(storage: Storage, uri: str, size: int) -> None:
    """Decodes all pages as clustering will. Runs in the child. Errors: FileCorrupt."""
    with blaming(uri):
        source = storage.read(uri)
        file = _parquet(source)
        for names in {(), tuple(_repeated(file))}:
            reader = _parquet(source, read_dictionary=list(names))
            for _ in reader.iter_batches(_PROBED_ROWS, use_threads=False):
                pass


def parts(storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
    """The rows of a large file. Runs in the child. Errors: FileCorrupt."""
    with blaming(uri):
        source = pa.PythonFile(RangeSource(storage, uri, size), mode="r")
        file = _parquet(source)
        about, columns = file.metadata, max(file.metadata.num_columns, 1)
        coded = _parquet(
            source,
            metadata=about,
            read_dictionary=_repeated(file),
            buffer_size=max(_SHORTEST, min(_LONGEST, memory // (4 * columns))),
            pre_buffer=False,
        )
        for number in range(about.num_row_groups):
            group = about.row_group(number)
            rows = int(memory / 4 * group.num_rows / max(group.total_byte_size, 1))
            rows = max(_FEWEST_ROWS, min(_MOST_ROWS, rows))
            read = coded.iter_batches(rows, [number], use_threads=False)
            for batch in all_rows(read, group.num_rows, uri):
                yield _without_views(pa.Table.from_batches([batch]))


_PROBE: ChildReader[None] = ChildReader(probe)
_PARTS: ChildReader[pa.Table] = ChildReader(parts)


def _check_int96(file: pq.ParquetFile, content: bytes, table: pa.Table) -> None:
    """Errors: Rejected: a timestamp is outside the years that nanoseconds can count."""
    if "INT96" not in {file.schema.column(i).physical_type for i in range(len(file.schema))}:
        return
    coarse = _all(_parquet(content, coerce_int96_timestamp_unit="us"))
    # Not Table.equals, to which NaN differs from itself.
    if checksum(table.cast(coarse.schema, safe=False)) != checksum(coarse):
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


def _encode(table: pa.Table, like: pq.ParquetFile, writing: Writing, group_rows: int) -> bytes:
    physical = [like.schema.column(i).physical_type for i in range(len(like.schema))]
    decimals = {
        like.schema.column(i).physical_type
        for i in range(len(like.schema))
        if like.schema.column(i).converted_type == "DECIMAL"
    }
    properties = _properties(like)
    if b"ARROW:schema" in (like.metadata.metadata or {}):
        # As the old file has it: the table may hold codes instead of text.
        schema = like.schema_arrow.remove_metadata().serialize().to_pybytes()
        properties[b"ARROW:schema"] = base64.b64encode(schema)
    sink = BytesIO()
    indexed = writing.page_index or any(chunk.has_column_index for chunk in _chunks(like))
    blooms = _blooms(table, like, writing, group_rows)
    writer = pq.ParquetWriter(
        sink,
        table.schema.remove_metadata(),
        compression=writing.compression or _codecs(like),
        use_deprecated_int96_timestamps="INT96" in physical,
        store_decimal_as_integer=bool(decimals & {"INT32", "INT64"}),
        store_schema=False,
        use_dictionary=_dictionaries(like, table),
        write_page_index=indexed,
        version="2.6",
        **({"bloom_filter_options": blooms} if blooms else {}),
    )
    with writer:
        writer.write_table(table.replace_schema_metadata(None), row_group_size=group_rows)
        if properties:
            writer.add_key_value_metadata(properties)
    return sink.getvalue()


def _chunks(file: pq.ParquetFile) -> list[Any]:
    """The column chunks of the first row group; none if the file is empty."""
    if not file.metadata.num_row_groups:
        return []
    group = file.metadata.row_group(0)
    return [group.column(i) for i in range(group.num_columns)]


def _blooms(
    table: pa.Table, like: pq.ParquetFile, writing: Writing, group_rows: int
) -> dict[str, dict[str, float]]:
    """The options of bloom filters, by the path of their column.

    A column that is stored in another way than engines look values up has none.

    Errors:
        Rejected: they are asked for, and this release of Arrow does not write them.
    """
    wanted = {name.lower() for name in writing.bloom}
    paths = [name for name in table.column_names if name.lower() in wanted]
    for chunk in _chunks(like):  # an older Arrow does not tell
        if getattr(chunk, "bloom_filter_offset", None) is not None:
            paths.append(chunk.path_in_schema)
    if paths and not _WRITES_BLOOMS:
        if not wanted:
            return {}
        raise Rejected(
            f"UNSUPPORTED: pyarrow {pa.__version__} writes no bloom filters; install a later one"
        )
    stored = dict(writing.stored)
    leaves = [like.schema.column(i) for i in range(len(like.schema))]
    sure = {leaf.path for leaf in leaves if leaf.physical_type in stored.get(leaf.path.lower(), ())}
    found = {}
    for path in sure.intersection(paths):
        rows = min(group_rows, len(table))
        if table.column_names.count(path) == 1:
            rows = min(rows, pc.count_distinct(flat(table.column(path))).as_py())
        found[path] = {"ndv": max(rows, 1), "fpp": _FALSE}
    return found


def _dictionaries(like: pq.ParquetFile, table: pa.Table) -> bool | list[str]:
    """Paths of the columns for which the old file's dictionaries pay."""
    if not like.metadata.num_row_groups:
        return True
    group = like.metadata.row_group(0)
    found = []
    for i in range(group.num_columns):
        chunk, column = group.column(i), like.schema.column(i)
        if not chunk.has_dictionary_page:
            continue
        width = _WIDTHS.get(column.physical_type, column.length or 0)
        if column.physical_type == "BYTE_ARRAY":
            width = _text_width(table, column.path)
        if not width or chunk.total_uncompressed_size <= _PAYS * width * chunk.num_values:
            found.append(chunk.path_in_schema)
    return found


def _text_width(table: pa.Table, path: str) -> float:
    """Bytes of a plain value of a top-level column; 0 if it is another one, or coded."""
    if table.column_names.count(path) != 1 or not len(table):
        return 0
    column = table.column(path)
    if not (_is_text(column.type) or column.type in (pa.large_string(), pa.large_binary())):
        return 0
    return 4 + (pc.mean(pc.binary_length(column.slice(0, 10_000))).as_py() or 0)


def _codecs(like: pq.ParquetFile) -> str | dict[str, str]:
    if not like.metadata.num_row_groups:
        return "snappy"
    group = like.metadata.row_group(0)
    found = {}
    for i in range(group.num_columns):
        codec = group.column(i).compression
        found[group.column(i).path_in_schema] = _CODECS.get(codec, codec.lower())
    return next(iter(found.values())) if len(set(found.values())) == 1 else found


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
