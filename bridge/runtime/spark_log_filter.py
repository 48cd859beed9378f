"""Keeps Spark's startup messages off the terminal, and passes everything else through."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Whole lines; each is known to be irrelevant to the job.
_CHATTER = re.compile(
    rb"WARNING: Using incubator modules: .*"
    rb"|Setting (default|Spark) log level to .*"
    rb"|To adjust logging level use sc\.setLogLevel.*"
    rb"|Using Spark's default log4j profile: .*"
    rb"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN (NativeCodeLoader|Utils): .*"
)


@contextmanager
def filter_spark_log() -> Iterator[None]:
    """Drops known startup messages from the stderr of processes started in this block.

    Those processes keep the filtered stderr for life; this process gets its own back at the end.
    Only the file descriptor of stderr is replaced, because PySpark passes that to its JVM.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_filter, args=(reader, os.dup(kept)), daemon=True).start()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _filter(reader: int, target: int) -> None:
    with os.fdopen(reader, "rb") as lines, os.fdopen(target, "wb", buffering=0) as out:
        for line in lines:
            if not _CHATTER.fullmatch(line.rstrip(b"\r\n")):
                out.write(line)
