"""``python -m tests.servers COMMAND...``: which JVMs a command starts, and its most memory.

It looks at the command's descendants several times a second, so a JVM that lives for less can be
missed. ``make test`` should start at most two Trinos, one HiveServer2, six metastores, three Sparks
and four Mavens, and hold at most 8 GiB.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import psutil

SECONDS_BETWEEN_LOOKS = 0.3
# What a JVM is, by a part of its command line; the first that matches.
KINDS = {
    "io.trino.server.TrinoServer": "Trino",
    "HiveServer2": "HiveServer2",
    "LoopbackMetastore": "metastore",
    "HiveMetaStore": "metastore",
    "SparkSubmit": "Spark",
    "plexus.classworlds": "Maven",
    "surefire": "tests of Maven",
}


def kind_of(command: str) -> str | None:
    if "org.apache.spark.launcher.Main" in command:  # It only writes the command of the next.
        return None
    return next((kind for part, kind in KINDS.items() if part in command), None)


def main(command: list[str]) -> int:
    process = subprocess.Popen(command)
    kinds: dict[tuple[int, float], str] = {}
    most = 0
    while process.poll() is None:
        memory = 0
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                memory += child.memory_info().rss
                if child.name() == "java" and (kind := kind_of(" ".join(child.cmdline()))):
                    kinds[child.pid, child.create_time()] = kind
            except psutil.Error:
                continue
        most = max(most, memory)
        time.sleep(SECONDS_BETWEEN_LOOKS)
    for kind, number in sorted(Counter(kinds.values()).items()):
        print(f"{kind}: {number}")
    print(f"at most {most / 2**30:.1f} GiB at a time")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
