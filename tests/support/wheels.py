"""Distributions that tests install: wheels written without a build backend."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path


def write_wheel(
    directory: Path, name: str, modules: dict[str, str], entry_points: dict[str, dict[str, str]]
) -> Path:
    """A wheel of pure Python.

    Args:
        name: of the distribution, with underscores.
        modules: file names and their text.
        entry_points: by group, then by name.
    """
    path = directory / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    groups = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in entry_points.items()
    ]
    files = {
        **modules,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(groups),
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return path


def wheel_of(project: Path, directory: Path) -> Path:
    """A wheel of a project that has a pyproject.toml and modules beside it."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    modules = {path.name: path.read_text() for path in project.glob("*.py")}
    name = described["name"].replace("-", "_")
    return write_wheel(directory, name, modules, described["entry-points"])


def install(wheel: Path, site: Path) -> None:
    """Installs a wheel into a directory for Python's path."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", site, wheel], check=True, capture_output=True)
