"""Which changes of column types a metastore refuses, known before anything is written.

A metastore compares the columns of a table at each position, unless its setting
``hive.metastore.disallow.incompatible.col.type.changes`` is false; it is true by default. Hive 2.3
refuses all changes of nested types, Hive 4 takes them. Both names of the setting tell one from the
other: Hive 2 does not know the newer one, and says of itself that it is version 3.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import Kind, Type, parse_hive_type
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient

SETTING = "hive.metastore.disallow.incompatible.col.type.changes"
_NUMBERS = (
    *(Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT),
    *(Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL),
)
_TEXTS = (Kind.STRING, Kind.VARCHAR, Kind.CHAR)
_NEWER = SETTING.removeprefix("hive.")


def refuse_type_changes(
    client: MetastoreClient,
    table: str,
    before: Sequence[records.FieldSchema],
    after: Sequence[records.FieldSchema],
) -> list[str]:
    """Changes that the metastore may refuse, one line each.

    Errors:
        SchemaConflict: it will refuse one.
    """
    doubtful = list(_doubtful(before, after))
    if not doubtful:
        return []
    value = client.get_config_value(SETTING, "").lower()
    if value == "false":
        return []
    old = not client.get_config_value(_NEWER, "")
    refused = [line for line, nested in doubtful if old or not nested]
    if value == "true" and refused:
        raise SchemaConflict(
            f"{table}: the metastore refuses {'; '.join(refused)}, as {SETTING} is true there",
            "set it to false at the metastore for this change; nothing was written",
        )
    if value == "true":
        return []
    return [f"! {line}: may be refused, if {SETTING} is true there" for line in refused]


def _doubtful(
    before: Sequence[records.FieldSchema], after: Sequence[records.FieldSchema]
) -> Iterator[tuple[str, bool]]:
    """Changes that some metastore refuses: in words, and whether one of both types is nested."""
    for was, now in zip(before, after, strict=False):
        if was.type.lower() == now.type.lower():
            continue
        old, new = parse_hive_type(was.type), parse_hive_type(now.type)
        if not _converts(old, new):
            yield f"column {now.name} {was.type} -> {now.type}", old.is_nested or new.is_nested


def _converts(old: Type, new: Type) -> bool:
    """False if metastores are known to refuse the change of one primitive type to another."""
    if old.is_nested or new.is_nested:
        return old == new
    if old.kind in _NUMBERS:
        wider = new.kind in _NUMBERS and _NUMBERS.index(old.kind) <= _NUMBERS.index(new.kind)
        return wider or new.kind in _TEXTS
    if old.kind in _TEXTS:
        return new.kind not in _NUMBERS[:5]
    return (old.kind, new.kind) not in ((Kind.DATE, Kind.TIMESTAMP), (Kind.BINARY, Kind.STRING))
