"""``skipbridge metastore``: a Hive Metastore for trials."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, say, settings
from bridge.kernel.config import Config, cache_dir
from bridge.kernel.errors import PortInUse
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import recorded_port, stop_recorded

_EMBEDDED, _FROM_MAVEN = "2.3.10", "4.0.1"


def _directory(data_dir: Path | None, release: str = _EMBEDDED) -> Path:
    """Each release has its own: their databases are not of one form."""
    if data_dir is not None:
        return data_dir
    return cache_dir() / ("metastore" if release == _EMBEDDED else f"metastore-{release}")


@click.group(cls=Verbs)
def metastore() -> None:
    """Start and stop a Hive Metastore for trials, not for production."""


@metastore.command("start")
@click.option(
    "--hive",
    "release",
    type=click.Choice([_EMBEDDED, _FROM_MAVEN]),
    default=_EMBEDDED,
    show_default=True,
    help="Its release. Hive 4 needs 4.0.1, which comes from Maven (120 MB, the first time).",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9083,
    show_default=True,
    help="0 selects a free one.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of its Derby database and log. [default: in the user's cache]",
)
@click.option(
    "--warehouse",
    metavar="LOCATION",
    help="Directory or URI, such as hdfs://host:port/t, of tables without their own location. "
    "[default: in the data directory]",
)
@click.option(
    "--s3",
    is_flag=True,
    help="Take locations on S3: get Hadoop's S3 client from Maven (14 MB, the first time).",
)
@click.option(
    "--azure",
    is_flag=True,
    help="Take locations on Azure: get Hadoop's Azure client from Maven (1 MB, the first time).",
)
@click.option("--detach", is_flag=True, help="Leave it running; stop it with `metastore stop`.")
@settings("storage.endpoint", "storage.region", "storage.allow_http")
def start(
    config: Config,
    release: str,
    port: int,
    data_dir: Path | None,
    warehouse: str | None,
    s3: bool,
    azure: bool,
    detach: bool,
) -> None:
    """Start a metastore on loopback, and print its address.

    Needs a JDK of version 17 or newer, and PySpark, whose jars hold 2.3.10, or Maven for 4.0.1. It
    runs until Ctrl-C, or with --detach until `skipbridge metastore stop`; its tables are kept in
    --data-dir. With --s3 or --azure it reaches buckets or containers as skipbridge does: by the
    storage settings and the keys in the environment.

    \b
    export SKIPBRIDGE_METASTORE_URI=$(skipbridge metastore start --detach)
    export SKIPBRIDGE_METASTORE_URI=$(skipbridge metastore start --hive 4.0.1 --detach)
    """
    if release != _EMBEDDED and (s3 or azure):
        raise click.UsageError(
            f"--s3 and --azure are for the metastore {_EMBEDDED}; leave out --hive {release}"
        )
    clients = [client(config) for client, asked in ((_s3, s3), (_azure, azure)) if asked]
    directory = _directory(data_dir, release).absolute()
    _refuse_second(directory)
    server = _START[release](
        MetastoreSpec(
            directory=directory,
            warehouse=_warehouse(warehouse),
            port=port,
            properties={key: text for found, _ in clients for key, text in found.items()},
            class_path=tuple(jar for _, jars in clients for jar in jars),
        )
    )
    say(f"metastore ready; log {server.log}")
    emit(f"thrift://127.0.0.1:{server.port}")
    if detach:
        return
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    while not done.wait(1.0):
        if not server.alive:
            say(f"the metastore ended; see {server.log}")
            raise SystemExit(1)
    server.stop()


_START = {_EMBEDDED: start_embedded_metastore, _FROM_MAVEN: start_metastore_401}


def _warehouse(given: str | None) -> Path | str | None:
    """A URI as it is, and a directory as a path."""
    if not given or "://" in given:
        return given or None
    directory = Path(given).absolute()
    if directory.exists() and not directory.is_dir():
        raise click.BadParameter(f"{given} is a file", param_hint="--warehouse")
    return directory


def _refuse_second(directory: Path) -> None:
    """A second one on the same Derby database would wait for its lock, and then fail."""
    for record in sorted(directory.glob("*.pid")):
        port = recorded_port(record)
        if port is not None:
            raise PortInUse(
                f"a metastore runs from {directory} already, at thrift://127.0.0.1:{port}",
                "use that one, or stop it first to start it with other options: "
                "skipbridge metastore stop",
            )


def _s3(config: Config) -> tuple[dict[str, str], tuple[Path, ...]]:
    from bridge.servers.s3_client import s3_class_path, s3_properties  # --help needs no Arrow

    properties = s3_properties(
        config.text("storage.endpoint"),
        config.text("storage.region"),
        allow_http=config.flag("storage.allow_http"),
    )
    return properties, s3_class_path()


def _azure(config: Config) -> tuple[dict[str, str], tuple[Path, ...]]:
    from bridge.servers.azure_client import azure_class_path, azure_properties

    properties = azure_properties(allow_http=config.flag("storage.allow_http"))
    return properties, azure_class_path()


@metastore.command("stop")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory that it was started with.",
)
def stop(data_dir: Path | None) -> None:
    """Stop a metastore that was started with --detach."""
    releases = (_EMBEDDED, _FROM_MAVEN) if data_dir is None else (_EMBEDDED,)
    directories = [_directory(data_dir, release).absolute() for release in releases]
    found = [record for each in directories for record in sorted(each.glob("*.pid"))]
    stopped = [record for record in found if stop_recorded(record)]
    places = " or ".join(map(str, directories))
    elsewhere = "" if data_dir else "; --data-dir names the one that it was started with"
    say("stopped" if stopped else f"no metastore is running from {places}{elsewhere}")
