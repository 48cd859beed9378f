"""What a user types first on a table of small files: ``cluster run t --now --by date``.

39,000 files of 77 rows, in the order of time, in one directory and in 30 partitions. The command is
a process of its own, as a user starts it; its memory is that of the largest process of it, Spark's
JVM included.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from bridge.app.api.session import Session
from bridge.kernel.config import Config
from tests.benchmark import data
from tests.benchmark.clustering_data import linked
from tests.benchmark.figures import Figure, timed

_WAYS: dict[str, tuple[str, ...]] = {"threads": ("--local",), "Spark": ()}
_PARTITIONS = 30


def run() -> list[Figure]:
    return _measured(data.SMALL_FILES)


def quick() -> list[Figure]:
    return _measured(400)


def _measured(count: int) -> list[Figure]:
    source = data.events(count)
    ways = [(name, local, parts) for name, local in _WAYS.items() for parts in (0, _PARTITIONS)]
    figures: list[Figure] = []
    for name, local, parts in ways:
        target = data.root() / f"packing-{name}-{parts}"
        table = str(_partitioned(source, target, parts) if parts else linked(source, target))
        where = f"{name}, {parts} partitions" if parts else name
        indexed = timed(lambda table=table: _bridge("index", "build", table, "--local"))  # type: ignore[misc]
        words = ("cluster", "run", table, "--now", "--by", "date", *local)
        seconds = timed(lambda words=words: _bridge(*words))  # type: ignore[misc]
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        again = timed(lambda words=words: _bridge(*words))  # type: ignore[misc]
        files = _read(table)
        figures += [
            Figure(f"{where}: files that readers open", len(files), "", "1 a partition"),
            Figure(f"{where}: index build", indexed),
            Figure(f"{where}: cluster run --now", seconds, note=f"{count * data.EVENTS:,} rows"),
            Figure(f"{where}: memory", memory, "MiB", note="of the largest process up to then"),
            Figure(f"{where}: a second run", again, note="nothing is worth a rewrite"),
        ]
        shutil.rmtree(target)
    return figures


def _partitioned(source: Path, target: Path, partitions: int) -> Path:
    """The same files, as many in each partition."""
    shutil.rmtree(target, ignore_errors=True)
    files = sorted(source.glob("*.parquet"))
    for i, file in enumerate(files):
        directory = target / f"part={i * partitions // len(files):02}"
        directory.mkdir(parents=True, exist_ok=True)
        os.link(file, directory / file.name)
    return target


def _bridge(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bridge", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)


def _read(table: str) -> list[str]:
    with Session(Config()) as session:
        return session.table(table).scan().files()["path"].to_pylist()  # type: ignore[no-any-return]
