"""What a table's index is to hold: its settings, kept in every generation.

A `Definition` is one index of one kind over one column, several, or an expression. Its signature
names what shards hold for it; a definition with another option is another one, and files are read
again for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bridge.errors import InvalidConfiguration
from bridge.index.kinds.modes import parse_mode

MINMAX = "minmax"
_COLUMNS = re.compile(r'[\w.,"]+')
_NAME = re.compile(r'"(?:[^"]|"")+"|[^".][^.]*')
_PATH = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")
_SPECIAL = re.compile(r'[".,:;]')
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""Not one within quotes."""
_OPTION = re.compile(r"([a-z_]+)=([^:]*)")


@lru_cache(1024)
def column_path(text: str) -> tuple[str, ...]:
    """A column's name, or a field's path, of its text.

    A dot leads to a field. A name within "double quotes" is one name, its dots included.

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
    """What `column_path` reads as this path.

    >>> column_text(("st", "x.y"))
    'st."x.y"'
    """
    return ".".join(
        '"' + name.replace('"', '""') + '"' if _SPECIAL.search(name) else name for name in path
    )


def column_texts(text: str) -> list[str]:
    """The columns of a list of them, separated by commas."""
    return [part.strip() for part in _COMMA.split(text)]


@dataclass(frozen=True, slots=True)
class Definition:
    """One index beside min/max.

    Attributes:
        kind: the kind's name.
        on: a column (``a``, ``st.a``, ``"x.y"``), columns or an expression, as the kind reads it;
            see `column_path`.
        options: by name, all of them, sorted.
        visible: whether planners ask it; an invisible one is kept up to date all the same.
    """

    kind: str
    on: str
    options: tuple[tuple[str, str], ...] = ()
    visible: bool = True

    @property
    def name(self) -> str:
        """As reports spell it."""
        return f"{self.kind}({self.on})"

    @property
    def key(self) -> str:
        """The same for all spellings of one index.

        Columns are the same in any case; a function's text may hold constants, which are not.
        """
        return self.name.lower() if _COLUMNS.fullmatch(self.on) else self.name

    @property
    def signature(self) -> str:
        """What shards hold is found by it; visibility is no part of it."""
        options = "".join(f":{name}={value}" for name, value in self.options)
        return f"{self.kind}({self.on}){options}"

    def option(self, name: str) -> str:
        return dict(self.options)[name]


def parse_definition(kind: str, text: str, defaults: Mapping[str, str]) -> Definition:
    """Reads ``column:option=value:option=value``; options left out have their defaults.

    Errors:
        InvalidConfiguration: an unknown option, or nothing to index.

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
    return Definition(kind, on, tuple(sorted({**defaults, **given}.items())))


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """All that a table's index is to hold beside full min/max of every column.

    Attributes:
        definitions: in the order they were given.
        modes: how much min/max keeps of a column, by its lower-case dotted name, sorted; see
            `bridge.index.kinds.modes`. ``*`` stands for all that are not named.
        minmax_visible: whether planners prune by min/max; its entries are kept all the same.
    """

    definitions: tuple[Definition, ...] = ()
    modes: tuple[tuple[str, str], ...] = ()
    minmax_visible: bool = True

    def adding(self, definitions: Iterable[Definition]) -> IndexSettings:
        """With more; one of the same kind over the same is replaced, and keeps its spelling:
        what shards hold is found by it.
        """
        found = {d.key: d for d in self.definitions}
        for each in definitions:
            held = found.get(each.key, each)
            found[each.key] = replace(each, on=held.on)
        return replace(self, definitions=tuple(found.values()))

    def without(self, name: str) -> IndexSettings:
        """Without an index, by `Definition.name`. Errors: InvalidConfiguration: there is none."""
        self.find(name)
        return replace(
            self, definitions=tuple(d for d in self.definitions if _same(d.name, name) is False)
        )

    def showing(self, name: str, visible: bool) -> IndexSettings:
        """With one index, or ``minmax``, visible or invisible.

        Errors:
            InvalidConfiguration: there is none.
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
        """With other modes of some columns; ``full``, the default, forgets one.

        Errors:
            InvalidConfiguration: not a mode.
        """
        merged = dict(self.modes)
        for column, mode in modes.items():
            parse_mode(mode)
            merged[column.lower()] = mode
        kept = {c: m for c, m in merged.items() if m != "full" or ("*" in merged and c != "*")}
        return replace(self, modes=tuple(sorted(kept.items())))

    def find(self, name: str) -> Definition:
        for definition in self.definitions:
            if _same(definition.name, name):
                return definition
        known = ", ".join(d.name for d in self.definitions) or "minmax alone"
        raise InvalidConfiguration(f"no index {name!r}", f"of this table: {known}")


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower().strip()
