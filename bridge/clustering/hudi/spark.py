"""Runs one CALL of Hudi's procedures by the ``spark-sql`` that the user names."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bridge.kernel.errors import (
    EnvironmentMissing,
    ExternalError,
    InvalidConfiguration,
    InvalidRequest,
)

_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.ui.showConsoleProgress": "false",
}
"""What Hudi needs of Spark, unless the user's command says otherwise."""
_LONGEST = 120_000  # bytes; Linux takes 131,072 in one argument
_LINES = 5
_SPECIAL = re.compile(r"[^A-Za-z0-9_./:,=-]")
_SECRET = re.compile(
    r"([\w.\"-]*(?:secret|passw|token|credential|key|sas|private)[\w.\"-]*\s*[=:]\s*)\S+",
    re.IGNORECASE,
)
_REMEDY = (
    "set hudi.spark to the spark-sql of a Spark 3.5 with Hudi's bundle: \"/opt/spark-3.5.6/bin/"
    'spark-sql --jars B --driver-class-path B", where B is hudi-spark3.5-bundle_2.12-1.2.0.jar'
)


class HudiFailed(ExternalError):
    """Hudi's own service failed, or the process that ran it."""

    code = "HUDI_FAILED"


def call_procedure(command: str, procedure: str, arguments: Mapping[str, str]) -> None:
    """Runs one procedure and waits for it. What it did is read from the timeline, not from here.

    Spark ends with this process, unless that is killed by SIGKILL.

    Args:
        command: the setting `hudi.spark`.

    Errors:
        EnvironmentMissing, InvalidConfiguration: there is no such command.
        InvalidRequest: the arguments are too long.
        HudiFailed.
    """
    words = _spark_sql(command)
    for key, value in _SETTINGS.items():
        if not any(key in word for word in words):
            words += ["--conf", f"{key}={value}"]
    given = ", ".join(f"{name} => {quote(value)}" for name, value in arguments.items())
    text = f"CALL {procedure}({given})"
    if len(text) > _LONGEST:
        raise InvalidRequest(
            f"the CALL of {procedure} has {len(text):,} characters, more than a command may have",
            "plan fewer partitions at a time: --recent N, or --partition",
        )
    with tempfile.TemporaryDirectory(prefix="skipbridge-hudi-") as home:
        log = Path(home, "log")
        status = _run([*words, "-e", text], home, log)
        lines = log.read_text("utf-8", "replace").splitlines()
    if status:
        told = [line.strip() for line in lines if line.strip()]
        told = [line for line in told if not line.startswith(("at ", "... "))]
        said = _SECRET.sub(r"\1***", " | ".join(told[-_LINES:])) or "it printed nothing"
        raise HudiFailed(
            f"Hudi's {procedure} ended with status {status}: {said[:1500]}",
            "the table is as it was, or its clustering is inflight: skipbridge cluster show; "
            "hudi.spark is the command",
        )


def quote(text: str) -> str:
    r"""A literal of Spark's SQL. All that could end it, or be replaced in it, is escaped.

    >>> quote("a'b")
    "'a\\u0027b'"
    """

    def escape(found: re.Match[str]) -> str:
        raw = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))

    return f"'{_SPECIAL.sub(escape, text)}'"


def _spark_sql(command: str) -> list[str]:
    """The words of the command; by default ``SPARK_HOME``'s, else that of the path."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidConfiguration(f"hudi.spark is {command!r}: {error}", _REMEDY) from error
    if not words:
        home = os.environ.get("SPARK_HOME")
        words = [str(Path(home) / "bin" / "spark-sql") if home else "spark-sql"]
    words[0] = str(Path(words[0]).expanduser())
    if shutil.which(words[0]) is None:
        raise EnvironmentMissing(f"Hudi's clustering needs Spark: no program {words[0]}", _REMEDY)
    return words


def _run(words: Sequence[str], home: str, log: Path) -> int:
    """Args: home: where Spark's Derby, which nobody needs, may write."""
    options = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Dderby.system.home={home}"
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": options.strip()}
    with _exit_on_sigterm(), log.open("wb") as out:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            return child.wait()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


@contextlib.contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM end this process by an exception, where it would end it at once."""
    at_once = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not at_once or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
