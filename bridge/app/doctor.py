"""Checks everything that a first query needs, and names the command that fixes each problem."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from bridge.app.doctor_segments import examine_record
from bridge.app.explain import explain
from bridge.clustering.commands.left_text import lines
from bridge.clustering.commands.publish import list_left_files
from bridge.expression.nodes import AlwaysTrue
from bridge.hive.checks import HiveAddress, examine_hive, examine_hooks
from bridge.kernel.config import Config, parse_address
from bridge.kernel.errors import (
    BridgeError,
    ExternalError,
    SchemaNotFound,
    TableNotFound,
    UserError,
)
from bridge.kernel.version import VERSION
from bridge.planner.reports.remedies import remedy_text
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import (
    absolute_location,
    index_root,
    is_location,
    metastore_of,
    planner_of,
    resolve,
    split_settings,
    storage_of,
    storage_options,
)
from bridge.runtime.diagnostic import Diagnostic, run_check
from bridge.runtime.nested_files import REMEDY, describe_nested
from bridge.servers.java import find_jdk
from bridge.service.client import PlannerClient
from bridge.service.codec import PROTOCOL
from bridge.storage.object_store.listing_probe import require_listings
from bridge.storage.uri import canonical, parse
from bridge.trino.client import trino_client
from bridge.trino.plugin import supported_versions

LEFT_FILES = "files left beside"
"""Begins the check of files in directories that a table was published from."""
log = logging.getLogger(__name__)


class TrinoUnavailable(ExternalError):
    code = "TRINO_UNAVAILABLE"
    retryable = True


def examine(
    config: Config, table: str | None, trino: str | None, hive: HiveAddress | None = None
) -> Iterator[Diagnostic]:
    """Runs every check; changes nothing, and deletes what it tries a store with."""
    yield Diagnostic("skipbridge", "ok", f"version {VERSION}")
    for package, use in (
        ("pyspark", "builds on Spark and the metastore for trials"),
        ("trino", "the demo and for --trino"),
    ):
        yield _package(package, use)
    for release, use in ((17, "Spark and the metastore"), (25, "Trino and its connector")):
        yield run_check(f"JDK {release}", partial(_jdk, release, use))
    maven = shutil.which("mvn")
    if maven is None:
        yield Diagnostic(
            "Maven",
            "warning",
            "mvn is not on the path",
            "install Maven 3.8+, or build the plugin with --from-server",
        )
    else:
        yield Diagnostic("Maven", "ok", "found")
    named = None if table is None or is_location(table) else table
    needed = named is not None
    found = run_check("metastore", lambda: _metastore(config), "error" if needed else "warning")
    yield found
    yield run_check("planner", lambda: _planner(config, named))
    if trino is not None:
        yield run_check("Trino", lambda: _trino(trino), "error")
    hooked_plans = None if hive is None else (yield from examine_hive(hive))
    if table is not None and not (needed and found.status == "error"):  # all would say the same
        indexed = run_check(f"index of {table}", lambda: _index(config, table), "error")
        yield indexed
        yield from _store(config, table)
        if not is_location(table):
            if nested := describe_nested(config, table):
                yield Diagnostic(f"subdirectories of {table}", "warning", nested, REMEDY)
            yield from examine_record(config, table)
            yield from _left(config, table)
            hooks = examine_hooks(config, table, hooked_plans)
            yield from (each for each in hooks if each.detail != indexed.detail)


def _left(config: Config, table: str) -> Iterator[Diagnostic]:
    """Files in directories that the table was published from, and that no engine reads."""
    try:
        found = list_left_files(config, table)
    except BridgeError:  # told by other checks
        return
    for each in found:
        first, *rest = lines(each)
        yield Diagnostic(f"{LEFT_FILES} {table}", "warning", first, " ".join(map(str.strip, rest)))


def _package(name: str, use: str) -> Diagnostic:
    try:
        return Diagnostic(name, "ok", version(name))
    except PackageNotFoundError:
        return Diagnostic(name, "ok", f"not installed; needed for {use} only")


def _jdk(release: int, use: str) -> Diagnostic:
    jdk = find_jdk(release)
    return Diagnostic(f"JDK {release}", "ok", f"{jdk.version}, for {use}")


def _metastore(config: Config) -> Diagnostic:
    with metastore_of(config) as client:
        found = client.get_version()
        return Diagnostic("metastore", "ok", f"{config.text('metastore.uri')}, version {found}")


def _planner(config: Config, table: str | None) -> Diagnostic:
    endpoint = f"{config.text('service.host')}:{config.text('service.port')}"
    with PlannerClient(endpoint, timeout=5.0) as client:
        health = client.health()
        failure = _ask_metastore(config, client, table)
    if health.version != VERSION:
        return Diagnostic(
            "planner",
            "warning",
            f"{endpoint} runs version {health.version}, this is {VERSION}",
            "restart it with `skipbridge serve`",
        )
    if failure is not None:
        return Diagnostic(
            "planner",
            "warning",
            f"{endpoint} runs, but {failure}",
            "start `skipbridge serve` with the right metastore.uri, or start that metastore",
        )
    return Diagnostic("planner", "ok", f"{endpoint}, {health.open_plans} plans open")


def _ask_metastore(config: Config, client: PlannerClient, table: str | None) -> str | None:
    """What is wrong with the planner's metastore: it is away, or lacks a table that ours has."""
    try:
        if table is None:
            client.call("list_schemas", PROTOCOL)
            return None
        catalog, name = resolve(config, table, storage_of(config))
        client.call("get_table", name.schema, name.table, "hive", "", "", PROTOCOL)
    except (SchemaNotFound, TableNotFound):
        with suppress(BridgeError):  # told by other checks
            catalog.table(name)
            return f"its metastore is another than this command's, and has no table {table}"
    except UserError:  # it is about the table, and told by other checks
        pass
    except BridgeError as e:
        return f"it cannot ask its metastore: {e.message}"
    return None


def _trino(address: str) -> Diagnostic:
    trino = trino_client()
    host, port = parse_address(address, "host:port, mostly port 8080")
    connection = trino.dbapi.connect(host=host, port=port, user="skipbridge")
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT node_version FROM system.runtime.nodes WHERE coordinator")
    except trino.exceptions.TrinoConnectionError as e:
        log.debug("no Trino", exc_info=True)
        raise TrinoUnavailable(
            f"no Trino answers at {address}", "start it, or check host and port"
        ) from e
    running = str(cursor.fetchall()[0][0])
    if running not in supported_versions():
        return Diagnostic(
            "Trino",
            "error",
            f"{address} is version {running}",
            f"the connector is built for {', '.join(supported_versions())}",
        )
    cursor.execute(
        "SELECT catalog_name FROM system.metadata.catalogs WHERE connector_name = 'skipbridge'"
    )
    catalogs = [row[0] for row in cursor.fetchall()]
    if not catalogs:
        return Diagnostic(
            "Trino",
            "warning",
            f"{address}, version {running}, has no catalog of the skipbridge connector",
            f"skipbridge plugin build --trino-version {running}",
        )
    return Diagnostic("Trino", "ok", f"{address}, version {running}, catalog {', '.join(catalogs)}")


def _store(config: Config, table: str) -> Iterator[Diagnostic]:
    """Tries the object store of an index; a table that cannot be opened is told by other checks."""
    try:
        catalog, name = resolve(config, table, storage_of(config))
        root = index_root(config, catalog.table(name))
    except BridgeError:
        root = canonical(absolute_location(table)) if is_location(table) else ""
    if not root or parse(root).scheme in ("file", "hdfs"):
        return

    def tried() -> Diagnostic:
        require_listings(root, storage_options(config))
        return Diagnostic(check, "ok", f"{root}: the store lists what it holds")

    check = f"store of {table}"
    yield run_check(check, tried, "error")


def _index(config: Config, table: str) -> Diagnostic:
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    planner = planner_of(config, catalog, storage)
    try:
        report = explain(
            planner, ScanRequest(name, AlwaysTrue(), freshness="live"), split_settings(config)
        )
    finally:
        planner.lister.close()
    if report.not_used:
        first = report.not_used[0]
        return Diagnostic(f"index of {table}", "warning", first.detail, remedy_text(first.remedy))
    return Diagnostic(
        f"index of {table}",
        "ok",
        f"generation {report.generation} knows all {report.files_total} files",
    )
