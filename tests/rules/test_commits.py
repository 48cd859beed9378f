"""Commits of rivals; `tests.storage.test_atomic_create` races on every real store."""

from __future__ import annotations

from pathlib import Path

from tests.support.racers import race


def test_30_of_rival_processes_one_creates_a_name(tmp_path: Path) -> None:
    told = race(f"file://{tmp_path}", {}, rounds=20, processes=2, threads=4)
    assert [len(winners) for winners in told] == [1] * 20
    for number, (winner,) in enumerate(told):
        assert (tmp_path / str(number)).read_bytes() == winner
    assert len(list(tmp_path.iterdir())) == 20
