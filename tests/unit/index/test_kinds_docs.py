"""The example of docs/reference/index-kinds.md, installed as a distribution of its own, and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.wheels import install, write_wheel

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "index-kinds.md"


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    return str(code)


def wheel(directory: Path) -> Path:
    """A distribution with the example and the entry point that the documentation names."""
    (entry,) = re.findall(
        r'\[project\.entry-points\."(.*?)"\]\n(.*?) = "(.*?)"\n```', DOCS.read_text()
    )
    group, name, value = entry
    return write_wheel(
        directory, "acme_domains", {"acme_domains.py": example()}, {group: {name: value}}
    )


def test_the_example_is_short() -> None:
    assert len(example().splitlines()) <= 65
    assert sum(bool(line.strip()) for line in example().splitlines()) <= 60


def test_the_example_is_installed_and_prunes(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(wheel(tmp_path), site)
    table = tmp_path / "people"
    table.mkdir()
    past = DOCS.stat().st_mtime - 60
    for i in range(6):
        path = table / f"f{i}.parquet"
        some = [f"{name}@site{i % 3}.org" for name in ("ann", "zoe")]
        pq.write_table(pa.table({"email": some, "n": [i, i]}), path)
        os.utime(path, (past, past))
    environment = {**os.environ, "PYTHONPATH": str(site), "SKIPBRIDGE_CACHE": str(tmp_path / "c")}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "bridge", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "--domains COLUMN" in run("index", "build", "--help")
    run("index", "build", f"{table}/", "--local", "--domains", "email")
    assert "domains(email):limit=100" in run("index", "show", f"{table}/")
    told = run("explain", f"{table}/", "email = 'mia@site1.org'")
    assert re.search(r"files minmax +6 -> 6 ", told), told
    assert re.search(r"files domains +6 -> 2 .*email", told), told
    told = run("explain", f"{table}/", "email IN ('mia@site1.org', 'mia@site2.org') AND n < 3")
    assert re.search(r"files domains +3 -> 2 ", told), told
    del environment["PYTHONPATH"]  # a planner without the distribution says so
    told = run("explain", f"{table}/", "email = 'mia@site1.org'")
    assert "files domains" not in told
    assert re.search(r"not used: domains\(email\) +NOT_INSTALLED, .* -> install ", told), told
