"""What a user asks an index to hold, from options of the command and properties of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.errors import InvalidConfiguration
from bridge.expression.bind import Scope
from bridge.expression.nodes import Reference
from bridge.index import registry
from bridge.index.kinds.definition import IndexSettings
from bridge.table.model import Table
from bridge.types import Field

PROPERTY = "skipbridge.index."
"""``skipbridge.index.bloom`` = ``id;name:fpp=0.001``, ``skipbridge.index.modes`` = ``raw=none``."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Changes to the settings of an index; what is not named stays as it is.

    Attributes:
        kinds: a kind's name and what follows its option, each as often as it was given.
        modes: ``column=mode``.
        without: names of indexes to drop, as ``skipbridge index show`` spells them.
    """

    kinds: tuple[tuple[str, str], ...] = ()
    modes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def change(self, held: IndexSettings) -> IndexSettings:
        """Errors: InvalidConfiguration."""
        for name in self.without:
            held = held.without(name)
        definitions = [registry.kind(name).define(text) for name, text in self.kinds]
        return held.adding(definitions).with_modes(dict(map(_mode, self.modes)))

    def check(self, table: Table) -> None:
        """Errors: ColumnNotFound, AmbiguousColumn, InvalidConfiguration: not columns of a table."""
        columns = [Field(c.name, c.type) for c in table.columns]
        scope = Scope(columns, [Field(c.name, c.type) for c in table.partition_keys], False)
        wanted = [tuple(c.split(".")) for c, _ in map(_mode, self.modes) if c != "*"]
        for name, text in self.kinds:
            kind = registry.kind(name)
            wanted += kind.columns(kind.define(text))
        for path in wanted:
            if scope.resolve(Reference(path)).partition:
                raise InvalidConfiguration(
                    f"{'.'.join(path)} is a partition key", "partitions are pruned by its value"
                )


def _mode(text: str) -> tuple[str, str]:
    column, equals, mode = text.rpartition("=")
    if not equals or not column:
        raise InvalidConfiguration(f"{text!r} is no mode of a column", "write column=counts")
    return column.strip(), mode.strip()


def by_properties(properties: Mapping[str, str]) -> Asked:
    """What a table's own properties ask for."""
    given = {k.removeprefix(PROPERTY): v for k, v in properties.items() if k.startswith(PROPERTY)}
    modes = _list(given.pop("modes", ""))
    return Asked(tuple((n, t) for n, text in sorted(given.items()) for t in _list(text)), modes)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


def from_options(
    kinds: Mapping[str, Sequence[str]], modes: Sequence[str], without: Sequence[str]
) -> Asked:
    """From what the command line gathered."""
    return Asked(
        tuple((name, text) for name, texts in kinds.items() for text in texts),
        tuple(modes),
        tuple(without),
    )
