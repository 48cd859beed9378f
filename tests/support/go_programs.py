"""Servers for tests that ``go install`` compiles once into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bridge.servers.maven import build_once, cache_directory

_BUILD_TIMEOUT = 900


class GoMissing(Exception):
    """Why there is no such program."""


def go_program(package: str, version: str) -> Path:
    """The program of a package; built if it is not in the cache. Errors: GoMissing."""
    name = package.rpartition("/")[2]
    target = cache_directory() / f"{name}-{version}" / name

    def build(target: Path) -> None:
        _build(package, version, target)

    return build_once(target, build)


def _build(package: str, version: str, target: Path) -> None:
    name = package.rpartition("/")[2]
    go = shutil.which("go")
    if go is None:
        raise GoMissing(f"there is no go to build {name} with")
    place = target.parent
    environment = {
        **os.environ,
        "GOBIN": str(place),
        "GOPATH": str(place / "modules"),
        "GOCACHE": str(place / "cache"),
        "GOFLAGS": "-modcacherw",
    }
    try:
        done = subprocess.run(
            [go, "install", "-ldflags=-s -w", f"{package}@v{version}"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise GoMissing(f"{name} was not built in {_BUILD_TIMEOUT} s") from error
    if done.returncode:
        raise GoMissing(f"{name} cannot be built: {done.stderr.strip()[-500:]}")
    (place / name).rename(target)
