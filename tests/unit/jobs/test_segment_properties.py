"""Properties of segments that cannot hold are refused by name, wherever they are given."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest
from bridge.segments.commands import add, tables
from tests.tiers import seed

CONFIG = Config({})
COLUMNS = [("a", "int"), ("b", "string")]
MARKS = {"csv.delimiter": ",", "csv.quote": '"', "csv.escape": "\\"}
Way = Callable[[Path, str, dict[str, str]], Any]


def create(root: Path, format: str, given: dict[str, str]) -> None:
    tables.create_table(CONFIG, str(root / "t"), format=format, columns=COLUMNS, properties=given)


def set_(root: Path, format: str, given: dict[str, str]) -> None:
    create(root, format, {})
    tables.set_properties(CONFIG, str(root / "t"), given)


def added(root: Path, format: str, given: dict[str, str]) -> None:
    create(root, format, {})
    (root / "f.csv").write_text("1,x\n")
    add.add_segment(
        CONFIG, str(root / "t"), paths=[str(root / "f.csv")], properties=given, local=True
    )


WAYS = (create, set_, added)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"csv.null": "\\N"}, r"csv.null is .*, which no field is: .*csv.escape"),
        ({"csv.delimiter": '"'}, "csv.delimiter and csv.quote are both"),
        ({"csv.escape": '"'}, "csv.quote and csv.escape are both"),
        ({"csv.quote": "|", "csv.delimiter": "|"}, "csv.delimiter and csv.quote are both"),
        ({"csv.header_lines": "2147483648"}, "from 0 to 2147483647"),
        ({"csv.footer_lines": "9" * 5000}, "from 0 to 2147483647"),
        ({"csv.quote": "\n"}, "one character that ends no line"),
        ({"text.delimiter": "-", "text.null": "--"}, "text.null is '--', which no field is"),
    ],
)
def test_what_cannot_hold_is_refused(
    tmp_path: Path, way: Way, given: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        way(tmp_path, next(iter(given)).partition(".")[0], given)
    assert re.search(said, str(refused.value), re.DOTALL)


def test_a_default_that_comes_back_is_checked_too(tmp_path: Path) -> None:
    create(tmp_path, "csv", {"csv.delimiter": "|", "csv.quote": ","})
    with pytest.raises(InvalidRequest, match=r"csv\.delimiter and csv\.quote are both ','"):
        tables.unset_properties(CONFIG, str(tmp_path / "t"), ["csv.delimiter"])
    tables.set_properties(CONFIG, str(tmp_path / "t"), {"csv.escape": "\\001", "csv.null": "\\N"})


def test_marks_that_differ_are_accepted_and_no_others(tmp_path: Path) -> None:
    rng = random.Random(seed(18))
    for number in range(60):
        given = {name: rng.choice(',"\\|;') for name in MARKS if rng.random() < 0.7}
        whole = MARKS | given
        root = tmp_path / str(number)
        root.mkdir()
        if len(set(whole.values())) == len(whole):
            create(root, "csv", given)
        else:
            with pytest.raises(InvalidRequest, match="are both"):
                create(root, "csv", given)
