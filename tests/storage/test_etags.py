"""Stores that spell one ETag in several ways, or tell several of one file, under segments.

The law: what was added is read, under the same store; else the command that adds says why not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path

import pytest

import bridge
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import BridgeError, FileChanged
from bridge.segments.commands import add, refresh, tables
from tests.storage.test_lying_store import ROOT, parquet
from tests.support.memory_store import Answer, Asked, Lie, MemoryStore
from tests.tiers import examples, seed

TABLE = "s3://lake/segments"
_TAG = re.compile(rb"<ETag>([^<]*)</ETag>")
_fresh = count()
SPELLINGS: dict[str, Callable[[str], str]] = {
    "weak": lambda tag: f"W/{tag}",
    "bare": lambda tag: tag.strip('"'),
    "weak and bare": lambda tag: f"W/{tag}".replace('"', ""),
    "none": lambda tag: "",
    "empty": lambda tag: '""',
}
OTHERS: dict[str, Callable[[str], str]] = {
    "other": lambda tag: '"other"',
    "of another case": str.upper,
    "as if compressed": lambda tag: tag[:-1] + '-gzip"',
    "new each time": lambda tag: f'"{next(_fresh):032}"',
}


CASES = [*product([*SPELLINGS, *OTHERS], ("list", "HEAD", "GET"), (False, True))]
random.Random(seed(19)).shuffle(CASES)


def lie_about(where: str, change: Callable[[str], str]) -> Lie:
    """Other ETags in listings, or in the answers to one method."""

    def lie(asked: Asked, answer: Answer) -> Answer:
        if asked.listing:
            if where != "list":
                return answer

            def tag(found: re.Match[bytes]) -> bytes:
                return b"<ETag>%s</ETag>" % change(found[1].decode()).encode()

            return Answer(answer.status, _TAG.sub(tag, answer.body), answer.headers)
        if asked.method != where or "ETag" not in answer.headers or "/f" not in asked.key:
            return answer
        return Answer(
            answer.status, answer.body, {**answer.headers, "ETag": change(answer.headers["ETag"])}
        )

    return lie


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with MemoryStore() as running:
        for i in range(3):
            running.put(f"t/f{i}.parquet", parquet(i, i + 100))
        yield running


@pytest.mark.parametrize(("way", "where", "by_name"), CASES[: examples(4, len(CASES), len(CASES))])
@pytest.mark.rule("19")
def test_19_what_was_added_is_read(
    store: MemoryStore, tmp_path: Path, way: str, where: str, by_name: bool
) -> None:
    names = {f"storage.{name}": store.options[name] for name in ("endpoint", "region")}
    names["storage.allow_http"] = "true"
    config = Config({name: Setting(value, "test") for name, value in names.items()})
    settings = {name.replace(".", "_"): value for name, value in names.items()}

    def rows(cache: str, where: str | None = None) -> list[int]:
        with bridge.connect(planner_cache_dir=str(tmp_path / cache), **settings) as session:
            return sorted(session.table(TABLE).scan(where).to_arrow()["x"].to_pylist())

    tables.create_table(config, TABLE, format="parquet", columns=[("x", "bigint")])
    paths = [f"{ROOT}/f{i}.parquet" for i in range(3)] if by_name else [ROOT]
    store.lie = lie_about(where, {**SPELLINGS, **OTHERS}[way])
    try:
        add.add_segment(config, TABLE, paths=paths, local=True)
    except FileChanged as error:
        assert way in OTHERS and "ETag" in str(error) and "several ETags" in error.hint
        assert rows("lie") == []
    else:
        assert way in SPELLINGS or (by_name and where != "HEAD")
        assert rows("lie") == [0, 1, 2, 100, 101, 102]
        assert rows("lie", "x = 1") == [1]
    store.lie = lambda asked, answer: answer
    try:
        assert rows("honest") in ([], [0, 1, 2, 100, 101, 102])
    except BridgeError as error:
        assert isinstance(error, FileChanged) and way in OTHERS
        refresh.refresh_segments(config, TABLE, local=True)
        assert rows("honest") == [0, 1, 2, 100, 101, 102]
