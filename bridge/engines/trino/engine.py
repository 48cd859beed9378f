"""Trino: skipbridge's connector reads the planner's splits with its own readers."""

from __future__ import annotations

from bridge.engines.engine import Engine
from bridge.engines.trino.translate import translate
from bridge.engines.trino.types import to_trino
from bridge.engines.trino.values import encode
from bridge.kernel.types import TRINO

ENGINE = Engine(
    name="trino",
    spelled="Trino",
    semantics=TRINO,
    translate=translate,
    spell_type=to_trino,
    encode=encode,
    reader=lambda format: format.trino_reader,
    has_views=True,
    reads_hot_columns=True,
)
