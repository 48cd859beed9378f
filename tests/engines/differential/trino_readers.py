"""Trino as reader and as oracle: our connector, the same with pruning off, the stock connector."""

from __future__ import annotations

import threading
from collections.abc import Callable

import trino

from tests.engines.differential.compare import Outcome, Reader, bag

OFF = {"pruning_enabled": "false", "metadata_answers_enabled": "false"}
# The stock connector of Trino 476 takes the statistics of a decimal(38, 2) for those of the
# decimal(38, 10) that it is declared as, and loses rows.
STOCK = {"parquet_ignore_statistics": "true"}


def reader(name: str, port: int, catalog: str, session: dict[str, str] | None = None) -> Reader:
    """A connection for each thread that asks."""
    held = threading.local()

    def ask(sql: str) -> Outcome:
        if not hasattr(held, "connection"):
            held.connection = trino.dbapi.connect(
                host="127.0.0.1",
                port=port,
                user="differential",
                catalog=catalog,
                timezone="UTC",
                session_properties={f"{catalog}.{k}": v for k, v in (session or {}).items()},
            )
        cursor = held.connection.cursor(legacy_primitive_types=True)
        try:
            cursor.execute(sql)
            rows = cursor.fetchall()
        except trino.exceptions.TrinoQueryError as e:
            users = e.error_type == "USER_ERROR"
            return Outcome(error=str(e.error_name), text=str(e.message)[:600], users=users)
        return Outcome(bag(rows), read=int((cursor.stats or {}).get("processedRows", -1)))

    return Reader(name, ask, _within(catalog))


def _within(catalog: str) -> Callable[[str], str]:
    return lambda table: f"{catalog}.{table}"
