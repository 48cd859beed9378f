"""Rule 30: of all who create a name at once one wins, on every real store that runs here."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.storage.commit_log import CommitLog
from bridge.storage.routed import open_storage
from bridge.storage.uri import join
from tests.storage.conftest import Place
from tests.storage.test_index_on_storage import build, match, store, write
from tests.support.racers import race

ROUNDS = 20


@pytest.mark.parametrize(
    ("processes", "threads"), [(4, 4), pytest.param(1, 16, marks=pytest.mark.nightly)]
)
def test_30_one_of_many_creates_a_name(place: Place, processes: int, threads: int) -> None:
    told = race(place.root, place.options, ROUNDS, processes, threads)
    assert [len(winners) for winners in told] == [1] * ROUNDS
    for number, (winner,) in enumerate(told):
        uri = join(place.root, str(number))
        assert place.storage.read(uri) == winner
        assert not place.storage.put_if_absent(uri, b"too late")
        assert place.storage.read(uri) == winner
    names = [join(place.root, str(number)) for number in range(ROUNDS)]
    assert place.storage.list_all(place.root).paths.to_pylist() == sorted(names)


def test_30_who_made_a_link_is_told_so_though_the_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS refuses the request that is repeated: it has done it already."""
    link, storage, uri = os.link, open_storage(), f"file://{tmp_path}/generations/1.json"

    def twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    assert storage.put_if_absent(uri, b"mine")
    assert not storage.put_if_absent(uri, b"other")
    assert storage.read(uri) == b"mine"
    assert [file.name for file in (tmp_path / "generations").iterdir()] == ["1.json"]


@pytest.mark.parametrize("digits", [1, 20])
def test_30_rivals_append_to_a_commit_log_and_each_knows_whose_record_lies_there(
    place: Place, digits: int
) -> None:
    """As generations and versions are committed, and, with a name of one's own choice, plans."""

    def append(rival: int) -> dict[int, bytes]:
        log = CommitLog(open_storage(place.root, place.options), place.root, digits)
        mine: dict[int, bytes] = {}
        while len(mine) < 3:
            number = max((each for each, _ in log.records()), default=0) + 1
            content = f"{rival} {number} {len(mine)}".encode()
            there = log.create(number, content)
            assert there == log.read(number, bytes), "what is there never changes"
            if there == content:
                mine[number] = content
        return mine

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(append, range(4)))
    log = CommitLog(place.storage, place.root, digits)
    numbers = [number for number, _ in log.records()]
    assert numbers == list(range(1, 13)), "no two have one number, and none is left out"
    committed = {number: content for mine in made for number, content in mine.items()}
    assert committed == {number: log.read(number, bytes) for number in numbers}


def test_30_no_generation_of_rival_builders_is_lost(place: Place, tmp_path: Path) -> None:
    committed: list[int] = []
    with ThreadPoolExecutor(3) as pool:
        for number in range(4):
            write(place, f"m={number % 2 + 1}/f{number}", number)
            reports = list(pool.map(lambda _: build(place), range(3)))
            assert {report.files for report in reports} == {number + 1}
            committed += [report.generation for report in reports if report.committed]
    assert committed
    assert len(set(committed)) == len(committed)
    assert store(place).generations() == sorted(committed)
    assert match(place, tmp_path / "cache") == [True] * 4


def test_what_a_commit_that_died_left_is_no_generation_and_is_cleaned(place: Place) -> None:
    write(place, "m=1/a", 1)
    assert build(place).generation == 1
    left = join(place.root, ".skipbridge/generations/.2.json.0123456789abcdef.tmp")
    place.storage.put(left, b"{")
    assert store(place).generations() == [1]
    assert not build(place).committed
    assert store(place).clean() == 0  # it may be a commit under way
    assert store(place).clean(older_than=-10) >= 1
    assert place.storage.stat(left) is None
    assert store(place).generations() == [1]
