"""Asks two readers the same queries; a difference is shrunk and told with the rows that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.engines.differential.queries import Query

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows, or the name of an error and its text; ``users``: the query's own fault."""

    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    error: str = ""
    text: str = ""
    users: bool = False
    read: int = -1


Ask = Callable[[str], Outcome]
"""Runs a statement; ``{table}`` has been filled in."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One way to read: how to ask it, and what the table is called there."""

    name: str
    ask: Ask
    table: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A query of which a reader tells another answer than the oracle."""

    table: str
    oracle: str
    query: Query
    told: str

    def __str__(self) -> str:
        return f"{self.table} against {self.oracle}: {self.query.sql(self.table)}\n{self.told}"


def cell(value: Any) -> Any:
    """A value as it is compared: zeros have one sign, since sums and groups may take either."""
    if isinstance(value, float):
        return "nan" if value != value else repr(value + 0.0)
    if isinstance(value, list | tuple):
        return tuple(map(cell, value))
    return value


def bag(rows: Iterable[Iterable[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(cell, row)) for row in rows)


def difference(
    query: Query, table: str, ours: Reader, oracle: Reader, known: Outcome | None = None
) -> str:
    """What differs, empty if nothing does.

    Args:
        known: what our reader has answered already.
    """
    told = known or ours.ask(query.sql(ours.table(table)))
    if query.compare == "rows":
        return judged(told, oracle.ask(query.sql(oracle.table(table))))
    right = oracle.ask(query.sql(oracle.table(table), query.whole))
    if told.error or right.error:
        return judged(told, right)
    wanted = min(query.limit, right.rows.total())
    if told.rows.total() != wanted:
        return f"  {told.rows.total()} rows instead of {wanted}"
    strange = told.rows - right.rows
    return f"  rows that are not there: {_some(strange)}" if strange else ""


def judged(told: Outcome, right: Outcome) -> str:
    """A reader that skips a file does not meet the value that makes the other fail."""
    if told.error:
        if right.error and told.users:
            return ""  # a value overflows, or is no number; of two such errors either comes first
        return f"  fails: {told.error}: {told.text}\n  the oracle: {right.error or 'rows'}"
    if right.error or told.rows == right.rows:
        return ""
    lacking, strange = right.rows - told.rows, told.rows - right.rows
    return f"  lacking {_some(lacking)}\n  too many {_some(strange)}"


def _some(rows: Counter[tuple[Any, ...]]) -> str:
    return f"{rows.total()}: {list(rows)[:5]}"


def shrunk(query: Query, differs: Callable[[Query], str], tries: int = 60) -> tuple[Query, str]:
    """A smaller query that differs still, and how; conjuncts are dropped one by one."""
    told = differs(query)
    again = True
    while again and tries > 0:
        again = False
        for smaller in query.smaller():
            tries -= 1
            found = differs(smaller)
            if found:
                query, told, again = smaller, found, True
                break
            if tries <= 0:
                break
    return query, told


def compared(
    queries: Iterable[tuple[str, Query]],
    ours: Reader,
    oracles: Callable[[int], tuple[Reader, ...]],
    threads: int,
) -> Iterator[Difference | None]:
    """One for each pair of a query and an oracle, in any order: None where they agree.

    Args:
        queries: a table's name and what is asked of it.
        oracles: of the nth query.
    """

    def one(numbered: tuple[int, tuple[str, Query]]) -> list[Difference | None]:
        number, (table, query) = numbered
        found: list[Difference | None] = []
        once = ours.ask(query.sql(ours.table(table)))
        for oracle in oracles(number):

            def differs(q: Query, oracle: Reader = oracle) -> str:
                return difference(q, table, ours, oracle)

            first = difference(query, table, ours, oracle, once)
            if not first:
                found.append(None)
                continue
            small, told = shrunk(query, differs)
            if told:  # else it did not come again
                found.append(Difference(table, oracle.name, small, told))
            else:
                found.append(Difference(table, oracle.name, query, f"{first}\n  and not again"))
        return found

    pool = ThreadPoolExecutor(threads)
    try:
        for found in pool.map(one, enumerate(queries)):
            yield from found
    finally:
        pool.shutdown(cancel_futures=True)
