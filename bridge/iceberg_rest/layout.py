"""A table of the metastore in Iceberg's terms: types, field ids, the mapping of names, specs.

Nothing is stored. A field's id is a hash of its path in lower case, so all planners agree on it, an
index that is built anew changes nothing, and a column that is dropped and added again has its old
values, as in Hive.

The law: what a client could read wrongly is refused, by the column's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from bridge.formats.parquet.stored_file import StoredColumn, StoredFile, StoredSchema
from bridge.formats.physical_column import PhysicalType
from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.expressions import IcebergColumn
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import Field, Kind, Type
from bridge.table.hive_properties import BY_PLACE, is_by_place
from bridge.table.hudi.schema.avro_schema import META_COLUMNS
from bridge.table.model import CatalogTable
from bridge.table.registry import DIRECTORY

_BITS = 30
_SPARE = 1 << _BITS
"""Ids from here on are of columns that files have and no client reads."""
_SERVED = (DIRECTORY, "hudi")
_OWN = {
    "hudi": [StoredColumn((name,), PhysicalType("BYTE_ARRAY", "string")) for name in META_COLUMNS]
}
"""Columns that all files of a table format have: PyIceberg must know their names."""
_MOST_KEYS = 6
"""Each key doubles the specs: one for every set of keys that are NULL."""
_RESERVED = (
    "_change_ordinal",
    "_change_type",
    "_commit_snapshot_id",
    "_deleted",
    "_file",
    "_last_updated_sequence_number",
    "_partition",
    "_pos",
    "_row_id",
    "_spec_id",
)
"""Columns of Iceberg's own, which hide those of a table."""
_KEYS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.STRING)
_BITS_OF = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_SIMPLE = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "int",
    Kind.SMALLINT: "int",
    Kind.INTEGER: "int",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    Kind.STRING: "string",
    Kind.VARCHAR: "string",
    Kind.BINARY: "binary",
    Kind.TIMESTAMP_TZ: "timestamptz",
}
Path = tuple[str, ...]
"""Names in lower case; ``element``, ``key`` and ``value`` below lists and maps."""
Declared = Mapping[str, Type]
"""The types of a table's columns, by name in lower case."""


@dataclass(slots=True)
class _Names:
    """The spellings of one column and of those below it."""

    spelled: set[str] = field(default_factory=set)
    below: dict[str, _Names] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IcebergLayout:
    """How a table appears to a client.

    Attributes:
        fields: of the schema, as JSON.
        specs: the partition specs, as JSON; bit i of a spec's id says that key i is NULL.
        mapping: of names, as JSON in a text.
        columns: what a term in lower case names; also columns that hold others.
        digest: of all that a client holds while it plans: 31 bits.
        dated: keys that are dates, which clients want in different forms.
        zoned: columns of instants, all other times have no zone.
    """

    table: CatalogTable
    client: Client
    fields: list[dict[str, Any]]
    specs: list[dict[str, Any]]
    mapping: str
    columns: dict[str, IcebergColumn]
    digest: int
    last_id: int
    dated: tuple[str, ...]
    zoned: frozenset[Path]
    _declared: Declared
    _names: _Names
    _checked: dict[StoredSchema, str] = field(default_factory=dict)

    def resolve(self, term: str) -> IcebergColumn | None:
        return self.columns.get(term.lower())

    def refuse(self, file: StoredFile, uri: str) -> None:
        """Refuses a file that a client would not read rightly.

        Errors:
            UnsupportedTable: with the name of the column.
        """
        doubt = self._checked.get(file.schema)
        if doubt is None:
            doubt = self._checked[file.schema] = next(self._doubts(file.schema), "")
        if file.old and _declared(self._declared, _lower(file.old)) is not None:
            doubt = doubt or f"the column {'.'.join(file.old)} has times of the old calendar"
        if doubt:
            raise UnsupportedTable(
                f"{self.table.name}: Iceberg's clients would not read {uri} rightly: {doubt}",
                "if a name or a zone was not known, build the table's index or run REFRESH TABLE; "
                "else leave it out by a filter, or read it with Trino, Hive or the Python API",
            )

    def reads(self, column: StoredColumn) -> bool:
        """Whether clients may read a column of a file."""
        return _declared(self._declared, _lower(column.path)) is not None

    def _doubts(self, schema: StoredSchema) -> Iterator[str]:
        if schema.numbered:
            yield "its columns have field ids, by which clients would look for them"
        met: dict[Path, Path] = {}
        for column in schema.columns:
            path = _lower(column.path)
            if path in met:
                yield f"it has the columns {'.'.join(met[path])} and {'.'.join(column.path)}"
            for end in range(1, len(path) + 1):  # structs, too
                held = met.setdefault(path[:end], column.path[:end])
                if held != column.path[:end]:
                    yield f"it has the columns {'.'.join(held)} and {'.'.join(column.path[:end])}"
            doubt = _doubt(self._declared, column, self.zoned, self.client)
            if doubt:
                yield doubt
            if _declared(self._declared, path) is None:
                continue  # no client reads it
            known = self._names
            for name in column.path:
                known = known.below[name.lower()]
                if name not in known.spelled:
                    yield f"the column {name} is not yet known by this spelling"


def layout_of(
    table: CatalogTable,
    indexed: Sequence[StoredColumn] = (),
    met: Sequence[StoredColumn] = (),
    client: Client = Client.OTHER,
) -> IcebergLayout:
    """How a table appears to a client.

    Args:
        indexed: columns of the table's files as its index has them; of a list or map no types.
        met: columns of files that were read, and may be gone: they give names and zones alone.

    Errors:
        UnsupportedTable: Iceberg's terms, or a client, cannot express the table.
    """
    _refuse_table(table)
    known = [*indexed, *met]
    declared = _columns(table)
    units: dict[Path, set[PhysicalType]] = {}
    for column in known:
        if column.type.logical == "timestamp":
            units.setdefault(_lower(column.path), set()).add(column.type)
    zoned = {path for path, types in units.items() if any(map(_is_zoned, types))}
    plain = {path for path, types in units.items() if not any(map(_is_zoned, types))}
    build = _Builder(table, frozenset(plain))
    fields = [build.field(f.name, f.type, ()) for f in table.schema]
    all_zoned = frozenset(build.zoned | zoned)
    for column in indexed:
        if column.type.logical == "repeated":
            continue
        if doubt := _doubt(declared, column, all_zoned, client):
            raise _refusal(table, doubt)
    names = _names(table, [*known, *_OWN.get(table.table_format, ())])
    specs = [_spec(table, mask, build.ids) for mask in range(1 << len(table.partition_keys))]
    dated = tuple(k.name for k in table.partition_keys if k.type.kind is Kind.DATE)
    return IcebergLayout(
        table,
        client,
        fields,
        specs,
        json.dumps(_mapping(names, (), _read(table, build.ids)), ensure_ascii=False),
        build.columns,
        _digest(table, fields, specs, names),
        max(build.ids.values(), default=0),
        dated,
        all_zoned,
        declared,
        names,
    )


def _refuse_table(table: CatalogTable) -> None:
    if table.table_format not in _SERVED:
        raise _refusal(
            table, f"its table format is {table.table_format}", "read it with Trino or Hive"
        )
    if table.table_format == DIRECTORY and table.format != "parquet":
        raise _refusal(table, f"its files are {table.format}", "read it with Trino or Hive")
    if is_by_place(table.properties, "parquet"):
        raise _refusal(table, f"Hive finds its columns by their places ({BY_PLACE['parquet']})")
    if len(table.partition_keys) > _MOST_KEYS:
        raise _refusal(table, f"it has {len(table.partition_keys)} keys, {_MOST_KEYS} are the most")
    for key in table.partition_keys:
        if key.type.kind not in _KEYS:
            raise _refusal(table, f"the partition key {key.name} is {key.type}")
    met: dict[str, str] = {}
    for each in table.schema:
        if each.name.lower() in _RESERVED:
            raise _refusal(table, f"Iceberg has a column {each.name} of its own")
        if each.name.lower() in met:
            raise _refusal(table, f"it has two columns {each.name.lower()}")
        met[each.name.lower()] = each.name


def _refusal(table: CatalogTable, doubt: str, hint: str = "") -> UnsupportedTable:
    return UnsupportedTable(
        f"{table.name} is not served as an Iceberg table: {doubt}",
        hint or "read it with Trino, Hive or the Python API",
    )


@dataclass(slots=True)
class _Builder:
    """Builds the schema.

    Attributes:
        plain: columns whose times have no zone in any file.
    """

    table: CatalogTable
    plain: frozenset[Path]
    ids: dict[Path, int] = field(default_factory=dict)
    columns: dict[str, IcebergColumn] = field(default_factory=dict)
    zoned: set[Path] = field(default_factory=set)
    _paths: dict[int, Path] = field(default_factory=dict)

    def field(self, name: str, type: Type, parents: Path, alone: bool = True) -> dict[str, Any]:
        """A column, or a field of a struct; ``alone``: below no list or map."""
        path = (*parents, name.lower())
        if "." in name or not name:
            raise _refusal(self.table, f"the column {name!r} has a dot in its name, or no name")
        found = {
            "id": self._id(path),
            "name": name.lower(),
            "required": False,
            "type": self._type(type, path, alone),
        }
        if alone:
            zoned = found["type"] == "timestamptz"
            self.columns[".".join(path)] = IcebergColumn(path, type, zoned)
        return found

    def _type(self, type: Type, path: Path, alone: bool = False) -> Any:
        match type.kind:
            case Kind.DECIMAL:
                return f"decimal({type.precision}, {type.scale})"
            case Kind.TIMESTAMP:
                if path in self.plain:
                    return "timestamp"
                self.zoned.add(path)
                return "timestamptz"
            case Kind.STRUCT:
                below = [self.field(f.name, f.type, path, alone) for f in type.fields]
                if len({f["name"] for f in below}) < len(below):
                    raise _refusal(self.table, f"{'.'.join(path)} has two fields of one name")
                return {"type": "struct", "fields": below}
            case Kind.ARRAY:
                inner = (*path, "element")
                return {
                    "type": "list",
                    "element-id": self._id(inner),
                    "element": self._type(type.fields[0].type, inner),
                    "element-required": False,
                }
            case Kind.MAP:
                key, value = (*path, "key"), (*path, "value")
                return {
                    "type": "map",
                    "key-id": self._id(key),
                    "key": self._type(type.fields[0].type, key),
                    "value-id": self._id(value),
                    "value": self._type(type.fields[1].type, value),
                    "value-required": False,
                }
        found = _SIMPLE.get(type.kind)
        if found is None:
            raise _refusal(self.table, f"the column {'.'.join(path)} is {type}")
        if type.kind is Kind.TIMESTAMP_TZ:
            self.zoned.add(path)
        return found

    def _id(self, path: Path) -> int:
        found = _hashed(path)
        if found in self._paths:
            raise _refusal(
                self.table,
                f"the columns {'.'.join(self._paths[found])} and {'.'.join(path)} have one id",
                "rename one of them",
            )
        self._paths[found] = path
        self.ids[path] = found
        return found


def _hashed(path: Path) -> int:
    digest = blake2b("\0".join(path).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % ((1 << _BITS) - 1) + 1


def _spec(table: CatalogTable, mask: int, ids: dict[Path, int]) -> dict[str, Any]:
    """The spec of files whose keys in the mask are NULL: what is absent reads as NULL.

    One of them has no fields, so that Spark evaluates every predicate itself.
    """
    fields = [
        {
            "name": key.name.lower(),
            "transform": "identity",
            "source-id": ids[(key.name.lower(),)],
            "field-id": 1000 + i,
        }
        for i, key in enumerate(table.partition_keys)
        if not mask >> i & 1
    ]
    return {"spec-id": mask, "fields": fields}


def _lower(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _names(table: CatalogTable, known: list[StoredColumn]) -> _Names:
    """All spellings: those of files, and of each column the usual ones."""
    root = _Names()
    for each in table.schema:
        _declare(root, each)
    for column in known:
        held = root
        for name in column.path:
            held = held.below.setdefault(name.lower(), _Names())
            held.spelled.add(name)
    return root


def _declare(root: _Names, field: Field) -> None:
    name = field.name
    held = root.below.setdefault(name.lower(), _Names())
    held.spelled |= {name, name.lower(), name.upper()}
    match field.type.kind:
        case Kind.STRUCT:
            for inner in field.type.fields:
                _declare(held, inner)
        case Kind.ARRAY | Kind.MAP:
            for inner in field.type.fields:
                _declare(held, inner)
                held.below[inner.name].spelled = {inner.name}


def _read(table: CatalogTable, ids: dict[Path, int]) -> dict[Path, int]:
    """The ids of what is read from files: a key's value comes from the directory."""
    keys = {key.name.lower() for key in table.partition_keys}
    return {path: id for path, id in ids.items() if path[0] not in keys}


def _mapping(names: _Names, parents: Path, ids: dict[Path, int]) -> list[dict[str, Any]]:
    """The mapping of names. PyIceberg wants ids of all: what no client reads has a spare one."""
    found = []
    for name, held in sorted(names.below.items()):
        path = (*parents, name)
        id = ids.get(path)
        if id is None:
            id = _SPARE + _hashed(path) % (_SPARE // 2)
        entry: dict[str, Any] = {"field-id": id, "names": sorted(held.spelled)}
        if held.below:
            entry["fields"] = _mapping(held, path, ids)
        found.append(entry)
    return found


def _digest(table: CatalogTable, fields: Any, specs: Any, names: _Names) -> int:
    told = [str(table.name), table.created, fields, specs, _declared_names(table, names)]
    text = json.dumps(told, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=4).digest()) >> 1


def _declared_names(table: CatalogTable, names: _Names) -> Any:
    """The spellings of columns that the table has."""
    top = [names.below[f.name.lower()] for f in table.schema]
    return [[sorted(held.spelled), _spelled_below(held)] for held in top]


def _spelled_below(names: _Names) -> Any:
    return {n: [sorted(held.spelled), _spelled_below(held)] for n, held in names.below.items()}


def _is_zoned(stored: PhysicalType) -> bool:
    """INT96 carries no zone: Hive and Spark mean an instant."""
    return stored.utc or stored.physical == "INT96"


def _doubt(declared: Declared, column: StoredColumn, zoned: frozenset[Path], client: Client) -> str:
    """Why a client would read a stored column wrongly; empty if it would not, or reads it never."""
    path = _lower(column.path)
    found = _declared(declared, path)
    if found is None:
        return ""
    name = ".".join(column.path)
    if isinstance(found, str):
        return f"the column {name} is {found}"
    if not column.plain:
        return f"the column {name} is a list or map of old levels"
    doubt = _mismatch(found, column.type, path in zoned, client)
    return f"the column {name} is {found}, its files hold {doubt}" if doubt else ""


def _columns(table: CatalogTable) -> Declared:
    """What files are read for: a column of a key's name is not."""
    keys = {key.name.lower() for key in table.partition_keys}
    return {c.name.lower(): c.type for c in table.columns if c.name.lower() not in keys}


def _declared(declared: Declared, path: Path) -> Type | str | None:
    """The type that a table declares for a leaf of a file; a text if it is no leaf of the table."""
    top = declared.get(path[0])
    if top is None:
        return None
    type = top
    for name in path[1:]:
        if not type.fields:
            return f"{top} in the table, its files nest it otherwise"
        below = [f.type for f in type.fields if f.name.lower() == name]
        if not below:
            if type.kind is Kind.STRUCT:
                return None  # a field that the table does not have
            return f"{top} in the table, its files nest it otherwise"
        type = below[0]
    return f"{top} in the table, its files nest it otherwise" if type.fields else type


def _mismatch(declared: Type, stored: PhysicalType, zoned: bool, client: Client) -> str:
    """What is stored, if a client is not known to read it rightly as what is declared."""
    logical, physical = stored.logical, stored.physical
    right = False
    match declared.kind:
        case Kind.BOOLEAN:
            right = logical == "bool"
        case Kind.FLOAT | Kind.DOUBLE:
            right = logical == declared.kind.value
        case Kind.DECIMAL:
            right = (
                logical == "decimal"
                and physical != "BYTE_ARRAY"
                and (stored.precision, stored.scale) == (declared.precision, declared.scale)
            )
        case Kind.DATE | Kind.BINARY:
            right = logical == declared.kind.value
        case Kind.STRING | Kind.VARCHAR:
            right = logical == "string"
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            # Java takes milliseconds and nanoseconds for microseconds.
            right = logical == "timestamp"
            right = right and (stored.unit in ("us", "") or client is Client.PYICEBERG)
            right = right and _is_zoned(stored) is zoned
        case _ if declared.is_integer:
            right = logical == "int" and (physical == "INT32" or declared.kind is Kind.BIGINT)
            # Java fails on them, and PyIceberg filters those of 32 bits by the bits of signed ones.
            small = logical == "uint" and stored.width <= 16 and client is Client.PYICEBERG
            right = right or (small and stored.width < _BITS_OF[declared.kind])
    if right:
        return ""
    if logical == "timestamp":
        zone = "in UTC" if stored.utc else "without zone"
        return f"times {zone} in {stored.unit or 'INT96'}"
    if logical == "decimal":
        return f"decimal({stored.precision},{stored.scale}) as {physical}"
    if logical == "null":
        return "no type, for all values are NULL"
    return f"{physical} of {logical}{stored.width or ''}"
