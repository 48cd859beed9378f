"""The report of a scan, in progress or finished."""

from __future__ import annotations

import re

from bridge.expression.nodes import BoundCall, BoundComputed, BoundReference, reference_text
from bridge.expression.parsing.text import format_bound
from bridge.formats.file_format import FileFormat
from bridge.formats.registry import file_format
from bridge.index.kinds.kind import predicates
from bridge.index.kinds.modes import COUNTS, NONE, Modes
from bridge.kernel.errors import IndexCorrupt
from bridge.kernel.types import Kind, Type
from bridge.planner.attributes import split_by_source
from bridge.planner.file_pruner import compared_columns, failed_indexes, unindexed_functions
from bridge.planner.index_view import argument
from bridge.planner.reports.disabled_indexes import disabled_indexes
from bridge.planner.reports.report import IndexNotUsed, PruneReport, Remedy, SplitTotals
from bridge.planner.reports.segment_remedies import by_statement
from bridge.planner.scan_context import ScanContext
from bridge.table.snapshot import HasSegments


def report_of(
    context: ScanContext, splits: SplitTotals | None = None, paths: object | None = None
) -> PruneReport:
    """The funnel so far; complete once all stages have ended."""
    counters = context.counters
    filtered, stopped = counters.dynamic_filters, counters.stop
    stages = [counters.partitions.freeze()] if context.table.partition_keys else []
    if counters.bounded_partitions.total:
        stages.append(counters.bounded_partitions.freeze())
    if counters.filtered_partitions.total:
        stages.append(counters.filtered_partitions.freeze())
    stages += [c.freeze() for c in counters.in_order() if c.total or c is counters.listing]
    # What was evaluated all the same, as an expression of the whole row, was not dropped.
    computed = {
        reference_text(p.reference)
        for p in (predicates(context.predicate) if context.dropped else ())
        if isinstance(p.reference, BoundComputed)
    }
    return PruneReport(
        table=str(context.table.name),
        engine=context.request.engine,
        generation=context.view.generation,
        freshness=context.snapshot.freshness,
        predicate=format_bound(context.predicate),
        dropped=tuple(text for text in context.dropped if f"({text})" not in computed),
        stages=tuple(stages),
        files_total=counters.listing.total,
        # Two threads count: one lists files, the other hands out batches.
        files_kept=counters.files_kept
        - filtered.total
        + filtered.kept
        - stopped.total
        + stopped.kept,
        splits=splits or SplitTotals(),
        not_used=tuple(_not_used(context)),
        complete=context.complete,
        paths=paths,
    )


def _not_used(context: ScanContext) -> list[IndexNotUsed]:
    table, view = argument(context.table), context.view
    found = list(view.not_used)
    if not context.request.pruning:
        found.append(IndexNotUsed("minmax", "DISABLED", "pruning is switched off"))
    found += disabled_indexes(view, table)
    found += _views(context)
    if view.index is not None:
        found += _unindexed(context, table)
    found += failed_indexes(context.problems(), table)
    for own in context.own_indexes:
        found += own.not_used()
    found += context.unknown.reasons(table)
    snapshot = context.snapshot
    if isinstance(snapshot, HasSegments):
        return [by_statement(reason, snapshot, table) for reason in found]
    return found


def _views(context: ScanContext) -> list[IndexNotUsed]:
    """Why facts are read although the table has views."""
    found = []
    for use in context.view_uses():
        name = f"view({use.view})"
        if context.columns is None:
            why = "it is not known which columns the scan reads"
            unlike = context.unlike_columns(context.request.columns or frozenset())
            if unlike:
                why = f"{context.request.engine} may read {', '.join(unlike)} otherwise from a view"
            if context.request.enforced:
                why = "the engine dropped its filter, since every row of the facts left matches"
            elif not context.request.pruning:
                why = "pruning is switched off"
            found.append(IndexNotUsed(name, "FACTS_READ", why))
        elif use.lacking:
            why = f"the view does not hold {', '.join(use.lacking)}"
            found.append(IndexNotUsed(name, "NOT_HELD", why))
        elif use.not_built:
            why = f"it is not built for {use.not_built} segments, whose facts are read"
            remedy = Remedy(text=f"rebuild view {use.view}")
            found.append(IndexNotUsed(name, "NOT_BUILT", why, remedy))
    return found


_CLOSER_TIMES = Remedy(text="write Parquet, or partition by the day, for closer bounds of times")


def _bounds_remedy(
    reference: BoundReference, table: str, format: FileFormat, modes: Modes
) -> Remedy:
    """What gives a column bounds."""
    type = reference.type
    if type.kind in _NESTED:
        return Remedy(text=_INSTEAD.get(type.kind, "write what is asked as a column of its own"))
    if format.name == "json" and len(reference.path) > 1:
        return Remedy(text="write what is asked as a column of its own: members are not indexed")
    if modes.of(reference.path) in (NONE, COUNTS):
        return Remedy("build", table, ("--mode", f"{reference_text(reference)}=full"))
    if type.is_floating:
        return Remedy("build", table, ("--nan", "scan"))
    if type.kind is Kind.TIMESTAMP and format.chunks is None:
        int96 = Remedy(text="write its files with 64-bit timestamps, if they have INT96")
        return _CLOSER_TIMES if format.wide_times else int96
    if format.chunks is not None:
        return Remedy(
            text=f"write each of its values as {type}, as docs/how-to/indexes-declared.md spells it"
        )
    return Remedy(
        text=f"write its files with statistics and as {type}, if they have none or another type "
        "(such as unsigned numbers of 64 bits, or with their highest bit set)"
    )


_NESTED = {Kind.ARRAY: "an array", Kind.MAP: "a map", Kind.STRUCT: "a struct"}
_INSTEAD = {Kind.STRUCT: "ask for one of its members"}


def _nested(type: Type) -> str:
    """Why a column of this type skips no file; empty: its type is plain."""
    if type.kind not in _NESTED:
        return ""
    return f"it is {_NESTED[type.kind]}, of which a file has no least and greatest value"


def _unindexed(context: ScanContext, table: str) -> list[IndexNotUsed]:
    """Columns and functions of the predicate that the index does not cover."""
    index = context.view.index
    assert index is not None
    pruner = context.pruner_of(index)
    problems, format = index.problems, file_format(context.table.format)
    times = format.wide_times
    modes = Modes(index.manifest.settings.modes)
    asked = split_by_source(context.predicate).data
    found = []
    for reference in pruner.unindexed_columns(asked):
        column = reference_text(reference)
        error = problems.get(column.lower())
        if error is not None:
            damaged = isinstance(error, IndexCorrupt)
            remedy = Remedy("build", table) if damaged else Remedy(text=error.hint)
            found.append(IndexNotUsed(f"minmax({column})", error.code, error.message, remedy))
            continue
        why = _nested(reference.type) or "the index knows no bounds of this column"
        left_out = modes.of(reference.path) in (NONE, COUNTS)
        if format.no_times and reference.type.kind is Kind.TIMESTAMP and not left_out:
            why = f"{why}: {format.no_times}"
        remedy = _bounds_remedy(reference, table, format, modes)
        found.append(IndexNotUsed(f"minmax({column})", "NO_STATISTICS", why, remedy))
    told = {one.index for one in found}
    nested = context.table.columns if context.dropped else ()
    for each in nested:  # engines send no condition on their elements
        name, why = f"minmax({each.name})", _nested(each.type)
        word = re.compile(rf"(?<!\w){re.escape(each.name)}(?!\w)", re.IGNORECASE)
        if why and name not in told and any(map(word.search, context.dropped)):
            remedy = _bounds_remedy(BoundReference((each.name,), each.type), table, format, modes)
            found.append(IndexNotUsed(name, "NO_STATISTICS", why, remedy))
    for reference in sorted(compared_columns(asked), key=reference_text) if times else ():
        name, call = f"minmax({reference_text(reference)})", isinstance(reference, BoundCall)
        if reference.type.kind is Kind.TIMESTAMP and not call and name not in told:
            found.append(IndexNotUsed(name, "WIDE_BOUNDS", times, _CLOSER_TIMES))
    for text, options in unindexed_functions(context.predicate, index.kinds):
        detail = "no index holds values of this function"
        remedy = Remedy("build", table, options)
        found.append(IndexNotUsed(f"expression({text})", "NO_INDEX", detail, remedy))
    return found
