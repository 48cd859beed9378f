"""The faults that are planted to prove the laws are still faults of the sources as they are."""

from __future__ import annotations

import pytest

from tests.mutations.faults import FAULTS, Fault
from tests.mutations.run import ROOT, WrongFault, planted


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies_and_its_law_is_there(fault: Fault) -> None:
    assert planted(fault) != (ROOT / fault.file).read_text()
    for file, text in fault.law.places():
        assert text in (ROOT / file).read_text(), file


def test_each_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 13


@pytest.mark.parametrize("text", ["not in it", "import"])
def test_a_fault_that_does_not_apply_is_named(text: str) -> None:
    fault = FAULTS[0]
    broken = Fault(fault.name, fault.file, text, "", fault.law)
    with pytest.raises(WrongFault, match=f"{fault.name}.*not once"):
        planted(broken)
