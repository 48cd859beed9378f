from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, recursive=True)
