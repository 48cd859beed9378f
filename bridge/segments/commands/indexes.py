"""Indexes of tables of segments, by name: they are built over the fact files.

The table's definition says which indexes there are; the index itself is the ordinary one of
`bridge.index`, whose entries are found by path, size, time and etag. Entries of files that no
segment names are never asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.formats.lines.recipe import CAST, Recipe
from bridge.formats.registry import file_format
from bridge.index.building.build import add_files, build_index
from bridge.index.building.collect import Beside
from bridge.index.building.listed import Listed, list_snapshot
from bridge.index.building.redeclare import redeclare
from bridge.index.kinds import registry
from bridge.index.kinds.definition import MINMAX, column_text
from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import (
    Progress,
    Say,
    collector_of,
    drop_from_index,
    index_table,
    report_build,
    show_index_to_planners,
)
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    ColumnNotFound,
    GenerationNotFound,
    IndexConflict,
    IndexCorrupt,
    InvalidConfiguration,
    InvalidRequest,
)
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.recipes import recipe_of
from bridge.table.segments.manifest import (
    IndexDefinition,
    Segment,
    SegmentManifest,
    TableDefinition,
    sorted_properties,
)
from bridge.table.segments.properties import columns_of, reader_spec
from bridge.table.segments.snapshot import SegmentSnapshot
from bridge.table.snapshot import TableContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"bloomfilter": "bloom", "min_max": MINMAX}
"""Other spellings of kinds."""


def _silent(*_: object) -> None:
    """For callers that want no news."""


def create_index(
    config: Config,
    table: str,
    *,
    name: str,
    kind: str,
    columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    deferred: bool = False,
    if_not_exists: bool = False,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress = _silent,
    say: Say = _silent,
) -> dict[str, Any]:
    """Defines an index, and builds it over the table's files unless it is deferred.

    Args:
        kind: ``minmax``, ``bloomfilter``, or another index kind.
        columns: needed for every kind but ``minmax``.

    Errors:
        InvalidRequest: the name is taken, or the columns are missing.
        ColumnNotFound, InvalidConfiguration: it cannot be built.
    """
    name = name.lower()
    with open_segments(config, table) as opened:
        made = IndexDefinition(
            name,
            KINDS.get(kind.lower(), kind.lower()),
            tuple(c.strip().lower() for c in columns),
            sorted_properties(dict(options or {})),
            deferred=deferred,
        )
        if opened.manifest.definition.index(name) is not None:
            if if_not_exists:
                return {"index": name, "created": False}
            raise _taken(name, table)
        asked = requested_indexes([made]).check(opened.table)
        _require_kind(opened, made)
        for column in made.columns:
            if opened.manifest.definition.column(column) is None:
                raise ColumnNotFound(f"{table} has no column {column}", "see table show")
        if not deferred and opened.manifest.readable:
            index_table(
                config,
                table,
                local=local,
                spark=spark,
                asked=_lacking(opened, asked),
                progress=progress,
                say=say,
            )

        def change(held: SegmentManifest) -> SegmentManifest:
            if held.definition.index(name) is not None:
                raise _taken(name, table)
            return _with(held, (*held.definition.indexes, made))

        version = opened.log.commit(f"CREATE INDEX {name}", change).version
    return {"index": name, "created": True, "deferred": deferred, "version": version}


def drop_index(config: Config, table: str, *, name: str, if_exists: bool = False) -> dict[str, Any]:
    """Drops an index by name. Errors: InvalidRequest: there is none."""
    name = name.lower()
    with open_segments(config, table) as opened:
        found = opened.manifest.definition.index(name)
        if found is None:
            if if_exists:
                return {"index": name, "dropped": False}
            raise _unknown(name, opened.manifest.definition, table)

        def change(held: SegmentManifest) -> SegmentManifest:
            return _with(held, [i for i in held.definition.indexes if i.name != name])

        committed = opened.log.commit(f"DROP INDEX {name}", change)
        others = {s for i in committed.definition.indexes for s in signatures(i)}
        try:
            for signature in sorted(signatures(found) - others):
                drop_from_index(config, table, signature)
            if not committed.definition.indexes:
                drop_from_index(config, table, None)
        except (GenerationNotFound, InvalidConfiguration):
            pass  # it was never built
    return {"index": name, "dropped": True, "version": committed.version}


def rebuild_index(
    config: Config,
    table: str,
    *,
    name: str | None = None,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress = _silent,
    say: Say = _silent,
) -> dict[str, Any]:
    """Builds an index, or all, where it is missing; each file is read once for all of them.

    Errors:
        InvalidRequest: there is no such index.
    """
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        chosen: Iterable[IndexDefinition] = definition.indexes
        if name is not None:
            found = definition.index(name.lower())
            if found is None:
                raise _unknown(name, definition, table)
            chosen = [found]
        report = index_table(
            config,
            table,
            local=local,
            spark=spark,
            asked=_lacking(opened, requested_indexes(chosen)),
            progress=progress,
            say=say,
        )
        _apply_visibility(opened, [i for i in definition.indexes if not i.visible])
    return report


def show_index(config: Config, table: str, *, name: str, visible: bool) -> dict[str, Any]:
    """Makes an index visible or invisible to planners. Errors: InvalidRequest: there is none."""
    name = name.lower()
    with open_segments(config, table) as opened:
        if opened.manifest.definition.index(name) is None:
            raise _unknown(name, opened.manifest.definition, table)

        def change(held: SegmentManifest) -> SegmentManifest:
            found = held.definition.index(name)
            if found is None or found.visible == visible:
                return held
            changed = replace(found, visible=visible)
            return _with(held, [changed if i.name == name else i for i in held.definition.indexes])

        committed = opened.log.commit(f"{'SHOW' if visible else 'HIDE'} INDEX {name}", change)
        found = committed.definition.index(name)
        assert found is not None
        _apply_visibility(opened, [found])
    return {"index": name, "visible": visible, "version": committed.version}


def is_indexed_now(opened: OpenSegments, added: Sequence[Segment], say: Say) -> bool:
    """Whether an index asks for the files of new segments, and their formats can be indexed."""
    if all(i.deferred for i in opened.manifest.definition.indexes):
        return False
    for format in sorted({r.format for s in added for r in s.readers}):
        if not file_format(format).is_indexed:
            say(f"not indexed: {file_format(format).spelled} files have no reader of statistics")
            return False
    return True


def index_new_files(
    opened: OpenSegments,
    added: Sequence[Segment],
    *,
    local: bool = False,
    spark: SparkSession | None = None,
    beside: Beside | None = None,
    progress: Progress | None = None,
    say: Say = _silent,
) -> dict[str, Any]:
    """Indexes the files of segments that are not committed yet.

    Nobody asks for the new entries before a version names the files.

    Args:
        beside: makes something else of the files where they are read.
    """
    immediate = [i for i in opened.manifest.definition.indexes if not i.deferred]
    store = opened.index
    new = listed_files(opened, added)
    with collector_of(opened.config, opened.storage, local, spark, beside) as collector:
        if store.generations():
            report = add_files(
                opened.table,
                new,
                store,
                collector=collector,
                progress=progress,
            )
        else:
            asked = requested_indexes(immediate).check(opened.table)
            report = build_index(
                opened.table,
                lambda: listed_files(opened, (*opened.log.latest().readable, *added)),
                store,
                collector=collector,
                progress=progress,
                settings=asked.change,
            )
    _apply_visibility(opened, [i for i in immediate if not i.visible])
    return report_build(report, str(opened.table.name), say)


def keep_other_columns(opened: OpenSegments, committed: SegmentManifest) -> int:
    """After columns were declared anew: what the index knows of the other columns counts on.

    The index alone changes. Until it has, and if that fails, nothing is known of these files.

    Args:
        opened: the table before.
        committed: the version with the new columns.

    Returns:
        How many files are known still.
    """
    before = {c.name: c for c in columns_of(opened.manifest.definition)}
    after = columns_of(committed.definition)
    changed = {c.name for c in after if before.get(c.name) != c}
    gone = before.keys() - {c.name for c in after}
    if not changed and not gone:
        return 0
    digests: dict[str, str] = {}
    for reader in {r for s in committed.segments for r in s.readers}:
        old = recipe_of(reader_spec(reader, tuple(before.values())), tuple(before.values()))
        new = recipe_of(reader_spec(reader, after), after)
        if old is not None and new is not None and (not changed or _reads_alone(old)):
            digests[old.digest] = new.digest
    with suppress(IndexConflict, IndexCorrupt):
        return redeclare(opened.index, digests, changed | gone) if digests else 0
    return 0


def _reads_alone(recipe: Recipe) -> bool:
    """Whether a value that is not of its column's type leaves the other columns as they are.

    Elsewhere it may be an error of the whole file, which must then be read.
    """
    return recipe.format == "text" or recipe.property_map.get(CAST) == "try"


def listed_files(opened: OpenSegments, segments: Sequence[Segment]) -> Listed:
    """The files of some segments, as index builds take them."""
    lister = DirectoryLister(opened.storage, 1, recursive=False)
    try:
        context = TableContext(
            opened.storage, opened.catalog, lister, None, lambda _: None, Live(), True
        )
        held = {s.id: s for s in segments}
        snapshot = SegmentSnapshot(
            opened.table, opened.manifest, tuple(held.values()), opened.log, context
        )
        return list_snapshot(snapshot)
    finally:
        lister.close()


def requested_indexes(indexes: Iterable[IndexDefinition]) -> RequestedIndexes:
    """What index builds are asked for; min/max needs no asking."""
    found: dict[tuple[str, str], None] = {}
    for index in indexes:
        if index.kind != MINMAX:
            found |= dict.fromkeys((index.kind, text) for text in _texts(index))
    return RequestedIndexes(tuple(found))


def signatures(index: IndexDefinition) -> set[str]:
    """Names of what it consists of, as ``skipbridge index show`` prints them."""
    if index.kind == MINMAX:
        return set()
    return {registry.kind(index.kind).define(text).name for text in _texts(index)}


def _apply_visibility(opened: OpenSegments, indexes: Iterable[IndexDefinition]) -> None:
    """Makes what is built of some indexes as visible as they are; the rest follows when built."""
    for index in indexes:
        shown = {MINMAX} if index.kind == MINMAX else signatures(index)
        for name in sorted(shown):
            with suppress(GenerationNotFound, InvalidConfiguration):
                show_index_to_planners(opened.config, opened.name, name, index.visible)


def _texts(index: IndexDefinition) -> list[str]:
    """One index of a kind is on one column; an index by name may be on several."""
    options = "".join(f":{name}={value}" for name, value in index.options)
    return [f"{column_text((column,))}{options}" for column in index.columns]


def _lacking(opened: OpenSegments, asked: RequestedIndexes) -> RequestedIndexes:
    """Those that the index does not hold yet: asking twice for one is an error."""
    manifest = opened.index.readable()[0]
    if manifest is None:
        return asked
    held = {(d.kind, d.on) for d in manifest.settings.definitions}
    kept = [
        (kind, text)
        for kind, text in asked.kinds
        if (kind, registry.kind(kind).define(text).on) not in held
    ]
    return RequestedIndexes(tuple(kept))


def _require_kind(opened: OpenSegments, index: IndexDefinition) -> None:
    if index.kind != MINMAX and not index.columns:
        raise InvalidRequest(
            f"index {index.name} of kind {index.kind} names no columns", "name its columns"
        )
    if index.kind != MINMAX:
        registry.kind(index.kind)
    formats = {r.format for s in opened.manifest.readable for r in s.readers}
    for format in sorted({opened.manifest.definition.format, *formats}):
        if not file_format(format).is_indexed:
            raise InvalidRequest(
                f"{file_format(format).spelled} files are not indexed", "leave the index out"
            )


def _with(held: SegmentManifest, indexes: Sequence[IndexDefinition]) -> SegmentManifest:
    return replace(held, definition=replace(held.definition, indexes=tuple(indexes)))


def _taken(name: str, table: str) -> InvalidRequest:
    return InvalidRequest(f"{table} has an index {name} already", "drop it, or use another name")


def _unknown(name: str, definition: TableDefinition, table: str) -> InvalidRequest:
    known = ", ".join(i.name for i in definition.indexes) or "none"
    return InvalidRequest(f"{table} has no index {name!r}", f"it has {known}")
