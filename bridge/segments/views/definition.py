"""What a view holds and how its files are laid out, with the spellings that statements use.

A view has some columns of one table, and every row of it. It neither filters nor computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bridge.kernel.errors import ColumnNotFound, InvalidRequest, UnsupportedType
from bridge.kernel.types import Kind, Type
from bridge.table.model import Column

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,127}")
_SIZE = re.compile(r"\s*([0-9]{1,9})\s*(mb|m|gb|g|kb|k)?\s*", re.IGNORECASE)
_UNIT = {"": 1 << 20, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LEAST, _MOST = 64 << 10, 2 << 30
DEFAULT_FILE_BYTES = 128 << 20
_SORTABLE = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.DECIMAL,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.STRING,
        Kind.VARCHAR,
        Kind.BINARY,
    }
)


class SortScope(Enum):
    """How far the order reaches.

    NO_SORT keeps the order of the facts. LOCAL_SORT sorts each run of rows that is held in memory,
    so that ranges of files overlap. GLOBAL_SORT sorts all rows of a segment.
    """

    NO_SORT = "no_sort"
    LOCAL_SORT = "local_sort"
    GLOBAL_SORT = "global_sort"


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view's definition; all names are in lower case.

    Attributes:
        columns: data columns of the table, each once, in the order of the view's files.
        sort_columns: among ``columns``; empty with NO_SORT.
        file_bytes: a file ends when it has about so many bytes.
        dictionary: columns that are written with a dictionary; None: Parquet's writer chooses.
    """

    name: str
    columns: tuple[str, ...]
    sort_columns: tuple[str, ...] = ()
    sort_scope: SortScope = SortScope.LOCAL_SORT
    file_bytes: int = DEFAULT_FILE_BYTES
    dictionary: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Defined:
    """A definition, and remarks for the one who made it: accepted properties without effect."""

    view: ViewDefinition
    notices: tuple[str, ...] = ()


def define_view(
    name: str,
    table: Sequence[Column],
    columns: Iterable[str],
    sort_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Defined:
    """Checks a definition against the table's columns.

    Args:
        columns: names, in any case.
        sort_by: of ``SORT BY``; not together with the property SORT_COLUMNS.
        properties: SORT_COLUMNS, SORT_SCOPE, TABLE_BLOCKSIZE, DICTIONARY_INCLUDE and
            NO_INVERTED_INDEX, in any case.

    Errors:
        InvalidRequest: a name or property is not valid.
        ColumnNotFound: the table has no such column.
        UnsupportedType: the view cannot be sorted by a column of this type.
    """
    given = {key.strip().upper(): value for key, value in (properties or {}).items()}
    spelled = given.pop("DICTIONATY_INCLUDE", None)  # as the design document has it
    if spelled is not None:
        given.setdefault("DICTIONARY_INCLUDE", spelled)
    lower = name.strip().lower()
    if not _NAME.fullmatch(lower):
        raise InvalidRequest(
            f"a view cannot be called {name!r}", "use letters, digits and underscores"
        )
    known = {column.name.lower(): column for column in table}
    held = _distinct(columns, known, "the view")
    if not held:
        raise InvalidRequest(f"view {lower} has no column", "name at least one")
    asked = _distinct(sort_by, known, "SORT BY")
    if "SORT_COLUMNS" in given:
        if asked:
            raise InvalidRequest(
                f"view {lower} has both SORT BY and SORT_COLUMNS", "give one of them"
            )
        asked = _distinct(_split(given.pop("SORT_COLUMNS")), known, "SORT_COLUMNS")
    for column in asked:
        _sortable(column, held, known[column].type, lower)
    scope = _scope(given.pop("SORT_SCOPE", None), asked)
    size = _bytes(given.pop("TABLE_BLOCKSIZE", None))
    dictionary = None
    if "DICTIONARY_INCLUDE" in given:
        dictionary = _distinct(_split(given.pop("DICTIONARY_INCLUDE")), known, "DICTIONARY_INCLUDE")
        _inside(dictionary, held, "DICTIONARY_INCLUDE", lower)
    notices = []
    if "NO_INVERTED_INDEX" in given:
        without = _distinct(_split(given.pop("NO_INVERTED_INDEX")), known, "NO_INVERTED_INDEX")
        _inside(without, held, "NO_INVERTED_INDEX", lower)
        notices.append("NO_INVERTED_INDEX has no effect: the view's files have no inverted index")
    if given:
        raise InvalidRequest(
            f"a view has no property {min(given)}",
            "known: SORT_COLUMNS, SORT_SCOPE, TABLE_BLOCKSIZE, DICTIONARY_INCLUDE, "
            "NO_INVERTED_INDEX",
        )
    sorted_by = () if scope is SortScope.NO_SORT else asked
    return Defined(ViewDefinition(lower, held, sorted_by, scope, size, dictionary), tuple(notices))


def _sortable(column: str, held: Sequence[str], type: Type, view: str) -> None:
    _inside((column,), held, "a sort column", view)
    if type.kind not in _SORTABLE:
        raise UnsupportedType(
            f"view {view} cannot be sorted by {column}, a {type}",
            "sort by numbers, text, dates or timestamps",
        )


def _inside(names: Sequence[str], held: Sequence[str], what: str, view: str) -> None:
    for name in names:
        if name not in held:
            raise InvalidRequest(
                f"{what} of view {view} is {name!r}, which the view does not hold",
                "add the column to the view",
            )


def _distinct(names: Iterable[str], known: Mapping[str, Column], what: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        lower = name.strip().lower()
        if lower not in known:
            raise ColumnNotFound(
                f"{what} names column {name.strip()!r}, which the table does not have",
                f"its columns: {', '.join(known)}",
            )
        if lower in found:
            raise InvalidRequest(f"{what} names column {lower!r} twice", "name it once")
        found.append(lower)
    return tuple(found)


def _scope(text: str | None, sort_columns: Sequence[str]) -> SortScope:
    if text is None:
        return SortScope.LOCAL_SORT if sort_columns else SortScope.NO_SORT
    try:
        scope = SortScope(text.strip().lower())
    except ValueError:
        raise InvalidRequest(
            f"SORT_SCOPE is {text!r}", "give NO_SORT, LOCAL_SORT or GLOBAL_SORT"
        ) from None
    if scope is not SortScope.NO_SORT and not sort_columns:
        raise InvalidRequest(f"SORT_SCOPE is {text!r} without a sort column", "give SORT_COLUMNS")
    return scope


def _bytes(text: str | None) -> int:
    if text is None:
        return DEFAULT_FILE_BYTES
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNIT[(match[2] or "").lower()[:1]] if match else 0
    if not _LEAST <= size <= _MOST:
        raise InvalidRequest(
            f"TABLE_BLOCKSIZE is {text!r}", "give megabytes, such as 128 or 128MB, up to 2GB"
        )
    return size


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]
