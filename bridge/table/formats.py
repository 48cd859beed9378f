"""Names of file formats, and what can be done with each."""

from __future__ import annotations

PARQUET = "parquet"
ORC = "orc"
INDEXED = frozenset({PARQUET, ORC})
"""What an index can be built of: Hive's hooks ask for these, Trino's connector for Parquet."""
SPELLED = {PARQUET: "Parquet", ORC: "ORC"}
"""As text for people has it."""


def spelled(names: frozenset[str]) -> str:
    """Several formats in one phrase.

    >>> spelled(INDEXED)
    'Parquet or ORC'
    """
    return " or ".join(SPELLED[name] for name in sorted(names, reverse=True))
