"""Time to the first query that skips files, in a planner that has just started.

Hudi tables of 8,000 small files: by the bounds that Hudi keeps itself (``column_stats``), by its
``secondary_index`` and its ``bloom_filters``, and by an index of ours that is built first. On local
disk, and on versitygw behind a proxy that delays each answer by 30 ms
(``SKIPBRIDGE_BENCH_LATENCY``).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.api.session import Session
from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.benchmark import hudi_data
from tests.benchmark.data import root
from tests.benchmark.figures import Figure
from tests.support.hudi_column_stats import ColumnStats, Entry
from tests.support.hudi_key_indexes import KeyIndexes
from tests.support.hudi_tables import HudiTable
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_FILES, _ROWS, _COMMITS = 8_000, 20, 4
_COLUMNS = 16
_KEYS = 10
"""Rows of a file of the table that is asked for keys and values."""
_INSTANT = 20260101000000000
_PROPERTIES = ".hoodie/hoodie.properties"


@dataclass(frozen=True, slots=True)
class _Question:
    """One index of Hudi's.

    Attributes:
        source: its name.
        table: the directory of its table.
        partitions: of the metadata table, which the planner finds.
        wanted: a condition that one file satisfies.
        kinds: what our index has besides bounds.
    """

    source: str
    table: str
    partitions: str
    wanted: str
    kinds: tuple[tuple[str, str], ...] = ()


def run() -> list[Figure]:
    return _measured(_FILES)


def quick() -> list[Figure]:
    return _measured(400)


def _questions(files: int) -> list[_Question]:
    key, bounds = f"k{files * 5}", f"id BETWEEN {files * 5} AND {files * 5 + 9}"
    values, keys = (("values", "name"),), (("values", "_hoodie_record_key"),)
    return [
        _Question("column_stats", "t", "column_stats", bounds),
        _Question(
            "secondary_index",
            "k",
            "record_index,secondary_index_name",
            f"name = '{_value(files * 5, files)}'",
            values,
        ),
        _Question("bloom_filters", "k", "bloom_filters", f"_hoodie_record_key = '{key}'", keys),
    ]


def _value(row: int, files: int) -> str:
    """The value of a row: all differ, and each file has some of the whole range."""
    return f"v{row * 7_919 % (files * _KEYS):08d}"


def _measured(files: int) -> list[Figure]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    questions = _questions(files)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        _write(scratch / "t", files)
        _write_keys(scratch / "k", files)

        properties = {name: (scratch / name / _PROPERTIES).read_text() for name in ("t", "k")}

        def ask(root: str, storage: Storage, options: dict[str, str], place: str) -> list[Figure]:
            figures = []
            for question in questions:
                table = f"{root}/{question.table}"
                told = f"hoodie.table.metadata.partitions={question.partitions}\n"
                content = properties[question.table] + told
                storage.put(f"{table}/{_PROPERTIES}", content.encode())
                figures += _both(scratch, table, files, options, place, question)
            return figures

        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        storage = open_storage(options=gateway.options)
        for name in properties:
            _copy(scratch / name, storage)
        figures = ask(f"file://{scratch}", storage, {}, "local disk")
        os.environ.update(gateway.environment)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        proxy.behave(Behaviour(latency=latency))
        options = {
            "storage.endpoint": f"http://127.0.0.1:{proxy.port}",
            "storage.region": "us-east-1",
            "storage.allow_http": "true",
        }
        place = f"S3 with {latency * 1e3:.0f} ms"
        return figures + ask(f"s3://{BUCKET}", storage, options, place)


def _both(
    scratch: Path,
    table: str,
    files: int,
    options: dict[str, str],
    place: str,
    question: _Question,
) -> list[Figure]:
    """By Hudi's index, and by ours; each with a cache of its own."""

    def config(name: str) -> Config:
        home = scratch / f"{name}-{question.source}-{len(table)}"
        told = {**options, "planner.cache_dir": str(home / "cache")}
        told["index.root"] = f"file://{home}/index"
        return Config({key: Setting(value, "benchmark") for key, value in told.items()})

    def until_it_skips(config: Config, prepare: Callable[[], None]) -> tuple[float, int, str]:
        begun, queries = time.perf_counter(), 0
        prepare()
        with Session(config) as session:
            while True:
                report = session.table(table).scan(question.wanted).explain()
                queries += 1
                if report.files_kept < files:
                    assert report.files_kept == 1, report.files_kept
                    return time.perf_counter() - begun, queries, str(report.stages[-1].index)
                assert not [r for r in report.not_used if r.index == question.source], report
                time.sleep(0.01)

    def build() -> None:
        index_table(
            config("ours"),
            table,
            local=True,
            asked=RequestedIndexes(question.kinds),
            progress=lambda *_: None,
            say=lambda _: None,
        )

    figures = []
    ours = f"our value lists of {question.kinds[0][1]}" if question.kinds else "our index"
    both = (f"Hudi's {question.source}", lambda: None), (f"{ours}, built", build)
    for name, prepare in both:
        kind = "ours" if prepare is build else "hudi"
        seconds, queries, source = until_it_skips(config(kind), prepare)
        note = f"query {queries}, by {source}"
        figures.append(Figure(f"{files:,} files, {place}: {name}", seconds, note=note))
    return figures


def _write(directory: Path, files: int) -> None:
    """A table of version 8 with bounds of all columns in one compacted HFile."""
    names = [f"n{i}" for i in range(_COLUMNS - 1)]
    fields = [{"name": "id", "type": ["null", "long"], "default": None}]
    fields += [{"name": n, "type": ["null", "int"], "default": None} for n in names]
    table = HudiTable(
        directory,
        8,
        "COPY_ON_WRITE",
        hoodie__table__recordkey__fields="id",
        hoodie__populate__meta__fields="false",
    )
    random, entries = np.random.default_rng(1), []
    for commit in range(_COMMITS):
        instant, written = str(_INSTANT + commit), []
        for number in range(commit * files // _COMMITS, (commit + 1) * files // _COMMITS):
            base = table.base("", f"{number:08d}-0000-0000-0000-000000000000-0", instant)
            ids = np.arange(number * _ROWS // 2, number * _ROWS // 2 + _ROWS // 2)
            held = {n: random.integers(0, 1000, len(ids), np.int32) for n in names}
            pq.write_table(pa.table({"id": ids, **held}), directory / base.name)
            entries.append(_entry(base.name, "id", "LongWrapper", ids))
            entries += (_entry(base.name, n, "IntWrapper", v) for n, v in held.items())
            written.append(hudi_data.sized(table, base))
        schema = json.dumps({"type": "record", "name": "t", "fields": fields})
        table.commit(instant, written, action="commit", schema=schema)
    statistics = ColumnStats(directory, 8, ["isTightBound"], per_block=2000)
    statistics.base(str(_INSTANT + _COMMITS - 1), entries)


def _write_keys(directory: Path, files: int) -> None:
    """A table of version 9 with a record index, a secondary index and bloom filters."""
    names = [*hudi_data.META, "name"]
    fields = [{"name": n, "type": ["null", "string"], "default": None} for n in names]
    schema = json.dumps({"type": "record", "name": "k", "fields": fields})
    table = HudiTable(
        directory, 9, "COPY_ON_WRITE", hoodie__table__recordkey__fields="_hoodie_record_key"
    )
    groups: dict[str, str] = {}
    values: dict[str, str] = {}
    held: dict[str, list[str]] = {}
    instants = [str(_INSTANT + commit) for commit in range(_COMMITS)]
    for commit, instant in enumerate(instants):
        written = []
        for number in range(commit * files // _COMMITS, (commit + 1) * files // _COMMITS):
            group = f"{number:08d}-0000-0000-0000-000000000000-0"
            base = table.base("", group, instant)
            rows = range(number * _KEYS, (number + 1) * _KEYS)
            keys = [f"k{row}" for row in rows]
            own = {key: _value(row, files) for key, row in zip(keys, rows, strict=True)}
            columns = {name: [""] * len(keys) for name in hudi_data.META}
            columns |= {"_hoodie_record_key": keys, "name": list(own.values())}
            pq.write_table(pa.table(columns), directory / base.name)
            written.append(replace(hudi_data.sized(table, base), rows=len(keys)))
            groups.update(dict.fromkeys(keys, group))
            values.update(own)
            held[base.name] = keys
        table.commit(instant, written, action="commit", schema=schema)
    indexes = KeyIndexes(directory, instants)
    indexes.record_index(groups)
    indexes.secondary_index("name", values)
    indexes.bloom_filters(held)


def _entry(file: str, column: str, wrapper: str, values: np.ndarray) -> Entry:
    return Entry("", file, column, (wrapper, int(values.min()), int(values.max())))


def _copy(directory: Path, storage: Storage) -> None:
    files = [path for path in directory.rglob("*") if path.is_file()]

    def put(file: Path) -> None:
        storage.put(f"s3://{BUCKET}/{file.relative_to(directory.parent)}", file.read_bytes())

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(put, files))
