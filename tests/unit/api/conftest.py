"""A session over a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import bridge
from tests.unit.api.api_flights import flights


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bridge.Session]:
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    with bridge.connect(planner_cache_dir=str(tmp_path / "cache")) as opened:
        yield opened


@pytest.fixture
def table(tmp_path: Path, session: bridge.Session) -> bridge.Table:
    return session.table(flights(tmp_path / "flights"))
