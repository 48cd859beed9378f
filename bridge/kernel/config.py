"""Settings. Precedence: flag, environment, file, default.

The setting ``metastore.uri`` is the flag ``--metastore-uri``, the environment variable
``SKIPBRIDGE_METASTORE_URI``, and ``uri`` in the table ``[metastore]`` of the TOML file. An unknown
key is an error that names the nearest known key.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir, user_config_dir

from bridge.kernel.errors import InvalidConfiguration, InvalidRequest
from bridge.kernel.types import whole_number

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*(|B|KB|KIB|MB|MIB|GB|GIB)", re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*(ms|s|m|h|d)")
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "KIB": 2**10,
    "MB": 10**6,
    "MIB": 2**20,
    "GB": 10**9,
    "GIB": 2**30,
}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Option:
    """One setting.

    Attributes:
        key: dotted name.
        default: as text, as a user would write it.
        kind: ``text``, ``int``, ``size`` (bytes), ``time`` (seconds) or ``bool``.
        help: one sentence.
        least, most: bounds of an integer.
    """

    key: str
    default: str
    kind: str
    help: str
    least: int = 0
    most: int | None = None

    @property
    def bounds(self) -> str:
        """For messages and docs; empty if there are none."""
        if self.kind != "int" or (self.least, self.most) == (0, None):
            return ""
        return f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"


_PORTS = 65_535
OPTIONS: tuple[Option, ...] = (
    Option(
        "metastore.uri",
        "thrift://127.0.0.1:9083",
        "text",
        "Hive Metastore; several separated by commas are tried in turn",
    ),
    Option("metastore.timeout", "20s", "time", "longest wait for one metastore call"),
    Option(
        "sync.drop_after",
        "1h",
        "time",
        "how long a partition must have had no data before it is dropped",
    ),
    Option("sync.tables_at_once", "4", "int", "concurrent tables in sync --all", least=1),
    Option(
        "metastore.cache",
        "1000000",
        "int",
        "partition names that a planner caches; a cached partition counts as four; 0: none",
    ),
    Option(
        "metastore.notifications",
        "auto",
        "text",
        "auto asks each address whether it records events; always vouches for every writer",
    ),
    Option("metastore.tls", "false", "bool", "use TLS for the metastore"),
    Option(
        "metastore.tls_ca", "", "text", "PEM file of its certificate authority; empty: the system's"
    ),
    Option(
        "metastore.tls_certificate",
        "",
        "text",
        "PEM file of the client certificate, if the metastore requires one",
    ),
    Option(
        "metastore.tls_key", "", "text", "PEM file of the client key; empty: the certificate's file"
    ),
    Option("metastore.authentication", "none", "text", "SASL: none, plain or kerberos"),
    Option("metastore.user", "", "text", "user for plain"),
    Option("metastore.password_file", "", "text", "file that holds only the password"),
    Option(
        "metastore.kerberos_principal", "", "text", "principal of the metastore: hive/_HOST@REALM"
    ),
    Option(
        "index.root",
        "",
        "text",
        "location of indexes and of the states of syncs; empty: .skipbridge under each table",
    ),
    Option(
        "planner.freshness",
        "live",
        "text",
        "how new the file set is: live, cached(60s), snapshot or fresh; "
        "a table property skipbridge.freshness wins",
    ),
    Option(
        "planner.ignore_absent_partitions",
        "false",
        "bool",
        "treat a registered partition with a missing directory as empty; Hive always does",
    ),
    Option("planner.recursive", "false", "bool", "read files in subdirectories of a partition"),
    Option(
        "planner.snapshot_files",
        "2000000",
        "int",
        "most files and partitions that open snapshots list in total; the oldest are closed first",
    ),
    Option(
        "planner.cache_dir",
        "",
        "text",
        "local copies of indexes; empty: the user's cache directory",
    ),
    Option("planner.cache_bytes", "8GiB", "size", "most bytes of indexes kept on local disk"),
    Option(
        "planner.index_memory",
        "1GiB",
        "size",
        "most bytes of columns that all open indexes of a planner keep in memory",
    ),
    Option(
        "planner.open_files",
        "0",
        "int",
        "most files that all open indexes keep open or mapped; 0: a quarter of the limit on "
        "descriptors (ulimit -n)",
    ),
    Option(
        "planner.predicate_log",
        "",
        "text",
        "file in which planners log predicates, for `index report`; empty: none",
    ),
    Option("planner.predicate_log_bytes", "16MiB", "size", "most bytes of that log"),
    Option("planner.predicate_log_literals", "false", "bool", "log predicates with their values"),
    Option(
        "splits.target_bytes", "128MiB", "size", "cost up to which files are combined in one split"
    ),
    Option(
        "splits.open_cost",
        "64KiB",
        "size",
        "cost of opening a file, as bytes that could be read in that time",
    ),
    Option("splits.max_files", "256", "int", "most files in one split", least=1),
    Option(
        "clustering.memory",
        "1GiB",
        "size",
        "rows one rewrite holds (more go to temporary files), or one comparison of rows",
    ),
    Option("clustering.verify", "true", "bool", "read new files back and compare checksums"),
    Option(
        "clustering.settled",
        "24h",
        "time",
        "time for which nothing in a partition may have changed, for it to be published",
    ),
    Option(
        "hudi.spark",
        "",
        "text",
        "command of a spark-sql 3.5 with Hudi's bundle, for Hudi's own clustering; empty: that of "
        "SPARK_HOME, else of the path",
    ),
    Option("service.host", "127.0.0.1", "text", "address the planner listens on; loopback only"),
    Option("service.port", "9527", "int", "port the planner listens on", most=_PORTS),
    Option(
        "service.processes",
        "0",
        "int",
        "planner processes behind the port; 0: one for every four cores, at most 4",
    ),
    Option(
        "service.metrics_port",
        "0",
        "int",
        "Prometheus metrics over HTTP on loopback; 0: none",
        most=_PORTS,
    ),
    Option(
        "service.http_port",
        "0",
        "int",
        "port of the Iceberg REST catalog, for Spark and PyIceberg; on service.host; 0: none",
        most=_PORTS,
    ),
    Option(
        "service.http_hosts",
        "localhost,127.0.0.1",
        "text",
        "names by which clients reach that port; a request with another Host header is refused",
    ),
    Option(
        "service.http_token_file",
        "",
        "text",
        "file that holds only the bearer token of its clients; empty: none is asked for",
    ),
    Option(
        "service.http_schemes",
        "",
        "text",
        "schemes of paths that clients are told instead of the planner's, such as s3=s3a",
    ),
    Option("service.http_max_body", "16MiB", "size", "largest request to it, such as a filter"),
    Option(
        "service.http_requests",
        "32",
        "int",
        "requests to it at work; further ones are told to come again (429), so that Trino and Hive "
        "find threads",
        least=1,
    ),
    Option("service.http_timeout", "5m", "time", "longest time for one answer of it"),
    Option(
        "service.http_footers",
        "200000",
        "int",
        "most Parquet footers that one plan for it reads for the first time",
    ),
    Option("service.max_plans", "1000", "int", "concurrently open plans", least=1),
    Option("service.max_frame_bytes", "64MiB", "size", "largest request or reply"),
    Option(
        "storage.endpoint",
        "",
        "text",
        "endpoint of an S3-compatible store; credentials come from the environment",
    ),
    Option("storage.region", "", "text", "region of the object store"),
    Option("storage.allow_http", "false", "bool", "use plain HTTP for that endpoint (tests)"),
    Option(
        "storage.connections",
        "128",
        "int",
        "requests to object stores that a process has under way at once; others wait",
        least=1,
    ),
    Option(
        "storage.timeout",
        "60s",
        "time",
        "longest wait for one response of an object store; a late request is retried for up to two "
        "minutes",
    ),
)
# Environment variables that are not settings: files, JDKs, and options of the tests.
_OTHER_VARIABLES = (
    "SKIPBRIDGE_CONFIG",
    "SKIPBRIDGE_CACHE",
    "SKIPBRIDGE_MAVEN_REPOSITORY",
    "SKIPBRIDGE_SKIPPED",
)
_OTHER_FAMILIES = re.compile(r"SKIPBRIDGE_(JDK\d+|BENCH_\w+)")
_BY_KEY = {option.key: option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its origin: ``flag``, a variable's name, a file's path, or ``default``."""

    text: str
    origin: str


class Config:
    """All settings of one process. Immutable."""

    def __init__(self, settings: Mapping[str, Setting] | None = None) -> None:
        self._settings = dict(settings or {})

    def setting(self, key: str) -> Setting:
        option = _option(key, "this program")
        return self._settings.get(key, Setting(option.default, "default"))

    def text(self, key: str) -> str:
        return self.setting(key).text

    def integer(self, key: str) -> int:
        setting = self.setting(key)
        value, option = whole_number(setting.text), _BY_KEY[key]
        if value is None:
            raise _invalid(key, setting, "a whole number")
        if value < option.least or (option.most is not None and value > option.most):
            bounds = option.bounds or f"at least {option.least}"
            raise _invalid(key, setting, f"a whole number, {bounds}")
        return value

    def size(self, key: str) -> int:
        setting = self.setting(key)
        return parse_size(setting.text, key, setting.origin)

    def seconds(self, key: str) -> float:
        setting = self.setting(key)
        return parse_seconds(setting.text, key, setting.origin)

    def flag(self, key: str) -> bool:
        setting = self.setting(key)
        if setting.text.lower() not in ("true", "false"):
            raise _invalid(key, setting, "true or false")
        return setting.text.lower() == "true"

    def check(self) -> None:
        """Reads every setting once, so that errors appear at start and not at first use."""
        readers = {"int": self.integer, "size": self.size, "time": self.seconds, "bool": self.flag}
        for option in OPTIONS:
            reader = readers.get(option.kind)
            if reader is not None:
                reader(option.key)


def parse_seconds(text: str, key: str = "time", origin: str = "value") -> float:
    """Parses a duration such as ``250ms``, ``10s``, ``5m``, ``1h`` or ``7d`` to seconds."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise _invalid(key, Setting(text, origin), "a time such as 250ms, 10s or 5m")
    return float(match[1]) * _SECONDS[match[2]]


def parse_size(text: str, key: str = "size", origin: str = "value") -> int:
    """Parses a size such as ``64KiB`` or ``1GiB`` to bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise _invalid(key, Setting(text, origin), "a size such as 64KiB or 128MiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def parse_address(text: str, example: str = "host:port") -> tuple[str, int]:
    """The host and the port of an address. Errors: InvalidRequest."""
    host, _, digits = text.rpartition(":")
    port = whole_number(digits)
    if not host or port is None or not 0 < port < 65536:
        raise InvalidRequest(f"not an address: {text!r}", f"give {example}")
    return host, port


def config_file() -> Path:
    """The default settings file. It need not exist."""
    return Path(
        os.environ.get("SKIPBRIDGE_CONFIG") or Path(user_config_dir("skipbridge")) / "config.toml"
    )


def cache_dir() -> Path:
    """The directory of caches, which can be deleted at any time."""
    return Path(os.environ.get("SKIPBRIDGE_CACHE") or user_cache_dir("skipbridge"))


def load(
    flags: Mapping[str, str | None] | None = None,
    file: Path | None = None,
    *,
    origin: str = "flag",
) -> Config:
    """Reads all settings.

    Args:
        flags: command-line values by key; None if not given.
        file: a TOML file, which must exist. By default `config_file` is read if it exists.
        origin: the origin of ``flags`` in messages.

    Errors:
        InvalidConfiguration: unknown key, wrong value, unreadable file.
    """
    settings: dict[str, Setting] = {}
    path = file or config_file()
    if path.exists():
        settings |= _from_file(path)
    elif file is not None:
        raise InvalidConfiguration(f"no such configuration file: {file}", "check the path")
    for option in OPTIONS:
        variable = variable_of(option.key)
        if variable in os.environ:
            settings[option.key] = Setting(os.environ[variable], variable)
    for key, value in (flags or {}).items():
        if value is not None:
            _option(key, "the command line")
            settings[key] = Setting(value, origin)
    config = Config(settings)
    config.check()
    return config


def variable_of(key: str) -> str:
    """The environment variable of a setting, as SKIPBRIDGE_METASTORE_URI of ``metastore.uri``."""
    return "SKIPBRIDGE_" + key.upper().replace(".", "_")


def unknown_variables() -> list[tuple[str, str | None]]:
    """Environment variables that look like settings but are not, each with the nearest setting.

    They are not an error: Kubernetes sets such variables for a service named skipbridge.
    """
    known = [*(variable_of(o.key) for o in OPTIONS), *_OTHER_VARIABLES]
    found: list[tuple[str, str | None]] = []
    for name in sorted(os.environ):
        if not name.upper().startswith("SKIPBRIDGE_") or name in known:
            continue
        if _OTHER_FAMILIES.fullmatch(name):
            continue
        near = difflib.get_close_matches(name.upper(), known, n=1)
        found.append((name, near[0] if near else None))
    return found


def _from_file(path: Path) -> dict[str, Setting]:
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise InvalidConfiguration(f"cannot read {path}: {e}", "it must be TOML") from e
    found: dict[str, Setting] = {}
    for section, values in document.items():
        if not isinstance(values, dict):
            raise InvalidConfiguration(
                f"{path}: {section!r} stands outside a section", "write [metastore] above uri = ..."
            )
        for name, value in values.items():
            key = f"{section}.{name}"
            _option(key, str(path))
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[key] = Setting(text, str(path))
    return found


def _option(key: str, where: str) -> Option:
    option = _BY_KEY.get(key)
    if option is None:
        near = difflib.get_close_matches(key, _BY_KEY, n=1)
        hint = f"did you mean {near[0]}?" if near else "see skipbridge config show"
        raise InvalidConfiguration(f"unknown setting {key!r} in {where}", hint)
    return option


def _invalid(key: str, setting: Setting, wanted: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"{key} is {setting.text!r} (from {setting.origin})", f"give {wanted}"
    )
