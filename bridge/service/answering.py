"""Aggregates from statistics: converts Thrift requests and results.

Every call is bounded in time. If the result is late, the engine gets no answer, but the listing in
flight continues and serves the query's scan.
"""

from __future__ import annotations

import json
from concurrent.futures import Executor
from concurrent.futures import TimeoutError as Late

from bridge.engines.engine import Engine
from bridge.engines.translation import NotTranslatable
from bridge.expression.nodes import BoundReference
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import BIGINT, Type
from bridge.planner.answers.aggregate_pushdown import AggregateResult
from bridge.planner.answers.aggregate_pushdown import aggregate as aggregate_of
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.service._gen import ttypes

MAX_WAIT_MS = 60_000
_FUNCTIONS = frozenset({"count", "min", "max"})


def aggregate(
    plan: ScanPlan, engine: Engine, asked: ttypes.AggregateRequest, pool: Executor, endpoint: str
) -> ttypes.AggregateResult:
    """Answers within the time that the request allows.

    Errors:
        InvalidRequest: there is no such aggregate.
        ColumnNotFound; and whatever makes planning fail.
    """
    question = _question(plan, asked)
    future = pool.submit(aggregate_of, plan, question)
    try:
        found = future.result(min(max(0, asked.max_wait_ms), MAX_WAIT_MS) / 1000.0)
    except Late:
        future.cancel()  # one that has not begun is of no use any more
        return _reply(endpoint, AggregateResult(False, None, "TOO_LATE"), "")
    if found.rows is None:
        return _reply(endpoint, found, "")
    try:
        return _reply(endpoint, found, _rows(question, found.rows, engine))
    except NotTranslatable:
        return _reply(endpoint, AggregateResult(True, None, "VALUE", found.files), "")


def _question(plan: ScanPlan, asked: ttypes.AggregateRequest) -> AggregateRequest:
    aggregates: list[Aggregate] = []
    for each in asked.aggregates or []:
        if each.function not in _FUNCTIONS or (each.function != "count" and not each.column):
            raise InvalidRequest(
                f"no aggregate {each.function!r} of {each.column!r}",
                f"there are {', '.join(sorted(_FUNCTIONS))}",
            )
        column = plan.context.resolve(each.column) if each.column else None
        aggregates.append(Aggregate(each.function, column))
    return AggregateRequest(
        tuple(aggregates), tuple(plan.context.resolve(c) for c in asked.group_by or [])
    )


def _rows(question: AggregateRequest, rows: tuple[tuple[object, ...], ...], engine: Engine) -> str:
    types: list[Type] = [reference.type for reference in question.group_by]
    types += [_type(a.function, a.column) for a in question.aggregates]
    encoded = [
        [engine.encode(value, type) for value, type in zip(row, types, strict=True)] for row in rows
    ]
    return json.dumps(encoded, ensure_ascii=False)


def _type(function: str, column: BoundReference | None) -> Type:
    return BIGINT if function == "count" or column is None else column.type


def _reply(endpoint: str, found: AggregateResult, rows: str) -> ttypes.AggregateResult:
    return ttypes.AggregateResult(
        endpoint=endpoint,
        enforced=found.enforced,
        answered=bool(rows),
        reason=found.reason,
        rows=rows,
        files=found.files,
    )
