"""The columns and properties that a new table of segments is declared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from bridge.formats.registry import file_format
from bridge.kernel.errors import (
    BridgeError,
    FileCorrupt,
    InvalidRequest,
    SchemaConflict,
    UnsupportedType,
)
from bridge.kernel.types import UNKNOWN, parse_hive_type
from bridge.storage.port import FileTable, Storage
from bridge.storage.reading.ahead import ask_all
from bridge.table.infer import infer_readable, members_left_out, merge_schemas, settle_columns
from bridge.table.model import Column
from bridge.table.segments.headers import head_text, read_header, refuse_one_field
from bridge.table.segments.manifest import SegmentColumn, sorted_properties
from bridge.table.segments.properties import HEADER, HEADER_LINES, split_fields

_SAMPLED = 50
_TYPED = "use a type of Hive; commas separate columns: 'id bigint, price decimal(10, 2)'"
_NAMES = "a name is letters, digits and underscores"


def split_columns(text: str) -> list[str]:
    """The parts of ``'id bigint, price decimal(5, 2)'``; commas inside types count for them."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts


def parse_columns(text: str) -> list[tuple[str, str]]:
    """Names and types of ``'id bigint, name string'``, as `split_columns` parts them.

    Errors:
        InvalidRequest.
    """
    found: list[tuple[str, str]] = []
    for part in split_columns(text):
        name, _, type = part.partition(" ")
        name, colon, after = name.partition(":")
        type = f"{after} {type}".strip() if colon else type.strip()
        if not name or not type:
            raise InvalidRequest(f"{part!r} is no column", "give NAME TYPE, NAME TYPE, ...")
        found.append((name, type))
    return found


def declare_columns(columns: Sequence[tuple[str, str]]) -> tuple[SegmentColumn, ...]:
    """Columns from names and Hive types.

    Errors:
        InvalidRequest: there is none, or a name is taken or not possible.
        UnsupportedType.
    """
    if not columns:
        raise InvalidRequest("the table has no columns", "give at least one")
    found: list[SegmentColumn] = []
    for name, text in columns:
        own = name.strip().strip("`").lower()
        if not _is_name(own):
            raise InvalidRequest(f"{name!r} cannot be the name of a column", _NAMES)
        if any(c.name == own for c in found):
            raise InvalidRequest(f"column {own} is declared twice", "name each column once")
        try:
            type = parse_hive_type(text.strip().lower())
        except UnsupportedType as error:
            raise UnsupportedType(f"column {own}: {error.message}", _TYPED) from error
        if type is UNKNOWN:
            raise UnsupportedType(f"column {own} is declared as {text!r}", _TYPED)
        found.append(SegmentColumn(len(found), own, type))
    return tuple(found)


def infer_columns(
    storage: Storage, files: FileTable, format: str, properties: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Columns that hold the values of some of the files.

    Of JSON the beginnings of these files are looked at, of CSV that of one file: check the types.

    Returns:
        Names and Hive types; and the names that are left out, since they are there twice, are no
        names of columns, or Hive has no such type; also those of members of columns.

    Errors:
        UnsupportedType: of this format, or these files, columns have to be declared.
        SchemaConflict, FileCorrupt, SegmentSchemaMismatch, FileUnreadable.
    """
    paths, sizes = files.paths.to_pylist(), files.sizes.tolist()
    step = max(1, len(paths) // _SAMPLED)
    if file_format(format).read_schema is not None:
        sample = list(zip(paths, sizes, strict=True))[::step]
        columns = infer_readable(storage, sample, format)[0]
    elif format == "json":
        columns = columns_of_json(storage, list(zip(paths, sizes, strict=True))[::step])
    elif format == "csv":
        columns = columns_of_csv(storage, paths[0], sizes[0], properties)
    else:
        raise UnsupportedType(
            f"columns of {file_format(format).spelled} files cannot be inferred", "declare them"
        )
    members = [m for c in columns for m in members_left_out(c.name, c.type)]
    columns = settle_columns(columns)
    names = [c.name.strip().lower() for c in columns]
    count = Counter(names)
    good = [
        c.type is not UNKNOWN and _is_name(name) and count[name] == 1
        for c, name in zip(columns, names, strict=True)
    ]
    found = [(c.name, str(c.type)) for c, one in zip(columns, good, strict=True) if one]
    left_out = {c.name for c, one in zip(columns, good, strict=True) if not one}
    return found, sorted(left_out.union(members))


def _is_name(name: str) -> bool:
    return name.replace("_", "a").isalnum()


def columns_of_json(storage: Storage, files: Sequence[tuple[str, int]]) -> tuple[Column, ...]:
    """The columns of the beginnings of JSON files, in the order in which they are met.

    Errors:
        SchemaConflict: two files disagree, or two values of one.
        FileCorrupt: a file cannot be read as JSON.
        SegmentSchemaMismatch, FileUnreadable, StorageFailure.
    """
    texts = ask_all(storage, lambda file: _first_objects(storage, *file), files, files[0][0])
    uris = [uri for uri, _ in files]
    try:
        return _as_columns(_schema_of_json(b"".join(texts)), uris[0])
    except pa.ArrowException as error:
        merge_schemas(_schemas_alone(zip(uris, texts, strict=True)))
        raise _not_inferred(uris[0], error) from error


def _first_objects(storage: Storage, uri: str, size: int) -> bytes:
    """Errors: FileCorrupt: it is one array; as `head_text`."""
    text = head_text(storage, uri, size)
    if text.lstrip()[:1] == "[":
        raise FileCorrupt(
            f"{uri} is one JSON array, and engines read an object in each line",
            "write each object of it in a line of its own (jq -c '.[]')",
        )
    return (text[: text.rfind("\n") + 1] or f"{text}\n").encode()


def _schema_of_json(text: bytes) -> pa.Schema:
    """Errors: pa.ArrowException."""
    return _without_other_times(
        lambda known: pyarrow.json.read_json(
            pa.BufferReader(text),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=None if known is None else pa.schema(known)
            ),
        )
    )


def _schemas_alone(files: Iterable[tuple[str, bytes]]) -> list[tuple[str, pa.Schema]]:
    """The schema of each text; a number of one that is fractional in another is so in both.

    Errors: FileCorrupt, SchemaConflict: names the text that cannot be read.
    """
    found = []
    for uri, text in files:
        try:
            found.append((uri, _schema_of_json(text)))
        except pa.ArrowException as error:
            raise _not_inferred(uri, error) from error
    floats = {f.name for _, schema in found for f in schema if pa.types.is_floating(f.type)}

    def widen(field: pa.Field) -> pa.Field:
        whole = field.name in floats and pa.types.is_integer(field.type)
        return field.with_type(pa.float64()) if whole else field

    return [(uri, pa.schema([widen(f) for f in schema])) for uri, schema in found]


def _not_inferred(uri: str, error: Exception) -> BridgeError:
    """A value of another type than the one before it is no damage."""
    known = SchemaConflict if " changed from " in str(error) else FileCorrupt
    return known(
        f"{uri}: its columns cannot be inferred: {error}",
        "declare the columns: --columns 'id bigint, name string'",
    )


def columns_of_csv(
    storage: Storage, uri: str, size: int, properties: Mapping[str, str]
) -> tuple[Column, ...]:
    """The columns of the beginning of a CSV file; see `infer_columns`."""
    text = head_text(storage, uri, size)
    raw = (text[: text.rfind("\n") + 1] or text).encode()
    skipped = int(properties.get(HEADER_LINES, "0"))
    given = properties.get(HEADER)
    if given is None and not skipped:
        raise UnsupportedType(
            f"{uri} does not tell the names of its fields",
            f"give --property {HEADER}=a,b,c, or --property {HEADER_LINES}=1 if the first line "
            "names them",
        )
    names = (
        split_fields(given)
        if given is not None
        else read_header(storage, uri, size, sorted_properties(dict(properties)))
    )
    if given is None and "csv.delimiter" not in properties:
        refuse_one_field(storage, uri, size, names, "csv.delimiter=")
    parse = pyarrow.csv.ParseOptions(
        delimiter=properties.get("csv.delimiter", ","),
        quote_char=properties.get("csv.quote", '"'),
    )
    read = pyarrow.csv.ReadOptions(skip_rows=skipped, column_names=list(names))
    try:
        schema = _without_other_times(
            lambda known: pyarrow.csv.read_csv(
                pa.BufferReader(raw),
                read,
                parse,
                pyarrow.csv.ConvertOptions(
                    column_types=None if known is None else pa.schema(known),
                    strings_can_be_null=True,
                ),
            )
        )
    except pa.ArrowException as error:
        raise _not_inferred(uri, error) from error
    return _as_columns(schema, uri)


def _as_columns(schema: pa.Schema, uri: str) -> tuple[Column, ...]:
    twice = {name for name, count in Counter(schema.names).items() if count > 1}
    plain = [pa.field(f.name, _plain(f.type)) for f in schema if f.name not in twice]
    unknown = [Column(name, UNKNOWN) for name in sorted(twice)]
    return (*merge_schemas([(uri, pa.schema(plain))]), *unknown)


def _without_other_times(read: Callable[[list[pa.Field] | None], pa.Table]) -> pa.Schema:
    """The inferred schema, where a date or time is of the spelling that engines read.

    Arrow takes more texts for times than engines do: ``2024-01-04``, and those with a T or a zone.

    Args:
        read: reads the text; some fields are given.
    """
    schema = read(None).schema
    texts = [f.with_type(_as_text(f.type)) for f in schema if _as_text(f.type) != f.type]
    if not texts:
        return schema
    table = read(texts)
    for field in texts:
        found = field
        if pa.types.is_string(field.type):
            values = table.column(field.name).drop_null()
            for spelling, type in _TIMES:
                if pc.all(pc.match_substring_regex(values, spelling), min_count=0).as_py():
                    found = field.with_type(type)
                    break
        schema = schema.set(schema.get_field_index(field.name), found)
    return schema


_TIMES = (
    (r"^\d{4}-\d\d-\d\d$", pa.date32()),
    (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$", pa.timestamp("us")),
)


def _as_text(type: pa.DataType) -> pa.DataType:
    """A type with texts in place of dates and times, at any depth."""
    if pa.types.is_timestamp(type) or pa.types.is_date(type):
        return pa.string()
    if pa.types.is_struct(type):
        return pa.struct([f.with_type(_as_text(f.type)) for f in type])
    return pa.list_(_as_text(type.value_type)) if pa.types.is_list(type) else type


def _plain(type: pa.DataType) -> pa.DataType:
    """Columns without a value are text."""
    return pa.string() if pa.types.is_null(type) or pa.types.is_time(type) else type
