"""Tables to cluster, made once; clustered ones beside them, made by skipbridge and by its peers."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.clustering.commands.run import run, schedule
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.kernel.config import Config, Setting
from bridge.servers.maven import class_path, parse_artifact
from tests.benchmark.data import root

FILE_BYTES = 16_800_000
PEERS = {
    "delta": "io.delta:delta-spark_2.13:4.0.1",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
}
_PEERS_SPARK = "pyspark==4.0.1"
_SCALE, _FILES = 2.6, 128


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A clustered table: its files, and the seconds that the rewrite took."""

    files: list[Path]
    seconds: float
    directory: Path


def directory() -> Path:
    path = root() / "clustering"
    path.mkdir(exist_ok=True)
    return path


def lineitem_files() -> Path:
    """2.1 GB of lineitem in 128 files as TPC-H orders them: 15.6 million rows.

    Neither compressed nor coded by dictionaries, so that files of as many rows have one size in
    every order of rows.
    """
    made = directory() / "source"
    if len(list(made.glob("*.parquet"))) == _FILES:
        return made
    scratch = directory() / "scratch"
    names = pq.read_schema(_generated(0.01, 1, scratch / "names")[0]).names
    plain = [part for name in names for part in ("--column-encoding", f"{name}=PLAIN")]
    files = _generated(_SCALE, _FILES, scratch / "data", *plain)
    shutil.rmtree(made, ignore_errors=True)
    files[0].parent.rename(made)
    shutil.rmtree(scratch)
    _age(made)
    return made


def _generated(scale: float, parts: int, target: Path, *options: str) -> list[Path]:
    program = Path(sys.executable).with_name("tpchgen-cli")
    layout = ["-c", "UNCOMPRESSED", "--row-group-bytes=128MB", f"--parts={parts}"]
    asked = ["parquet", "-s", str(scale), "--tables=lineitem", f"--output-dir={target}"]
    subprocess.run([program, *asked, *layout, *options], check=True, stdout=subprocess.DEVNULL)
    return sorted(target.rglob("*.parquet"))


def reviews(files: int, rows: int) -> Path:
    """Reviews of products as they arrive: every file holds every category and all the years."""
    made = directory() / f"reviews-{files}-{rows}"
    if (made / "_DONE").exists():
        return made
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    rng = np.random.default_rng(19)
    names = pa.array([f"Category {i:02}" for i in range(43)])
    words = rng.integers(0, 2**62, 4096).tolist()
    for i in range(files):
        count = rows // files
        # A few categories have most of the reviews, and later years more than early ones.
        category = np.minimum(rng.zipf(1.3, count) - 1, 42)
        day = (np.sqrt(rng.random(count)) * 5800).astype(np.int32) + 10_000
        picked = rng.integers(0, len(words), count).tolist()
        table = pa.table(
            {
                "review_id": rng.integers(0, 2**62, count),
                "product_category": names.take(pa.array(category)),
                "star_rating": rng.integers(1, 6, count).astype(np.int32),
                "total_votes": np.minimum(rng.zipf(1.6, count), 10_000).astype(np.int32),
                "review_body": [f"{words[k]} {k * 31 % 977} {words[k - 1]}" for k in picked],
                "review_date": pa.array(day, pa.date32()),
            }
        )
        pq.write_table(table, made / f"part-{i:05}.parquet", store_schema=False)
    _age(made)
    (made / "_DONE").touch()
    return made


def linked(source: Path, target: Path, count: int | None = None) -> Path:
    """A new directory of the same files."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in sorted(source.glob("*.parquet"))[:count]:
        os.link(file, target / file.name)
    return target


def ours(
    spark: object,
    table: Path,
    layout: str,
    columns: Sequence[str],
    settings: dict[str, str],
    target: int = FILE_BYTES,
) -> Rewritten:
    """Clusters a directory by the commands' own functions; the time is that of `cluster run`."""
    config = Config({key: Setting(value, "benchmark") for key, value in settings.items()})
    every = Limits(target, 1 << 50, 1 << 50, 1000, 1)
    made = schedule(config, str(table), Strategy(layout, tuple(columns), "size", every), print)
    started = time.perf_counter()
    report = run(
        config, str(table), made["instant"], spark=spark, progress=lambda done, total: None
    )
    seconds = time.perf_counter() - started
    assert report["state"] == "completed" and not report["rejected"], report
    files = sorted((table / ".skipbridge_clustered").rglob("*-data"))
    assert len(files) == report["new_files"]
    return Rewritten(files, seconds, table)


def peer(name: str, source: Path, columns: Sequence[str], warm: Path) -> Rewritten:
    """The same by Delta Lake's OPTIMIZE or Iceberg's rewrite_data_files, in a warm Spark."""
    target = directory() / f"{name}-{len(columns)}"
    shutil.rmtree(target, ignore_errors=True)
    jars = class_path(parse_artifact(PEERS[name], "org.apache.spark:*", "org.scala-lang:*"))
    done = subprocess.run(
        [
            _peers_python(),
            Path(__file__).with_name("clustering_peers.py"),
            name,
            ",".join(map(str, jars)),
            source,
            target,
            str(FILE_BYTES),
            *columns,
        ],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "SKIPBRIDGE_BENCH_WARM": str(warm), "PYTHONPATH": ""},
    )
    seconds = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
    files = [Path(path) for path in json.loads((target / "files.json").read_text())]
    return Rewritten(files, seconds, target)


def _peers_python() -> Path:
    """A Python with the release of Spark for which the peers are built."""
    made = root() / "peers-spark-4.0"
    python = made / "bin" / "python"
    if not (made / "_DONE").exists():
        venv.create(made, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", _PEERS_SPARK], check=True)
        (made / "_DONE").touch()
    return python


def bounds(files: Sequence[Path], columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of files, and (file, column, least or greatest) as numbers or text, from footers."""
    sizes, found = [], []
    for file in files:
        metadata = pq.read_metadata(file)
        places = {metadata.schema.column(i).name: i for i in range(metadata.num_columns)}
        sizes.append(file.stat().st_size)
        spans = []
        for column in columns:
            held = [
                metadata.row_group(g).column(places[column]).statistics
                for g in range(metadata.num_row_groups)
            ]
            spans.append((min(s.min for s in held), max(s.max for s in held)))
        found.append(spans)
    array = np.empty((len(files), len(columns), 2), object)
    array[:] = found
    return np.array(sizes, np.int64), array


def predicates(source: Path, columns: Sequence[str], count: int) -> list[list[tuple]]:  # type: ignore[type-arg]
    """Random conjunctions: a range of values of each column, or one value if it has few."""
    rng = np.random.default_rng(4)
    files = sorted(source.glob("*.parquet"))[::8]
    table = pa.concat_tables([pq.read_table(f, columns=list(columns)) for f in files])
    widths = (0.01, 0.1) if len(columns) == 2 else (0.05, 0.3)
    sampled = rng.integers(0, len(table), 20_000)
    values = {c: sorted(table.column(c)[int(i)].as_py() for i in sampled) for c in columns}
    found = []
    for _ in range(count):
        spans = []
        for column in columns:
            held = values[column]
            if len(set(held)) < 20:
                one = held[int(rng.integers(len(held)))]
                spans.append((one, one))
                continue
            width = rng.uniform(*widths)
            begin = rng.uniform(0, 1 - width)
            spans.append((held[int(begin * len(held))], held[int((begin + width) * len(held))]))
        found.append(spans)
    return found


def kept(files: Sequence[Path], columns: Sequence[str], asked: list[list[tuple]]) -> float:  # type: ignore[type-arg]
    """The mean share of bytes in files that may hold a row, by their least and greatest values."""
    sizes, spans = bounds(files, columns)
    shares = []
    for each in asked:
        wanted = np.ones(len(sizes), np.bool_)
        for i, (low, high) in enumerate(each):
            wanted &= (spans[:, i, 0] <= high) & (spans[:, i, 1] >= low)
        shares.append(sizes[wanted].sum() / sizes.sum())
    return float(np.mean(shares))


def spelled(spans: list[tuple], columns: Sequence[str]) -> str:  # type: ignore[type-arg]
    """A conjunction in SQL."""

    def literal(value: object) -> str:
        if isinstance(value, dt.date):
            return f"DATE '{value}'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    return " AND ".join(
        f"{column} BETWEEN {literal(low)} AND {literal(high)}"
        for column, (low, high) in zip(columns, spans, strict=True)
    )


def _age(made: Path) -> None:
    """Files written just now are not trusted by an index; these are old."""
    past = time.time() - 3600
    for file in made.glob("*.parquet"):
        os.utime(file, (past, past))
