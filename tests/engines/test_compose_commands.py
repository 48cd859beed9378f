"""The one command of the compose tour that is not ours: run as it is written there."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[2] / "docker" / "compose.yaml"


@pytest.mark.engine
def test_the_metastores_driver_is_where_it_is_mounted_from(tmp_path: Path) -> None:
    (line,) = (x for x in TOUR.read_text("utf-8").splitlines() if x.startswith("#   mvn "))
    words = shlex.split(line[1:])
    subprocess.run([words[0], "-q", "-B", *words[1:]], cwd=tmp_path, check=True, timeout=600)
    made = tmp_path / "docker" / "hive" / "lib" / "postgresql.jar"
    assert made.stat().st_size > 500_000
