"""Hive: its own input formats read files; skipbridge's hooks omit those that cannot match."""

from __future__ import annotations

from typing import Any

from bridge.engines.engine import Engine
from bridge.engines.hive.declaration import parse_declaration
from bridge.engines.hive.hot_columns import reads_alike
from bridge.engines.hive.translate import translate
from bridge.engines.translation import NotTranslatable
from bridge.formats.file_format import FileFormat
from bridge.kernel.types import HIVE, Type


def _encode(value: Any, type: Type) -> Any:
    raise NotTranslatable("Hive asks for no values")


def _reader(format: FileFormat) -> str | None:
    """Hive reads what its metastore has names for."""
    return format.name if format.hive is not None else None


ENGINE = Engine(
    name="hive",
    spelled="Hive",
    semantics=HIVE,
    translate=translate,
    spell_type=str,
    encode=_encode,
    reader=_reader,
    missing_is_empty=True,
    reads_alike=reads_alike,
    declaration=parse_declaration,
)
