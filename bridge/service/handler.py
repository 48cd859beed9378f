"""The planner service: one method per call of bridge.thrift."""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import Any, TypeVar

from bridge.engines.engine import Engine
from bridge.engines.registry import engine, refuse_unreadable
from bridge.engines.translation import Translation
from bridge.expression.nodes import AlwaysTrue
from bridge.kernel import telemetry
from bridge.kernel.errors import BridgeError, InvalidRequest, UnsupportedTable
from bridge.kernel.threads import Threads
from bridge.kernel.types import Semantics, whole_number
from bridge.kernel.version import VERSION
from bridge.planner.answers.skippable_files import SkippableFiles, list_skippable_files
from bridge.planner.answers.table_statistics import Estimate, row_estimate
from bridge.planner.dynamic_filter_wait import filter_wait
from bridge.planner.open_snapshots import OpenSnapshot
from bridge.planner.planner import Planner
from bridge.planner.reports.document import report_document
from bridge.planner.request import ScanRequest, SortKey
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.splits.coalesce import SplitSettings, with_parallelism
from bridge.planner.splits.source import SplitSource
from bridge.service._gen import ttypes
from bridge.service.admission import Admission
from bridge.service.answering import aggregate
from bridge.service.codec import PROTOCOL, check_protocol, encode_batch, failure_of
from bridge.service.compiled import (
    OTHER_COLUMNS,
    compiled_with,
    parse_compiled,
    require_compiled,
)
from bridge.service.expected_tables import ExpectedTables
from bridge.service.fair_lock import FairLock
from bridge.service.indexed_tables import IndexedTables
from bridge.service.plan_log import plan_ended, plan_opened, selection_made
from bridge.service.plans import Opened, OpenPlans
from bridge.service.refreshes import Refresh, Refreshes
from bridge.service.row_filter import encode_row_filter
from bridge.service.skippable_files import MAX_BYTES, encode_skippable_files
from bridge.service.statistics import Estimates
from bridge.service.system_tables import SystemRows
from bridge.service.tables import describe_table, describe_view
from bridge.table.model import TableName
from bridge.table.read_version import parse_read_version
from bridge.table.registry import DIRECTORY

log = logging.getLogger(__name__)
_SCANS = 64
_COUNTS = 64
_ANSWERS = 16
_HOOKS = 4
_CORES = os.cpu_count() or 1
_MAX_WAIT_MS = 10_000
_MAX_SPLITS = 100_000
_FIRST_WAIT = 0.05
"""Seconds that a plan's answer waits for the first batch: the engine awaits its advice."""
_LATE_FAILURE = 5.0
"""Seconds after which a failure is logged too, because its client may not have waited for it."""
_FEW_FILES = 10_000
"""A table of so many files is estimated as a whole before the optimiser asks."""
_LONG_PREDICATE = 1 << 14
_OPTIONS = frozenset(
    {
        "pruning_enabled",
        "reads_views",
        "workers",
        "concurrency",
        "target_split_bytes",
        "max_files_per_split",
        "freshness",
        "timestamp_zone",
        "table_columns",
        "declaration",
        "max_answer_bytes",
    }
)
Method = TypeVar("Method", bound=Callable[..., Any])


def _answers_failures(method: Method) -> Method:
    """Turns every exception into a BridgeFailure; late and unexpected ones are logged."""

    @wraps(method)
    def call(*args: Any) -> Any:
        started = time.monotonic()
        try:
            if any(arg is None for arg in args):
                raise InvalidRequest(
                    f"{method.__name__} lacks an argument",
                    "the client and the planner must be of the same release",
                )
            return method(*args)
        except BridgeError as e:
            telemetry.ERRORS.labels(e.code).inc()
            taken = time.monotonic() - started
            if taken >= _LATE_FAILURE:
                log.warning(
                    "%s failed after %.0f s: %s: %s", method.__name__, taken, e.code, e.message
                )
            raise failure_of(e) from e
        except Exception as e:
            telemetry.ERRORS.labels(BridgeError.code).inc()
            log.exception("%s failed", method.__name__)
            raise failure_of(e) from e

    return call  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Scan:
    """An open scan, and the engine that asked for it."""

    source: SplitSource
    engine: Engine

    def close(self) -> None:
        self.source.close()


class PlannerHandler:
    """Implements the Thrift service over one `Planner`; called by many threads.

    Args:
        planner: makes the plans.
        endpoint: host:port at which clients reach this very process.
        processes: endpoints of all processes behind the shared address; this one's by default.
        settings: default split settings.
        refresh: refreshes the index of some partitions of a table, or of all without one.
    """

    def __init__(
        self,
        planner: Planner,
        endpoint: str,
        settings: SplitSettings,
        *,
        plan_ttl: float = 600.0,
        max_plans: int = 1000,
        processes: Sequence[str] = (),
        refresh: Refresh | None = None,
    ) -> None:
        self._planner = planner
        self._endpoint = endpoint
        self._processes = list(processes or [endpoint])
        self._settings = settings
        self._started = time.monotonic()
        self.plans = OpenPlans(f"{os.getpid()}-{secrets.token_hex(4)}", plan_ttl, max_plans)
        self._pool = Admission(_SCANS)
        # Separate pools: what waits for long listings or for the metastore must not delay splits,
        # nor what the index alone tells the optimiser.
        self._counts = Threads(_COUNTS, "count")
        self._answers = Threads(_ANSWERS, "answer")
        self._ahead = Threads(_ANSWERS, "ask")
        self._estimates = Estimates(self._answers, self._ahead, planner.catalog)
        self._expected = ExpectedTables(self._ahead, planner.fetch)
        # A hook asks about up to a thousand tables at once, in the background.
        self._hooks = Threads(_HOOKS, "indexed")
        self._indexed = IndexedTables(self._hooks, planner)
        self._turns = FairLock()
        self._refreshes = Refreshes(refresh)

    @property
    def admission(self) -> Admission:
        """The threads of scans; all ways to ask for one share them."""
        return self._pool

    def health(self) -> ttypes.Health:
        uptime = int(time.monotonic() - self._started)
        return ttypes.Health(
            VERSION, PROTOCOL, self._endpoint, uptime, len(self.plans), self._processes
        )

    @_answers_failures
    def list_schemas(self, protocol: int) -> list[str]:
        check_protocol(protocol)
        return self._planner.catalog.schemas()

    @_answers_failures
    def list_tables(self, schema_name: str, protocol: int) -> list[str]:
        check_protocol(protocol)
        return self._planner.catalog.tables(schema_name)

    @_answers_failures
    def list_views(self, schema_name: str, protocol: int) -> list[str]:
        check_protocol(protocol)
        return self._planner.catalog.views(schema_name)

    @_answers_failures
    def get_table(
        self,
        schema_name: str,
        table_name: str,
        engine_name: str,
        query_id: str,
        read_version: str,
        protocol: int,
    ) -> ttypes.Table:
        check_protocol(protocol)
        name, asking = _name(schema_name, table_name), engine(engine_name)
        read = parse_read_version(read_version)
        scanned = self._expected.note(query_id, name)
        try:
            table = self._planner.table(name, read)
            refuse_unreadable(table, asking)
        except UnsupportedTable:
            view = self._planner.catalog.view(name) if asking.has_views else None
            if view is None:
                raise
            return describe_view(view)
        if not scanned:
            snapshot = self._planner.describe(name, read)
            return describe_table(snapshot.table, Estimate(), asking, snapshot.id, read)
        opened = self._planner.look_ahead(query_id, name, read)
        table = opened.snapshot.table
        self._estimates.expect(table, opened.view)
        known = self._estimates.at_hand(table, opened.view, read)
        index = opened.view.index
        if known is None and index is not None and index.num_files <= _FEW_FILES:
            request = ScanRequest(
                name, engine=asking.name, query_id=query_id, semantics=asking.semantics, read=read
            )
            self._answers.submit(self._estimate, request)
        known = known or Estimate(row_estimate(opened.view))
        return describe_table(table, known, asking, opened.snapshot.id, read)

    def _estimate(self, request: ScanRequest) -> None:
        """Estimates a whole table in the background: the next description brings it."""
        with suppress(BridgeError):  # left to the query that meets it
            self._estimates.begin(self._planner.plan(request))

    @_answers_failures
    def get_statistics(self, request: ttypes.PlanRequest) -> ttypes.Table:
        asking = _asking(request)
        plan = self._plan(request, asking)
        return describe_table(plan.table, self._estimates.of(plan), asking)

    @_answers_failures
    def aggregate(
        self, request: ttypes.PlanRequest, aggregates: ttypes.AggregateRequest
    ) -> ttypes.AggregateResult:
        asking = _asking(request)
        plan = self._plan(request, asking)
        return aggregate(plan, asking, aggregates, self._counts, self._endpoint)

    @_answers_failures
    def plan(self, request: ttypes.PlanRequest) -> ttypes.Plan:
        with self.plans.slot():
            started = time.perf_counter()
            asking = _asking(request)
            scan = _Scan(self._open(request, asking), asking)
            plan_opened(scan.source.plan.request, time.perf_counter() - started)
            answer = self._opened(scan, scan.source.plan, asking)
            self._draw_first(answer, scan, request.first_splits or 0)
            return answer

    @_answers_failures
    def open_system_table(self, request: ttypes.PlanRequest, kind: str) -> ttypes.Plan:
        with self.plans.slot():
            asking = _asking(request)
            plan = self._plan(request, asking)
            rows = SystemRows(plan, kind, list(request.projected_columns or []))
            return self._opened(rows, plan, asking)

    def _opened(self, source: Opened, plan: ScanPlan, asking: Engine) -> ttypes.Plan:
        """Keeps a plan open; one that the engine cannot read is closed."""
        try:
            query = plan.request.query_id
            busy = self.plans.queries(query) * len(self._processes) / _CORES
            wait = filter_wait(plan.context).beside(busy)
            answer = ttypes.Plan(
                endpoint=self._endpoint,
                generation=plan.view.generation,
                freshness=plan.snapshot.freshness,
                dropped=list(plan.request.dropped),
                snapshot_id=plan.snapshot.id,
                row_filter=encode_row_filter(plan.context.row_filter, asking),
                dynamic_filter_wait_ms=wait.millis,
                dynamic_filter_columns=list(wait.columns),
            )
        except BaseException:
            source.close()
            raise
        answer.handle = self.plans.add(source, query)
        return answer

    def _draw_first(self, answer: ttypes.Plan, scan: _Scan, most: int) -> None:
        """The first batch with the plan, and the end of a small one: two calls less for each.

        Not where a dynamic filter may still prune it.
        """
        if most < 1 or answer.dynamic_filter_wait_ms or scan.source.plan.awaits_key_filters:
            return
        try:
            answer.first = self._next(scan, 0, most, _FIRST_WAIT)
        except BaseException:
            self.plans.close(answer.handle)
            raise
        if answer.first.finished:
            self.plans.close(answer.handle)
            answer.handle = ""

    @_answers_failures
    def next_rows(self, handle: str, token: int, max_rows: int) -> ttypes.SystemPage:
        return self.plans.get(handle, SystemRows).next(token, max_rows)

    @_answers_failures
    def apply_dynamic_filter(self, handle: str, predicate: str) -> None:
        scan = self.plans.get(handle, _Scan)
        scan.source.plan.apply_dynamic_filter(_translate(scan.engine, predicate).expression)

    @_answers_failures
    def next_splits(
        self, handle: str, token: int, max_splits: int, max_wait_ms: int
    ) -> ttypes.SplitBatch:
        scan = self.plans.get(handle, _Scan)
        wait = min(max(0, max_wait_ms), _MAX_WAIT_MS) / 1000.0
        return self._next(scan, token, max_splits, wait)

    def _next(self, scan: _Scan, token: int, most: int, wait: float) -> ttypes.SplitBatch:
        source = scan.source
        with self._turns.turn() if source.plan.plans_without_io else nullcontext():
            batch = source.next(token, min(most, _MAX_SPLITS), wait)
            report = None
            if batch.finished:
                report = json.dumps(report_document(plan_ended(source, "done")))
            return encode_batch(batch, scan.engine, report)

    @_answers_failures
    def close_plan(self, handle: str) -> None:
        closed = self.plans.close(handle)
        if isinstance(closed, _Scan):
            plan_ended(closed.source, "closed early")

    def close(self) -> None:
        """Closes all plans and stops the workers."""
        self.plans.close_all()
        self._pool.close()
        self._counts.close()
        self._answers.close()
        self._ahead.close()
        self._hooks.close()
        self._refreshes.close()
        self._planner.lister.close()

    @_answers_failures
    def list_skippable_files(self, request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        started = time.perf_counter()
        asking = _asking(request)
        scan = self._scan(request, asking)
        table = self._planner.table(scan.table)
        most = min(MAX_BYTES, _positive(request.options or {}, "max_answer_bytes", MAX_BYTES))
        compiled = parse_compiled((request.options or {}).get("table_columns", ""))
        if not compiled_with(table, compiled):
            table = self._planner.newest_table(scan.table)
            if not compiled_with(table, compiled):
                found = SkippableFiles(not_used=(OTHER_COLUMNS,))
                return encode_skippable_files(found, scan.dropped, most)
        view = self._planner.views.view(table)
        told = (request.options or {}).get("declaration", "")
        recipe = asking.declaration(told)
        written = None
        if table.table_format != DIRECTORY:
            written = self._planner.written_files(table)
        asks_storage = written is not None and bool(written.own_indexes)
        with nullcontext() if asks_storage else self._turns.turn():
            found = list_skippable_files(table, view, scan, written, recipe)
        selection_made(scan, found, time.perf_counter() - started)
        return encode_skippable_files(found, scan.dropped, most)

    @_answers_failures
    def list_indexed_tables(self, tables: list[str], protocol: int) -> ttypes.IndexedTables:
        check_protocol(protocol)
        return self._indexed.among(tables)

    @_answers_failures
    def refresh_index(
        self, schema_name: str, table_name: str, partitions: list[str], protocol: int
    ) -> None:
        check_protocol(protocol)
        self._refreshes.add(_name(schema_name, table_name), partitions)

    def _open(self, request: ttypes.PlanRequest, asking: Engine) -> SplitSource:
        settings = self._split_settings(dict(request.options or {}))
        scan = self._scan(request, asking)
        opened = self._snapshot(request, scan, asking)
        with self._turns.turn():
            plan = self._planner.open(scan, opened)
            return SplitSource(plan, self._pool, settings)

    def _plan(self, request: ttypes.PlanRequest, asking: Engine) -> ScanPlan:
        scan = self._scan(request, asking)
        return self._planner.open(scan, self._snapshot(request, scan, asking))

    def _snapshot(
        self, request: ttypes.PlanRequest, scan: ScanRequest, asking: Engine
    ) -> OpenSnapshot:
        """What the scan sees of its table, under the columns that its query was analysed with.

        Errors: TableChanged; as `Planner.snapshot`, `refuse_unreadable`.
        """
        told = (request.options or {}).get("table_columns", "")
        opened = self._planner.snapshot(scan)
        if told and not compiled_with(opened.snapshot.table, parse_compiled(told)):
            self._planner.newest_table(scan.table)
            opened = self._planner.snapshot(scan)
        require_compiled(opened.snapshot.table, told)
        refuse_unreadable(opened.snapshot.table, asking)
        return opened

    def _scan(self, request: ttypes.PlanRequest, asking: Engine) -> ScanRequest:
        options = dict(request.options or {})
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise InvalidRequest(
                f"unknown plan option {unknown[0]!r}", f"known: {sorted(_OPTIONS)}"
            )
        translation = _translate(asking, request.predicate or "")
        return ScanRequest(
            table=_name(request.schema_name, request.table_name),
            predicate=translation.expression,
            dropped=translation.dropped,
            semantics=_semantics(asking, options),
            engine=asking.name,
            query_id=request.query_id or "",
            read=parse_read_version(request.read_version or ""),
            snapshot_id=request.snapshot_id or "",
            columns=_projected(request.projected_columns)
            if _flag(options, "reads_views", asking.reads_hot_columns)
            else None,
            reads_alike=asking.reads_alike,
            pruning=_flag(options, "pruning_enabled", True),
            freshness=options.get("freshness"),
            limit=request.limit,
            order=tuple(
                SortKey(key.column or "", bool(key.descending), bool(key.nulls_first))
                for key in request.order or ()
            ),
            enforced=bool(request.enforced),
            absent_is_empty=asking.missing_is_empty,
            dynamic_filter_columns=_columns(request.dynamic_filter_columns) or frozenset(),
        )

    def _split_settings(self, options: Mapping[str, str]) -> SplitSettings:
        base = self._settings
        settings = SplitSettings(
            target_bytes=_positive(options, "target_split_bytes", base.target_bytes),
            open_cost=base.open_cost,
            max_files=_positive(options, "max_files_per_split", base.max_files),
            parallelism=base.parallelism,
        )
        if "workers" not in options and "concurrency" not in options:
            return settings
        return with_parallelism(
            settings, _positive(options, "workers", 1), _positive(options, "concurrency", 4)
        )


def _asking(request: ttypes.PlanRequest) -> Engine:
    """The engine that a request names. Errors: ProtocolMismatch, InvalidRequest."""
    check_protocol(request.protocol)
    return engine(request.engine)


def _semantics(asking: Engine, options: Mapping[str, str]) -> Semantics:
    """The engine's semantics; in a zone other than UTC it does not read raw timestamps."""
    semantics = asking.semantics
    if options.get("timestamp_zone", "UTC") == "UTC":
        return semantics
    return replace(semantics, raw_timestamps=False)


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name)
    if text not in (None, "true", "false"):
        raise InvalidRequest(f"{name} is {text!r}", "give true or false")
    return default if text is None else text == "true"


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    value = whole_number(text)
    if value is None or not 0 < value < 2**40:
        raise InvalidRequest(f"{name} is {text!r}", "give a whole number above 0")
    return value


def _name(schema: str | None, table: str | None) -> TableName:
    if not schema or not table:
        raise InvalidRequest(f"not a table: {schema!r}.{table!r}", "name a schema and a table")
    return TableName(schema.lower(), table.lower())


def _columns(names: Sequence[str] | None) -> frozenset[str] | None:
    return frozenset(name.lower() for name in names) if names else None


def _projected(names: Sequence[str] | None) -> frozenset[str] | None:
    """The columns that a scan reads; None: all. Of no column an empty name is sent."""
    found = _columns(names)
    return None if found is None else found - {""}


def _translate(asking: Engine, predicate: str) -> Translation:
    if not predicate:
        return Translation(AlwaysTrue(), (), True)
    if len(predicate) > _LONG_PREDICATE:
        return asking.translate(predicate)
    return _translate_cached(asking, predicate)


@lru_cache(512)
def _translate_cached(asking: Engine, predicate: str) -> Translation:
    """Cached: an engine sends one predicate for statistics, aggregates and splits of a query."""
    return asking.translate(predicate)
