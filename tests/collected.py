"""Which test cases a change dropped: ``python -m tests.collected BEFORE AFTER``.

Both are files with the ids that ``pytest --collect-only -q --tier=nightly`` prints, of two
revisions. Each id that is gone must begin with an entry of ``dropped.txt``, which says why; exit
status 1 otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

REASONS = Path(__file__).with_name("dropped.txt")


def ids(file: Path) -> set[str]:
    return {
        line for line in file.read_text("utf-8").splitlines() if "::" in line and line[0] != " "
    }


def reasons() -> list[str]:
    """Beginnings of ids, a line each; the reason stands behind `` # ``."""
    lines = REASONS.read_text("utf-8").splitlines()
    return [line.split(" # ", 1)[0] for line in lines if " # " in line]


def main(before: Path, after: Path) -> int:
    gone = sorted(ids(before) - ids(after))
    known = tuple(reasons())
    unexplained = [one for one in gone if not one.startswith(known)] if known else gone
    print(f"{len(ids(before))} before, {len(ids(after))} after, {len(gone)} gone")
    for one in unexplained:
        print(f"no reason in {REASONS.name}: {one}")
    return bool(unexplained)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tests.collected BEFORE AFTER")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
