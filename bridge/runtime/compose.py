"""Opens storage, catalog, index and planner as the settings say.

A room's own settings are read by the module where its command begins.
"""

from __future__ import annotations

import difflib
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.index.generations.store import IndexStore
from bridge.index.reading.local_cache import CacheLimits
from bridge.index.reading.open_files import OpenFiles
from bridge.kernel.config import Config, cache_dir
from bridge.kernel.errors import InvalidConfiguration, InvalidRequest, TableNotFound
from bridge.planner.index_view import IndexViews
from bridge.planner.open_snapshots import OpenSnapshots
from bridge.planner.planner import Planner
from bridge.planner.predicate_log import PredicateLog
from bridge.planner.splits.coalesce import SplitSettings
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.freshness import parse_freshness
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Catalog, CatalogTable, TableName

# The metastore's client takes 0.1 s to import; a directory needs none.
if TYPE_CHECKING:
    from bridge.metastore.catalog import HiveCatalog
    from bridge.metastore.client import MetastoreClient

CHECK_INTERVAL = 1.0
"""Seconds between two looks of a planner for a newer generation of an index: one small listing."""
INDEX_ROOT_PROPERTY = "skipbridge.index_root"


def storage_options(config: Config) -> dict[str, str]:
    """Options of the storage port; credentials come from the environment, not from here.

    Errors:
        InvalidConfiguration: ``storage.timeout`` leaves no time at all.
    """
    timeout = config.seconds("storage.timeout")
    if not timeout:
        raise InvalidConfiguration(
            f"storage.timeout is {config.text('storage.timeout')!r}: no answer comes so soon",
            "give a time such as 60s",
        )
    options = {
        "endpoint": config.text("storage.endpoint"),
        "region": config.text("storage.region"),
        "allow_http": config.text("storage.allow_http"),
        "timeout": str(timeout),
        "connections": str(config.integer("storage.connections")),
    }
    return {k: v for k, v in options.items() if v not in ("", "false")}


def storage_of(config: Config) -> Storage:
    return open_storage(options=storage_options(config))


def metastore_of(config: Config, *, timeout: float = 0.0) -> MetastoreClient:
    """A client of the metastore.

    Args:
        timeout: minimum call timeout in seconds, whatever the settings say: writing many
            partitions takes longer than a query would wait.
    """
    from bridge.metastore.calls import MetastoreSettings
    from bridge.metastore.client import MetastoreClient
    from bridge.metastore.security import Security

    settings = MetastoreSettings(
        call_timeout=max(timeout, config.seconds("metastore.timeout")),
        retry_deadline=min(5.0, config.seconds("metastore.timeout")),
        security=Security(
            tls=config.flag("metastore.tls"),
            ca=config.text("metastore.tls_ca"),
            certificate=config.text("metastore.tls_certificate"),
            key=config.text("metastore.tls_key"),
            mechanism=config.text("metastore.authentication"),
            user=config.text("metastore.user"),
            password_file=config.text("metastore.password_file"),
            principal=config.text("metastore.kerberos_principal"),
        ),
    )
    return MetastoreClient(config.text("metastore.uri"), settings)


def hive_catalog_of(config: Config) -> HiveCatalog:
    from bridge.metastore.catalog import HiveCatalog

    return HiveCatalog(metastore_of(config))


def cache_catalog(config: Config, catalog: HiveCatalog) -> Catalog:
    """The catalog for a process that plans many queries.

    Errors:
        InvalidConfiguration: metastore.notifications has an unknown value.
    """
    from bridge.metastore.cache import CachedCatalog

    capacity = config.integer("metastore.cache")
    setting = config.setting("metastore.notifications")
    if setting.text not in ("auto", "always"):
        raise InvalidConfiguration(
            f"metastore.notifications is {setting.text!r} (from {setting.origin})",
            "give auto or always",
        )
    if not capacity:
        return catalog
    return CachedCatalog(catalog, capacity, vouched=setting.text == "always")


def is_location(table: str) -> bool:
    """Whether a TABLE argument is a directory and not ``schema.table``."""
    return "/" in table or table in (".", "..")


def resolve(config: Config, table: str, storage: Storage) -> tuple[Catalog, TableName]:
    """The catalog and name of a TABLE argument: ``schema.table``, ``table`` or a directory.

    Errors:
        InvalidRequest: the argument is malformed, or a file.
        TableNotFound: the directory does not exist.
    """
    if is_location(table):
        location = canonical(absolute_location(table))
        check_directory(location)
        directory = DirectoryCatalog(storage, location)
        return directory, directory.name
    schema, dot, name = table.rpartition(".")
    if not name or (dot and not schema) or "." in schema:
        raise InvalidRequest(
            f"not a table: {table!r}", "give schema.table, or a directory with a slash: ./flights"
        )
    return hive_catalog_of(config), TableName((schema or "default").lower(), name.lower())


def absolute_location(text: str) -> str:
    """A location as a user writes it: a URI, or a path relative to the working directory."""
    if ":" in text.split("/")[0]:
        return text
    path = Path(text)
    return str(path.resolve() if ".." in path.parts else path.absolute())


def check_directory(location: str) -> None:
    """Refuses a local path that is missing or a file; storage would list it as empty.

    Args:
        location: canonical URI.

    Errors:
        TableNotFound, InvalidRequest.
    """
    if not location.startswith("file:///"):
        return
    path = Path(location.removeprefix("file://"))
    try:
        directory = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, UnicodeEncodeError):
        near = difflib.get_close_matches(path.name, _directories(path.parent), n=1)
        raise TableNotFound(
            f"there is no directory {path}",
            f"did you mean {path.parent / near[0]}?" if near else "check the path",
        ) from None
    except OSError:
        return  # listing will report the cause
    if not directory:
        raise InvalidRequest(
            f"{path} is a file, not a directory",
            f"give the directory that holds the table's files: {path.parent}",
        )


def _directories(parent: Path) -> list[str]:
    try:
        return [p.name for p in parent.iterdir() if p.is_dir()]
    except OSError:
        return []


def index_root(config: Config, table: CatalogTable) -> str:
    """Root of a table's index: its own property, the configured root, or below the table."""
    recorded = table.properties.get(INDEX_ROOT_PROPERTY)
    if recorded:
        return canonical(recorded)
    configured = config.text("index.root")
    if configured:
        return f"{canonical(absolute_location(configured))}/{table.name.schema}/{table.name.table}"
    return f"{table.location}/.skipbridge"


def index_store(config: Config, storage: Storage, table: CatalogTable) -> IndexStore:
    return IndexStore(storage, index_root(config, table))


def local_index_cache(config: Config) -> Path:
    configured = config.text("planner.cache_dir")
    return Path(configured) if configured else cache_dir() / "index"


def index_limits(config: Config) -> CacheLimits:
    """Limits on the index data that this machine caches."""
    memory = config.size("planner.index_memory")
    return CacheLimits(
        config.size("planner.cache_bytes"),
        memory,
        open_files=_open_files(config.integer("planner.open_files"), memory),
    )


@cache
def _open_files(most: int, memory: int) -> OpenFiles:
    """One for all planners of a process."""
    return OpenFiles(most, memory)


def planner_of(config: Config, catalog: Catalog, storage: Storage) -> Planner:
    views = IndexViews(
        lambda table: index_store(config, storage, table),
        local_index_cache(config),
        CHECK_INTERVAL,
        index_limits(config),
    )
    lister = DirectoryLister(
        storage,
        recursive=config.flag("planner.recursive"),
        ignore_absent=config.flag("planner.ignore_absent_partitions"),
    )
    return Planner(
        catalog,
        views,
        lister,
        freshness=parse_freshness(config.text("planner.freshness")),
        predicate_log=predicate_log_of(config),
        snapshots=OpenSnapshots(most_files=config.integer("planner.snapshot_files")),
    )


def predicate_log_of(config: Config) -> PredicateLog | None:
    path = config.text("planner.predicate_log")
    if not path:
        return None
    return PredicateLog(
        Path(path),
        config.size("planner.predicate_log_bytes"),
        literals=config.flag("planner.predicate_log_literals"),
    )


def split_settings(config: Config) -> SplitSettings:
    return SplitSettings(
        target_bytes=config.size("splits.target_bytes"),
        open_cost=config.size("splits.open_cost"),
        max_files=config.integer("splits.max_files"),
    )
