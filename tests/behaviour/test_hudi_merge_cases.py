"""The cases that hold for both mergers of Hudi's slices, by Python's."""

from __future__ import annotations

from pathlib import Path

import pytest

import bridge
from bridge.kernel.errors import BridgeError
from tests.support.hudi_merge_cases import CASES


@pytest.mark.parametrize("name", CASES)
@pytest.mark.rule("51")
def test_51_a_slice_shows_its_rows_or_says_why_not(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    case.write(tmp_path / "t")
    with bridge.connect() as session:
        scan = session.table(str(tmp_path / "t")).scan(columns=["name"])
        if case.refused:
            with pytest.raises(BridgeError, match=case.refused):
                scan.to_arrow()
            return
        assert sorted(scan.to_arrow()["name"].to_pylist()) == sorted(case.shown)
