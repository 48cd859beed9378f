"""The settings of a table's index, stored in every generation.

A `KindDefinition` is one index of one kind on a column, several columns, or an expression. Its
signature identifies its rows in shards. If an option changes, the signature changes, and the files
are read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bridge.index.kinds.modes import parse_mode
from bridge.kernel.errors import InvalidConfiguration

MINMAX = "minmax"
_COLUMNS = re.compile(r'[\w.,"]+')
_NAME = re.compile(r'"(?:[^"]|"")+"|[^".][^.]*')
_PATH = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")
_SPECIAL = re.compile(r'[".,:;]')
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma outside double quotes."""
_OPTION = re.compile(r"([a-z_]+)=([^:]*)")


@lru_cache(1024)
def column_path(text: str) -> tuple[str, ...]:
    """Parses a column's name or a nested field's path.

    A dot leads to a field. In "double quotes" a dot is part of the name.

    >>> column_path("st.a"), column_path('"x.y"'), column_path('st."x.y"')
    (('st', 'a'), ('x.y',), ('st', 'x.y'))
    """
    if not _PATH.fullmatch(text):
        return tuple(text.split("."))
    return tuple(
        name[1:-1].replace('""', '"') if name.startswith('"') else name
        for name in _NAME.findall(text)
    )


def column_text(path: Sequence[str]) -> str:
    """The text that `column_path` parses as this path.

    >>> column_text(("st", "x.y"))
    'st."x.y"'
    """
    return ".".join(
        '"' + name.replace('"', '""') + '"' if _SPECIAL.search(name) else name for name in path
    )


def column_texts(text: str) -> list[str]:
    """Splits a comma-separated list of columns."""
    return [part.strip() for part in _COMMA.split(text)]


@dataclass(frozen=True, slots=True)
class KindDefinition:
    """One index in addition to min/max.

    Attributes:
        kind: the kind's name.
        on: a column (``a``, ``st.a``, ``"x.y"``), columns or an expression, as the kind parses it;
            see `column_path`.
        options: all options, sorted by name.
        visible: whether planners use it. Builds keep an invisible index up to date, too.
    """

    kind: str
    on: str
    options: tuple[tuple[str, str], ...] = ()
    visible: bool = True

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.kind}({self.on})"

    @property
    def key(self) -> str:
        """Equal for all spellings of one index.

        The case of column names is ignored. The text of a function is case-sensitive, because it
        may contain constants.
        """
        return self.name.lower() if _COLUMNS.fullmatch(self.on) else self.name

    @property
    def signature(self) -> str:
        """Identifies the definition's rows in shards. Visibility is not part of it."""
        options = "".join(f":{name}={value}" for name, value in self.options)
        return f"{self.kind}({self.on}){options}"

    def option(self, name: str) -> str:
        return dict(self.options)[name]


def parse_definition(kind: str, text: str, defaults: Mapping[str, str]) -> KindDefinition:
    """Parses ``column:option=value:option=value``. Missing options get their defaults.

    Errors:
        InvalidConfiguration: an unknown option, or no column.

    >>> parse_definition("bloom", "id:fpp=0.1", {"fpp": "0.01"}).signature
    'bloom(id):fpp=0.1'
    """
    parts = text.split(":")
    given: dict[str, str] = {}
    while len(parts) > 1 and (match := _OPTION.fullmatch(parts[-1].strip())):
        given[match[1]] = match[2].strip()
        parts.pop()
    on = ":".join(parts).strip()
    if not on:
        raise InvalidConfiguration(f"{kind}: nothing to index in {text!r}", "name a column")
    for name in given:
        if name not in defaults:
            known = ", ".join(defaults) or "it has none"
            raise InvalidConfiguration(f"{kind} has no option {name!r}", f"options: {known}")
    return KindDefinition(kind, on, tuple(sorted({**defaults, **given}.items())))


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What a table's index holds in addition to full min/max of every column.

    Attributes:
        definitions: in the order they were added.
        modes: how much min/max keeps of a column, by its lower-case dotted name, sorted; see
            `bridge.index.kinds.modes`. ``*`` stands for all other columns.
        minmax_visible: whether planners prune by min/max. Its entries are kept in any case.
    """

    definitions: tuple[KindDefinition, ...] = ()
    modes: tuple[tuple[str, str], ...] = ()
    minmax_visible: bool = True

    def adding(self, definitions: Iterable[KindDefinition]) -> IndexSettings:
        """The settings with more definitions.

        A definition replaces one of the same kind on the same columns, but keeps its spelling, by
        which its rows in shards are found.
        """
        found = {d.key: d for d in self.definitions}
        for each in definitions:
            held = found.get(each.key, each)
            found[each.key] = replace(each, on=held.on)
        return replace(self, definitions=tuple(found.values()))

    def without(self, name: str) -> IndexSettings:
        """The settings without an index. Errors: InvalidConfiguration: no index has this name."""
        self.find(name)
        return replace(
            self, definitions=tuple(d for d in self.definitions if _same(d.name, name) is False)
        )

    def with_visibility(self, name: str, visible: bool) -> IndexSettings:
        """The settings with one index, or ``minmax``, made visible or invisible.

        Errors:
            InvalidConfiguration: no index has this name.
        """
        if _same(MINMAX, name):
            return replace(self, minmax_visible=visible)
        self.find(name)
        return replace(
            self,
            definitions=tuple(
                replace(d, visible=visible) if _same(d.name, name) else d for d in self.definitions
            ),
        )

    def with_modes(self, modes: Mapping[str, str]) -> IndexSettings:
        """The settings with new modes for some columns. ``full``, the default, removes an entry.

        Errors:
            InvalidConfiguration: not a mode.
        """
        merged = dict(self.modes)
        for column, mode in modes.items():
            parse_mode(mode)
            merged[column.lower()] = mode
        kept = {c: m for c, m in merged.items() if m != "full" or ("*" in merged and c != "*")}
        return replace(self, modes=tuple(sorted(kept.items())))

    def find(self, name: str) -> KindDefinition:
        for definition in self.definitions:
            if _same(definition.name, name):
                return definition
        known = ", ".join(d.name for d in self.definitions) or "minmax alone"
        raise InvalidConfiguration(f"the table has no index {name!r}", f"it has {known}")


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower().strip()
