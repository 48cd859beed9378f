"""A local Spark session with little logging, on loopback, without its own metastore."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.kernel.errors import EnvironmentMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECRET = re.compile(r"secret|passw|token|credential|\bkey\b|sas\b|private", re.IGNORECASE)
"""Names of settings that are kept from the command line."""
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
}


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Delays Ctrl-C until Spark's JVM runs; earlier, PySpark would leave the JVM behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = {
        number: signal.signal(number, lambda given, _: asked.append(given))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():  # PySpark has replaced it
            signal.signal(number, handler or signal.SIG_DFL)
    if asked:
        signal.raise_signal(asked[0])


def open_session(
    master: str = "local[*]",
    *,
    name: str = "skipbridge",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session, or a new one.

    Args:
        master: Spark's master URL.
        settings: Spark settings, which override the defaults above. Other users of this machine
            do not see those that are secrets by their names.

    Errors:
        EnvironmentMissing: no pyspark, or no Java for it.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EnvironmentMissing(
            "pyspark is not installed",
            "pip install 'skipbridge[spark]'; or --local, which uses threads of this process",
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise EnvironmentMissing("Spark needs Java 17 and found none", "install a JDK 17")
    # Executors must run this interpreter. Others may lack the packages or have other versions.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    every = {
        "spark.master": master,
        "spark.app.name": name,
        "spark.driver.extraJavaOptions": quiet,
        **_SETTINGS,
        **(settings or {}),
    }
    builder = SparkSession.builder
    for key, value in every.items():
        builder = builder.config(key, value)
    # PySpark starts its JVM with the settings on the command line, which all users see.
    public = [each for each in every.items() if not _SECRET.search(each[0])]
    try:
        with _undisturbed():
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(public))
            session = builder.getOrCreate()
    except Exception as error:  # many error types if the JVM does not start
        first = str(error).strip().partition("\n")[0]
        raise EnvironmentMissing(
            f"Spark does not start: {first}", "check JAVA_HOME: Spark 4 needs Java 17 or later"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session
