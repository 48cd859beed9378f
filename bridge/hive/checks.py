"""The Hive checks of ``doctor``: the hooks' jar, settings, and tables hooked by their records."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from bridge.hive.jar import hive_versions
from bridge.hive.server import HiveSession
from bridge.kernel.config import Config
from bridge.metastore import records
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import MetastoreClient
from bridge.metastore.hooks import PLAN_HOOK, freeing_statements
from bridge.runtime.compose import metastore_of
from bridge.runtime.create_table import table_name
from bridge.runtime.diagnostic import Diagnostic, run_check
from bridge.table.model import TableName

_HOOKS = "hive.exec.pre.hooks"
_FILTER = "hive.optimize.index.filter"
_FILTER_REMEDY = f"set {_FILTER}=true in its hive-site.xml, and restart it"
_JAR = re.compile(r"skipbridge-hive-(\d[\w.]*?)\.jar")
_CLASS_PATH = "SELECT reflect('java.lang.System', 'getProperty', 'java.class.path')"


# Hive loads the class for every statement, the first one of a session included.
_MISSING_CLASS = Diagnostic(
    "Hive",
    "error",
    f"every query fails: {_HOOKS} names {PLAN_HOOK}, and the jar is missing",
    f"remove the class from {_HOOKS} in hive-site.xml, or put the jar of `skipbridge hive jar` "
    "into lib/; then restart HiveServer2",
)


@dataclass(frozen=True, slots=True)
class HiveAddress:
    """A HiveServer2: ``host:port``, and how it authenticates."""

    address: str
    authentication: str


def examine_hive(hive: HiveAddress) -> Generator[Diagnostic, None, bool | None]:
    """Checks the jar on a HiveServer2's class path, and whether it passes filters on.

    Returns:
        Whether it hooks plans; None if it cannot be asked.
    """
    try:
        session = HiveSession(hive.address, hive.authentication)
    except Exception as error:
        if PLAN_HOOK in str(error):
            yield _MISSING_CLASS
            return None
        raised = error
        yield run_check("Hive", lambda: _raise(raised), "error")
        return None
    with session:
        hooked: bool | None = None

        def plans() -> Diagnostic:
            nonlocal hooked
            hooked = PLAN_HOOK in re.split(r"[\s,]+", _setting(session, _HOOKS) or "")
            return Diagnostic(
                "Hive plans",
                "ok",
                f"{_HOOKS} has the hook: indexed tables are read through it, none is altered"
                if hooked
                else f"{_HOOKS} has no hook: Hive reads every file",
            )

        yield run_check("Hive", lambda: _jar(session, hive.address), "error")
        yield run_check("Hive plans", plans)
        yield run_check("Hive filters", lambda: examine_filters(session))
    return hooked


def examine_hooks(
    config: Config, table: str, hooked_plans: bool | None = None
) -> Iterator[Diagnostic]:
    """Tells whether Hive skips files of a table, and how a table that was hooked by its record is
    freed.

    Args:
        hooked_plans: whether a HiveServer2 that was asked hooks plans.
    """
    check = f"Hive hooks of {table}"

    def hooks() -> Diagnostic:
        name = table_name(table if "." in table else f"default.{table}")
        with metastore_of(config) as client:
            record = client.get_table(name.schema, name.table)
            statements = list(freeing_statements(record, _partitions(client, name, record)))
        if not statements:
            return _not_altered(check, hooked_plans)
        return Diagnostic(
            check,
            "warning",
            "a version before 0.1.0 altered its records: Hive reads it with the jar alone, and "
            "Trino's stock hive connector refuses it",
            f"run in Hive: {' '.join(f'{s};' for s in statements)}",
        )

    yield run_check(check, hooks, "error")


def _partitions(
    client: MetastoreClient, name: TableName, record: records.Table
) -> Iterator[records.Partition]:
    if record.partitionKeys:
        schema, table = name.schema, name.table
        names = client.get_partition_names(schema, table)
        with fetch_partitions(client, schema, table, names, BatchSettings()) as stream:
            for found in stream:
                yield from found.partitions


def _not_altered(check: str, hooked_plans: bool | None) -> Diagnostic:
    if not hooked_plans:
        unknown = "" if hooked_plans is False else ", unless it hooks plans: see --hive"
        return Diagnostic(check, "ok", f"not hooked: Hive reads every file{unknown}")
    return Diagnostic(
        check,
        "ok",
        "hooked by plan, if it has an index: its records are as Hive, stock Trino, Spark and "
        "Impala know them",
    )


def _jar(session: HiveSession, address: str) -> Diagnostic:
    ((running,),) = session.query("SELECT version()")
    version = str(running).split()[0]
    found = f"{address} runs Hive {version}"
    remedy = (
        "put the jar of `skipbridge hive jar` into its lib/ and restart it; without it, Hive reads "
        "every file"
    )
    try:
        ((class_path,),) = session.query(_CLASS_PATH)
    except Exception as error:  # any exception of PyHive: some servers forbid reflect()
        return Diagnostic(
            "Hive", "warning", f"{found}; its class path cannot be seen: {error}", remedy
        )
    jars = sorted(set(_JAR.findall(str(class_path))))
    if not jars:
        return Diagnostic("Hive", "warning", f"{found}, without the hooks' jar", remedy)
    if len(jars) > 1:
        return Diagnostic(
            "Hive", "warning", f"{found}, with several jars of hooks: {', '.join(jars)}", "keep one"
        )
    if _release(jars[0]) != _release(version):
        return Diagnostic(
            "Hive",
            "error",
            f"{found}, with hooks for Hive {jars[0]}",
            f"replace them: skipbridge hive jar --hive-version {_nearest(version)}",
        )
    planner = _setting(session, "skipbridge.planner") or "127.0.0.1:9527, the default"
    return Diagnostic("Hive", "ok", f"{found}, with hooks for {jars[0]}; its planner is {planner}")


def examine_filters(session: HiveSession) -> Diagnostic:
    value = _setting(session, _FILTER)
    if (value or "").lower() != "true":
        return Diagnostic(
            "Hive filters",
            "warning",
            f"{_FILTER} is {value or 'not set'}: Hive passes no filter to input formats, and every "
            "file is read",
            _FILTER_REMEDY,
        )
    return Diagnostic("Hive filters", "ok", f"{_FILTER} is true")


def _setting(session: HiveSession, key: str) -> str | None:
    """The value of a setting; None if it is not set."""
    ((shown,),) = session.query(f"SET {key}")
    name, found, value = str(shown).partition("=")
    return value if found and name == key else None


def _release(version: str) -> list[str]:
    return version.split(".")[:2]


def _nearest(version: str) -> str:
    known = hive_versions()
    major = version.split(".")[0]
    fitting = [k for k in known if _release(k) == _release(version)]
    fitting += [k for k in known if k.split(".")[0] == major]
    return (fitting or known)[0]


def _raise(error: Exception) -> Diagnostic:
    raise error
