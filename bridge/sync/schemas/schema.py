"""How a table's columns follow its files: types widen, columns are appended, nothing narrows.

=========================================  ====================================
files, against the table                   what happens
=========================================  ====================================
a column that the table lacks              appended, in the order of the files
a column that the files lack               stays; it reads as NULL
a type that holds more, exactly            the table's type is widened to it
a type that holds less                     refused, or the table's type stays
types of which neither holds the other     refused
=========================================  ====================================

Names are compared without case, and all of this holds at every depth of a type. A refusal shows
both schemas. The law: after the change the table's type holds every value of every inspected file
exactly, and a table's type never becomes narrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bridge.kernel.errors import (
    BridgeError,
    FileCorrupt,
    FileShort,
    FileUnreadable,
    SchemaConflict,
    TableNotFound,
)
from bridge.kernel.threads import Threads
from bridge.kernel.types import UNKNOWN, Kind, Type
from bridge.storage.port import Storage
from bridge.table.infer import (
    AlikeNames,
    common_type,
    hive_type_of,
    members_left_out,
    merge_schemas,
    read_schema,
)
from bridge.table.model import Column

_BYTES = frozenset({Kind.STRING, Kind.VARCHAR, Kind.CHAR, Kind.BINARY})
_INSTANTS = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})


@dataclass(frozen=True, slots=True)
class SchemaEvolution:
    """The effect of the files on a table's columns.

    Attributes:
        columns: the table's columns after the change.
        appended: names of new columns.
        widened: name, old and new type.
        narrower: name, the table's type, the files' narrower one.
        conflicting: name, the table's type, the files' type.
        left_out: columns of the files, and members of columns, whose type Hive does not have.
    """

    columns: tuple[Column, ...]
    appended: tuple[str, ...] = ()
    widened: tuple[tuple[str, Type, Type], ...] = ()
    narrower: tuple[tuple[str, Type, Type], ...] = ()
    conflicting: tuple[tuple[str, Type, Type], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.appended or self.widened)


def evolve(
    table: Sequence[Column], files: Sequence[Column], keys: Sequence[Column] = ()
) -> SchemaEvolution:
    """Compares a table's columns with those of its files.

    Args:
        keys: partition keys; as in Hive, a key wins over a file column of the same name.
    """
    taken = {k.name.lower() for k in keys}
    held = {c.name.lower(): c for c in table}
    wide: dict[str, Type] = {}
    widened: list[tuple[str, Type, Type]] = []
    narrower: list[tuple[str, Type, Type]] = []
    conflicting: list[tuple[str, Type, Type]] = []
    appended: list[Column] = []
    left_out: list[str] = []
    for column in files:
        name = column.name.lower()
        known = held.get(name)
        if name in taken or (known is not None and _is_strange(known.type)):
            continue
        type = hive_type_of(column.type)
        whole = column.type
        if known is not None:
            whole = common_type(known.type, column.type, holds_bytes) or UNKNOWN
        common = hive_type_of(whole)
        left_out += members_left_out(name, whole)
        if known is not None and common is UNKNOWN and type is not UNKNOWN:
            conflicting.append((name, known.type, type))
        elif common is UNKNOWN:
            left_out.append(name)
        elif known is None:
            appended.append(Column(name, common))
        elif common != known.type:
            wide[name] = common
            widened.append((name, known.type, common))
        elif type is not UNKNOWN and is_narrower(type, known.type):
            narrower.append((name, known.type, type))
    # A column that files have lost stays: no rule above takes one out.
    columns = [Column(c.name, wide.get(c.name.lower(), c.type), c.comment) for c in table]
    return SchemaEvolution(
        (*columns, *appended),
        tuple(c.name for c in appended),
        tuple(widened),
        tuple(narrower),
        tuple(conflicting),
        tuple(left_out),
    )


def names_within(columns: Iterable[Column]) -> set[str]:
    """The names of columns, and of the members of their types, such as ``address.zip``."""
    found: set[str] = set()
    pending = [(c.name.lower(), c.type) for c in columns]
    while pending:
        name, type = pending.pop()
        found.add(name)
        pending += [(f"{name}.{f.name.lower()}", f.type) for f in type.fields]
    return found


def grown_type(held: Type, file: Type) -> Type | None:
    """The narrowest type that holds the values of a declared type and of a file's.

    None if the declared type holds the file's values already, or if there is none.
    """
    if file is UNKNOWN or _is_strange(held):
        return None
    common = common_type(held, file, holds_bytes)
    return None if common is None or common == held else common


def _is_strange(type_: Type) -> bool:
    """Whether there is a type in it that we do not have; such a column is left as it is."""
    return type_.kind is Kind.UNKNOWN or any(_is_strange(f.type) for f in type_.fields)


def holds_bytes(table: Type, file: Type) -> bool:
    """Whether only the declaration differs: the same bytes hold the same values."""
    return (
        file == table
        or (file.kind in _BYTES and table.kind in _BYTES)
        or (file.kind in _INSTANTS and table.kind in _INSTANTS)
    )


def is_narrower(left: Type, right: Type) -> bool:
    """Whether a value type in ``left`` holds less than its counterpart in ``right``.

    Missing struct members do not count, since they read as NULL.
    """
    if left.is_nested and left.kind is right.kind:
        wide = {f.name.lower(): f.type for f in right.fields}
        pairs = [(f.type, wide.get(f.name.lower())) for f in left.fields]
        return any(is_narrower(one, other) for one, other in pairs if other is not None)
    return not holds_bytes(right, left) and common_type(left, right) == right


def refuse(
    table: str, evolution: SchemaEvolution, old: Sequence[Column], new: Sequence[Column]
) -> None:
    """Raises an error with the conflicting columns and both schemas.

    Errors:
        SchemaConflict: there is a conflict, or files are narrower than the table.
    """
    if not evolution.conflicting and not evolution.narrower:
        return
    wrong = [
        *(f"{n} is {t} in the table and {f} in the files" for n, t, f in evolution.conflicting),
        *(f"{n} would narrow from {t} to {f}" for n, t, f in evolution.narrower),
    ]
    remedy = (
        "rewrite the files of one of the two, or register them as two tables"
        if evolution.conflicting
        else "the wider type reads these files too: allow it with --hold-wider"
    )
    raise SchemaConflict(
        f"{table}: {'; '.join(wrong)}\n  table: {show(old)}\n  files: {show(new)}", remedy
    )


def show(columns: Iterable[Column]) -> str:
    """A schema on one line: ``id bigint, name string``."""
    return ", ".join(f"{c.name} {c.type}" for c in columns)


def appended_lines(evolution: SchemaEvolution, files: Iterable[tuple[str, pa.Schema]]) -> list[str]:
    """A line for each new column, with what becomes of timestamps that its type does not hold.

    Args:
        files: schemas of Parquet files; those of others do not tell how exact their values are.
    """
    notes: dict[str, str] = {}
    for _, schema in files:
        for entry in schema:
            if pa.types.is_timestamp(entry.type) and entry.type.tz is not None:
                notes[entry.name.lower()] = (
                    ", from instants: Trino shows them in its catalog's zone"
                )
            elif pa.types.is_timestamp(entry.type) and entry.type.unit == "ns":
                notes[entry.name.lower()] = ", from nanoseconds: Trino rounds them to microseconds"
    types = {c.name: c.type for c in evolution.columns}
    return [f"+ column {name} {types[name]}{notes.get(name, '')}" for name in evolution.appended]


def thin_out(rows: Sequence[int], most: int) -> list[int]:
    """At most ``most`` rows, evenly spaced and with the last one; all rows if ``most`` is 0.

    >>> thin_out(range(10), 4)
    [0, 3, 6, 9]
    """
    if most <= 0 or len(rows) <= most:
        return list(rows)
    if most == 1:
        return [rows[-1]]
    return [rows[i * (len(rows) - 1) // (most - 1)] for i in range(most)]


@dataclass(frozen=True, slots=True)
class FileSchemas:
    """Schemas of some files.

    Attributes:
        columns: columns that hold the values of all files.
        unreadable: files that are not of the format or cannot be read, each with the reason;
            deleted files are not included.
        files: the URI and the schema of each file.
        alike: the error about names of the first file, by path, if there is one.
    """

    columns: tuple[Column, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, pa.Schema], ...] = ()
    alike: AlikeNames | None = None

    def refusal(self, root: str) -> BridgeError:
        """What is told of a new table if no file could be read."""
        if self.alike is not None:
            return self.alike
        rest = "its files have no columns" if self.files else "all files are gone"
        reason = self.unreadable[0][1] if self.unreadable else rest
        return TableNotFound(
            f"no readable file below {root}: {reason}",
            "give the directory that holds the data; name its format: --format",
        )


def read_schemas(
    storage: Storage,
    files: Sequence[tuple[str, int]],
    format: str = "parquet",
    *,
    threads: int = 16,
) -> FileSchemas:
    """The columns of files (URI and size); a file deleted since the listing is ignored.

    Errors:
        SchemaConflict: two of the files disagree.
        StorageFailure.
    """
    alike: list[AlikeNames] = []
    schemas, unreadable = read_each(storage, files, format, threads=threads, alike=alike)
    first = min(alike, key=str, default=None)  # threads end in any order
    return FileSchemas(merge_schemas(schemas), unreadable, schemas, first)


def read_each(
    storage: Storage,
    files: Sequence[tuple[str, int]],
    format: str,
    *,
    threads: int = 16,
    alike: list[AlikeNames] | None = None,
) -> tuple[tuple[tuple[str, pa.Schema], ...], tuple[tuple[str, str], ...]]:
    """Like `read_schemas`, of each file by itself: those that could be read, and the others.

    Args:
        alike: receives the errors about names.
    """

    def read(file: tuple[str, int]) -> pa.Schema | str | None:
        uri, size = file
        try:
            return read_schema(storage, uri, size, format)
        except FileCorrupt as error:
            if alike is not None and isinstance(error, AlikeNames):
                alike.append(error)
            return error.message
        except FileShort as error:
            return f"{error.message}: it is being written, or was cut"
        except FileUnreadable as error:
            now = storage.stat(uri)
            if now is None:
                return None
            return error.message if now.size == size else f"{uri} is being rewritten"

    with Threads(threads, "schemas") as pool:
        found = list(zip(files, pool.map(read, files), strict=True))
    schemas = tuple((uri, schema) for (uri, _), schema in found if isinstance(schema, pa.Schema))
    return schemas, tuple((uri, reason) for (uri, _), reason in found if isinstance(reason, str))
