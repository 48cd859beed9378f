"""Introducing an index to a table that others use, and taking it away again.

Nobody who does not ask for it notices: each file of the table stays as it is, and each stage gives
the rows that Spark gave, to a reader that was open before and to one that comes new.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import bridge
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import hudi_fixtures

OURS = ".skipbridge"
STAGES = (
    (("build", "--local"), True),
    (("build", "--local", "--bloom", "name"), True),
    (("refresh",), True),
    (("drop", "--yes"), False),
    (("build", "--local"), True),
    (("drop", "--yes"), False),
)
"""Commands of ``skipbridge index``, and whether files are left out after each."""


def contents(root: Path) -> dict[str, str]:
    """Every file of the table that is not ours, hidden ones too."""
    files = (p for p in root.rglob("*") if p.is_file() and OURS not in p.parts)
    return {str(p.relative_to(root)): sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.mark.parametrize("name", ["cow_upserts", "mor_upserts"])
def test_an_index_comes_and_goes_and_nobody_else_notices(name: str, tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=[name])
    root = fixture.unpack(tmp_path)
    before = contents(root)
    expected = encode_table(fixture.answers().snapshot.table())
    with bridge.connect() as earlier:
        held = earlier.table(str(root))

        def check(skips: bool) -> None:
            assert contents(root) == before
            with bridge.connect() as new:
                for table in (held, new.table(str(root))):
                    rows = table.scan().to_arrow()
                    shown = rows.select([c for c in rows.column_names if c[:8] != "_hoodie_"])
                    assert encode_table(shown) == expected
                report = table.scan("name = 'zz'").explain()
                # One that was open before may hold its last look at the index for a moment.
                assert (report.files_kept < report.files_total) == skips

        check(False)
        for words, skips in STAGES:
            command = [sys.executable, "-m", "bridge", "index", words[0], str(root), *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            check(skips)
        left = [path for path in root.rglob(f"{OURS}/**/*") if path.is_file()]
        assert not left, "what was dropped leaves no file"
