"""Requested index settings, from command options and table properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.expression.bind import Scope
from bridge.expression.function_catalog import FUNCTIONS
from bridge.expression.nodes import Call, Reference
from bridge.formats.registry import file_format
from bridge.index.kinds import registry
from bridge.index.kinds.definition import (
    IndexSettings,
    KindDefinition,
    column_path,
    column_text,
    column_texts,
)
from bridge.index.kinds.functions import parse_stored
from bridge.index.kinds.modes import parse_mode
from bridge.kernel.errors import AmbiguousColumn, ColumnNotFound, InvalidConfiguration, UserError
from bridge.kernel.types import Field, Type
from bridge.table.model import CatalogTable

PROPERTY = "skipbridge.index."
"""``skipbridge.index.bloom`` = ``id;name:fpp=0.001``, ``skipbridge.index.modes`` = ``raw=none``."""


@dataclass(frozen=True, slots=True)
class RequestedIndexes:
    """Requested changes to the settings of an index. Everything else is kept.

    Attributes:
        kinds: pairs of a kind's name and the value of its option.
        modes: ``column=mode``.
        without: names of indexes to drop, as ``skipbridge index show`` prints them.
    """

    kinds: tuple[tuple[str, str], ...] = ()
    modes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def change(self, held: IndexSettings) -> IndexSettings:
        """Applies the changes. Errors: InvalidConfiguration."""
        for name in self.without:
            held = held.without(name)
        definitions = [registry.kind(name).define(text) for name, text in self.kinds]
        return held.adding(definitions).with_modes(dict(map(_mode, self.modes)))

    def check(self, table: CatalogTable) -> RequestedIndexes:
        """Validates the request against the table's schema, before any file is read.

        Returns:
            The request, with ``x.y`` as ``"x.y"`` if the table has a column of that name.

        Errors:
            ColumnNotFound: not a column of the table.
            AmbiguousColumn: two columns, or a column and a field, have this name.
            InvalidConfiguration: an unknown mode, a useless index, or a duplicate.
        """
        columns = [Field(c.name, c.type) for c in table.columns]
        scope = Scope(columns, [Field(c.name, c.type) for c in table.partition_keys], False)
        named = replace(self, kinds=tuple(_named(name, text, scope) for name, text in self.kinds))
        named._check(table, scope)
        return named

    def _check(self, table: CatalogTable, scope: Scope) -> None:
        for _, mode in map(_mode, self.modes):
            parse_mode(mode)
        modes = [column for column, _ in map(_mode, self.modes) if column != "*"]
        wanted = [(c,) if _has(scope, (c,)) else tuple(c.split(".")) for c in modes]
        if self.kinds and not file_format(table.format).index_kinds:
            raise InvalidConfiguration(
                f"{table.name} is stored as {table.format}: of that only min/max are built",
                "ask for no other index of it",
            )
        seen: dict[str, str] = {}
        for name, text in self.kinds:
            kind = registry.kind(name)
            definition = kind.define(text)
            _once(definition, seen)
            paths = kind.columns(definition)
            wanted += paths
            for path in paths:
                _useful(definition, ".".join(path), _type(path, scope))
        for path in wanted:
            if scope.resolve(Reference(path)).partition:
                raise InvalidConfiguration(
                    f"{'.'.join(path)} is a partition key", "partitions are pruned by its value"
                )

    def sift(self, table: CatalogTable) -> tuple[RequestedIndexes, tuple[str, ...]]:
        """The valid part of the request, and the reasons why the rest is invalid.

        An outdated table property must not prevent a refresh.
        """
        kept, reasons = RequestedIndexes(), []
        for each in self._each():
            more = RequestedIndexes(kept.kinds + each.kinds, kept.modes + each.modes)
            try:
                kept = more.check(table)
            except UserError as error:
                reasons.append(f"{error.message}: {error.hint}" if error.hint else error.message)
        return kept, tuple(reasons)

    def _each(self) -> Iterator[RequestedIndexes]:
        yield from (RequestedIndexes(kinds=(kind,)) for kind in self.kinds)
        yield from (RequestedIndexes(modes=(mode,)) for mode in self.modes)


def _named(name: str, text: str, scope: Scope) -> tuple[str, str]:
    """Quotes each ``x.y`` that is the name of a column (correctness 14).

    Errors:
        AmbiguousColumn: it may also be a field.
    """
    definition = registry.kind(name).define(text)
    columns = [_column(column, scope) for column in column_texts(definition.on)]
    on = ",".join(columns)
    if columns == column_texts(definition.on):
        return name, text
    return name, on + "".join(f":{option}={value}" for option, value in definition.options)


def _column(text: str, scope: Scope) -> str:
    path = column_path(text)
    if '"' in text or len(path) == 1 or not _has(scope, (text,)):
        return text
    quoted = column_text((text,))
    if _has(scope, path):
        field = ".".join(f'"{part}"' for part in path)
        raise AmbiguousColumn(
            f"{text} may be the column {quoted} or a field of {path[0]}",
            f"write {quoted} for the column, {field} for the field",
        )
    return quoted


def _type(path: tuple[str, ...], scope: Scope) -> Type:
    try:
        return scope.resolve(Reference(path)).type
    except ColumnNotFound as error:
        whole = (".".join(path),)
        if len(path) > 1 and _has(scope, whole):
            error.hint = f"a column whose name has a dot is written {column_text(whole)}"
        raise


def _has(scope: Scope, path: tuple[str, ...]) -> bool:
    try:
        scope.resolve(Reference(path))
    except ColumnNotFound:
        return False
    return True


def _once(definition: KindDefinition, seen: dict[str, str]) -> None:
    name = definition.name
    if definition.key in seen:
        raise InvalidConfiguration(
            f"{name} is asked for twice, first as {seen[definition.key]}", "name each index once"
        )
    seen[definition.key] = name


def _useful(definition: KindDefinition, column: str, type: Type) -> None:
    """Errors: InvalidConfiguration: the index could answer no predicate."""
    kind = registry.kind(definition.kind)
    call = parse_stored(definition.on) if kind.functions and "(" in definition.on else None
    if call is None and kind.single_values and type.is_nested:
        raise InvalidConfiguration(
            f"{definition.name}: {column} is {type}, and no predicate on it is answered by one",
            "name a column of single values, or a field of a struct as struct.field",
        )
    if call is None:
        return
    while isinstance(call.arguments[0], Call):
        call = call.arguments[0]
    takes = FUNCTIONS[call.function].takes
    if takes and type.kind not in takes:
        raise InvalidConfiguration(
            f"{definition.name}: {column} is {type}, and {call.function} is not defined for it",
            f"it takes {', '.join(each.value for each in takes)}",
        )


def _mode(text: str) -> tuple[str, str]:
    column, equals, mode = text.rpartition("=")
    if not equals or not column:
        raise InvalidConfiguration(f"{text!r} is no mode of a column", "write column=counts")
    return column.strip(), mode.strip()


def by_properties(properties: Mapping[str, str]) -> RequestedIndexes:
    """The request in a table's properties."""
    given = {k.removeprefix(PROPERTY): v for k, v in properties.items() if k.startswith(PROPERTY)}
    modes = _list(given.pop("modes", ""))
    return RequestedIndexes(
        tuple((n, t) for n, text in sorted(given.items()) for t in _list(text)), modes
    )


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


def from_options(
    kinds: Mapping[str, Sequence[str]], modes: Sequence[str], without: Sequence[str]
) -> RequestedIndexes:
    """The request in command-line options."""
    return RequestedIndexes(
        tuple((name, text) for name, texts in kinds.items() for text in texts),
        tuple(modes),
        tuple(without),
    )
