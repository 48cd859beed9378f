"""The interface of engines: their predicates, values, types and file readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.engines.translation import Translation
from bridge.formats.file_format import FileFormat
from bridge.formats.lines.recipe import Recipe
from bridge.kernel.types import Semantics, Type
from bridge.table.snapshot import ReadsAlike, always_alike


def _untold(text: str) -> Recipe | None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """An engine that calls the planner's service.

    Attributes:
        name: the name in requests.
        spelled: the name in messages.
        semantics: how it compares values.
        translate: translates its predicate to an expression. Errors: InvalidPredicate.
        spell_type: formats a type in the engine's syntax; None for a type that it lacks.
        encode: encodes a canonical value as the engine's JSON. Errors: NotTranslatable.
        reader: the engine's reader for a file format; None if it has none.
        missing_is_empty: whether a partition with a missing directory is empty instead of an error.
        has_views: whether it can expand views stored in its own SQL.
        declaration: how its query reads files that mean what their table says, from its own words;
            None: not told. Errors: InvalidRequest.
        reads_hot_columns: whether each of its requests names all columns that it reads, so that
            files of a materialised view may stand for facts.
        reads_alike: whether it reads the same values of a type from a view as from facts of a
            format.
    """

    name: str
    spelled: str
    semantics: Semantics
    translate: Callable[[str], Translation]
    spell_type: Callable[[Type], str | None]
    encode: Callable[[Any, Type], Any]
    reader: Callable[[FileFormat], str | None]
    missing_is_empty: bool = False
    has_views: bool = False
    reads_hot_columns: bool = False
    reads_alike: ReadsAlike = always_alike
    declaration: Callable[[str], Recipe | None] = _untold
