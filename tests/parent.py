"""Runs a case in a parent commit: ``python -m tests.parent HEAD^ tests/unit/x.py::test_y``.

The parent's sources are laid beside, in a directory that goes away; packages and caches are those
of this checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(base: str, cases: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="skipbridge-parent-") as directory:
        archive = subprocess.run(
            ["git", "archive", "--format=tar", base], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *cases],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": directory},
            check=False,
        )
    said = {0: "passes there: the failure is new", 1: "fails there, too: the failure is not new"}
    print(f"{base}: {said.get(done.returncode, 'did not run there')}")
    return 0 if done.returncode in said else 2


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python -m tests.parent REVISION CASE [CASE ...]")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
