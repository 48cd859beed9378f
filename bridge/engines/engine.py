"""What an engine is: how it asks, how its values and types are spelled, which files it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.engines.translation import Translation
from bridge.file_formats.file_format import FileFormat
from bridge.types import Semantics, Type


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that asks the planner's service.

    Attributes:
        name: as requests spell it.
        spelled: as messages spell it.
        semantics: how its values compare.
        translate: its predicate as an expression. Errors: InvalidPredicate.
        spell_type: a type as the engine parses it; None for a type that it lacks.
        encode: a canonical value as the engine decodes it from JSON. Errors: NotTranslatable.
        reader: the engine's reader of a file format; None if it has none.
        missing_is_empty: a partition whose directory is missing has no rows; otherwise it is an
            error.
        has_views: it can expand views that the catalogue holds in its own SQL.
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
