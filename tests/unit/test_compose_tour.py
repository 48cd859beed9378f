"""The compose tour's file, checked by compose itself where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[2] / "docker" / "compose.yaml"


def test_compose_takes_the_file() -> None:
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is not installed")
    done = subprocess.run(
        [docker, "compose", "-f", str(TOUR), "--profile", "*", "config", "--quiet"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
