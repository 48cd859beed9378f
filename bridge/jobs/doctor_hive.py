"""The Hive checks of ``doctor``: the hooks' jar, settings, and which way a table is hooked."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from bridge.clients.hive import HiveSession
from bridge.config import Config
from bridge.errors import BridgeError, UnsupportedTable
from bridge.jobs.compose import metastore_of
from bridge.jobs.diagnostic import Diagnostic, guarded
from bridge.jobs.hive import HookedTable, open_hooked
from bridge.jobs.hive_jar import hive_versions
from bridge.metastore.hooks import PLAN_HOOK, is_hooked, is_marked, refuse_unhookable

_HOOKS = "hive.exec.pre.hooks"
_FILTER = "hive.optimize.index.filter"
_FILTER_REMEDY = f"set {_FILTER}=true in its hive-site.xml, and restart it"
_OLD = ("2.", "3.")  # the metastore of Hive 2.3 reports 3.0
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
        yield guarded("Hive", lambda: _raise(raised), "error")
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
                else f"{_HOOKS} has no hook: only tables of `skipbridge hive hook` skip files",
            )

        yield guarded("Hive", lambda: _jar(session, hive.address), "error")
        yield guarded("Hive plans", plans)
        yield guarded("Hive filters", lambda: examine_filters(session))
    return hooked


def examine_hooks(
    config: Config, table: str, asked_hive: bool, hooked_plans: bool | None = None
) -> Iterator[Diagnostic]:
    """Tells which way a table is hooked, and checks whether Hive reads all its partitions so.

    Args:
        asked_hive: a HiveServer2 was checked, so its settings are known.
        hooked_plans: whether that HiveServer2 hooks plans.
    """
    check = f"Hive hooks of {table}"
    try:
        with metastore_of(config) as client:
            of = open_hooked(client, config, table if "." in table else f"default.{table}")
            yield guarded(check, lambda: _hooks(check, of, hooked_plans), "error")
            version = client.get_version()
    except BridgeError as error:
        yield Diagnostic(check, "error", error.message, error.hint)
        return
    if is_hooked(of.table.sd) and not asked_hive and version.startswith(_OLD):
        yield Diagnostic(
            "Hive filters",
            "warning",
            f"before 4.0 Hive passes a query's filter to input formats only with {_FILTER}=true, "
            f"which is not its default (the metastore is of version {version})",
            f"{_FILTER_REMEDY}; `skipbridge doctor --hive HOST:PORT` checks whether it is set",
        )


def _hooks(check: str, of: HookedTable, hooked_plans: bool | None) -> Diagnostic:
    name, survey = of.name, of.survey()
    hooked = is_hooked(of.table.sd)
    if not hooked and not survey.hooked and not is_marked(of.table):
        return _not_altered(check, of, hooked_plans)
    try:
        refuse_unhookable(of.table)
    except UnsupportedTable as error:
        # Hooked once, altered since: Hive may return wrong rows.
        return Diagnostic(check, "error", error.message, f"skipbridge hive unhook {name}")
    if not hooked:
        return Diagnostic(
            check,
            "warning",
            f"the table is not hooked, {survey.hooked} of {survey.total} partitions are: an unhook "
            "that was interrupted, or a table altered by hand",
            f"skipbridge hive unhook {name}",
        )
    if survey.altered:
        examples = ", ".join(survey.examples["altered"])
        return Diagnostic(
            check,
            "error",
            f"{survey.altered} of {survey.total} hooked partitions were altered since, such as "
            f"{examples}: Hive may leave out rows of theirs",
            f"skipbridge hive unhook {name}; hook plans instead, as queries tell how they read",
        )
    if survey.plain:
        examples = ", ".join(survey.examples["plain"])
        return Diagnostic(
            check,
            "warning",
            f"Hive reads {survey.plain} of {survey.total} partitions whole, such as {examples}",
            f"skipbridge hive hook {name}",
        )
    left = "".join(f"; {count} left as they are, {why}" for why, count in survey.left.items())
    partitions = f", {survey.hooked} partitions" if of.table.partitionKeys else ""
    return Diagnostic(
        check,
        "ok",
        f"hooked by its records: the table{partitions}{left}; Trino's stock hive connector refuses "
        "it, Spark reads it, and Hive needs the jar everywhere",
    )


def _not_altered(check: str, of: HookedTable, hooked_plans: bool | None) -> Diagnostic:
    if not hooked_plans:
        unknown = "" if hooked_plans is False else ", unless it hooks plans: see --hive"
        return Diagnostic(check, "ok", f"not hooked: Hive reads every file{unknown}")
    try:
        refuse_unhookable(of.table)
    except UnsupportedTable as error:
        return Diagnostic(check, "ok", f"left to Hive, which reads every file: {error.message}")
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
        "put the jar of `skipbridge hive jar` into its lib/ and restart it; without it, queries of "
        "hooked tables fail"
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
