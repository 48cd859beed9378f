"""Calls Hudi's own table services; runs as a script in a Python that has PySpark 3.5.

``python driver.py REQUEST REPLY``: two files of JSON. It imports nothing of this package,
which that Python need not have. It ends when its standard input ends, so that it never outlives
the process that started it.

A request holds ``command`` (schedule, run or cancel), ``base``, ``instant``, ``options`` (of Hudi's
write client), ``extra`` (kept in the requested instant) and ``spark`` (settings). The reply is
``{"result": ...}`` or ``{"error": ..., "trace": ...}``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

_SECRET = re.compile(r"secret|passw|token|credential|\bkey\b|sas\b|private", re.IGNORECASE)


def main() -> int:
    request_file, reply_file = sys.argv[1:3]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    request = json.loads(Path(request_file).read_text("utf-8"))
    Path(request_file).unlink()  # it may hold secrets, and this process may be killed
    reply: dict[str, Any]
    try:
        reply = {"result": _answer(request)}
    except Exception as error:
        reply = {"error": _reason(error), "trace": traceback.format_exc()}
    draft = Path(reply_file + ".tmp")
    draft.write_text(json.dumps(reply), "utf-8")
    draft.replace(reply_file)
    return 0


def _end_with_parent() -> None:
    while os.read(0, 4096):  # not sys.stdin, whose lock a thread must not hold at the end
        pass
    os._exit(3)  # Spark's JVM ends when this process does


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    # PySpark starts its JVM with the settings on the command line, which all users see.
    public = [each for each in request["spark"].items() if not _SECRET.search(each[0])]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(public))
    builder = SparkSession.builder
    for key, value in request["spark"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        client = _client(spark, request["base"], request["options"])
        try:
            return _COMMANDS[request["command"]](spark.sparkContext._jvm, client, request)
        finally:
            client.close()
    finally:
        spark.stop()


def _client(spark: Any, base: str, options: dict[str, str]) -> Any:
    """Hudi's write client with the table's own properties, as its procedures make it."""
    jvm = spark.sparkContext._jvm
    chosen = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(_java_map(jvm, options))
    nothing = jvm.scala.Option.apply(None)
    make = jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient
    return make(spark._jsparkSession, base, chosen, nothing)


def _java_map(jvm: Any, values: dict[str, str]) -> Any:
    made = jvm.java.util.HashMap()
    for key, value in values.items():
        made.put(key, value)
    return made


def _schedule(jvm: Any, client: Any, request: dict[str, Any]) -> dict[str, Any]:
    extra = jvm.org.apache.hudi.common.util.Option.of(_java_map(jvm, request["extra"]))
    instant = client.scheduleClustering(extra)
    return {"instant": instant.get() if instant.isPresent() else None}


def _run(_: Any, client: Any, request: dict[str, Any]) -> dict[str, Any]:
    """A clustering that died is rolled back first by Hudi, and done anew."""
    done = client.cluster(request["instant"]).getCommitMetadata()
    if not done.isPresent():
        return {"rows": 0}
    return {"rows": done.get().fetchTotalRecordsWritten()}


def _cancel(_: Any, client: Any, request: dict[str, Any]) -> dict[str, Any]:
    return {"rolled_back": bool(client.rollback(request["instant"]))}


_COMMANDS = {"schedule": _schedule, "run": _run, "cancel": _cancel}


def _reason(error: BaseException) -> str:
    """The causes of a Java exception, each in one line; else the error itself."""
    thrown = getattr(error, "java_exception", None)
    said: list[str] = []
    while thrown is not None and len(said) < 10:
        text = str(thrown.toString()).splitlines()[0][:400]
        if text not in said:
            said.append(text)
        thrown = thrown.getCause()
    return " | ".join(said) or f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
