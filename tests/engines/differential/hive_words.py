"""The same conditions in Hive's SQL, and queries that Hive answers without a job."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from tests.engines.differential import values as v
from tests.engines.differential.predicates import Conditions, Term, number_text
from tests.engines.differential.queries import TABLE, Queries, Query
from tests.engines.differential.values import Sort


class HiveConditions(Conditions):
    """Hive's literals and functions."""

    real = "float"
    string = "string"
    attempt = "CAST"  # NULL where the value does not fit
    escapes = False
    mixes = False

    def distinct(self, one: str, other: str) -> str:
        told = f"{one} <=> {other}"
        return f"NOT ({told})" if self.rng.random() < 0.5 else told

    def more_of_time(self, x: str) -> list[Term]:
        return []

    def integer(self, value: int) -> str:
        if self.rng.random() < 0.06:
            return f"{value}.5BD"
        return str(value) if -(2**63) < value < 2**63 else f"{value}BD"

    def number(self, value: Decimal) -> str:
        return f"{number_text(value)}BD"

    def single(self, value: float) -> str:
        return f"CAST('{number_text(value)}' AS FLOAT)"

    def double(self, value: float) -> str:
        return f"CAST('{number_text(value)}' AS DOUBLE)"

    def text(self, value: Any) -> str:
        told = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{told}'"

    def time(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.isoformat(' ')}'"

    def literal(self, sort: Sort) -> str:
        if sort.name == "binary":
            return f"unhex('{self.rng.choice(v.BINARY.pool).hex()}')"
        return super().literal(sort)


class HiveQueries(Queries):
    """Filters that a fetch task answers, and a few of what needs a job."""

    def fetched(self) -> Query:
        return self.limited() if self.rng.random() < 0.15 else self.rows()

    def job(self) -> Query:
        shapes = (self.aggregate, self.counted, self.grouped, self.top, self.semi)
        return self.rng.choice(shapes)()

    def semi(self) -> Query:
        term = self.rng.choice([t for t in self.conditions.columns if t.sql != "raw"])
        few = f"SELECT {term.sql} FROM {TABLE} WHERE {self.conditions.simple()}"
        return Query(f"SELECT count(*), min(id) FROM {TABLE} t WHERE t.{term.sql} IN ({few})", None)
