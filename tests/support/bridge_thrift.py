"""bridge.thrift as its text has it: structs with their fields, methods with their arguments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_TEXT = re.sub(
    r"/\*.*?\*/|//[^\n]*", "", (ROOT / "bridge/service/bridge.thrift").read_text(), flags=re.S
)


class Field(NamedTuple):
    number: int
    type: str


def _fields(text: str) -> dict[str, Field]:
    found = re.findall(r"(\d+): (?:optional )?([\w<>, ]+?) (\w+)(?: = [^,]+)?(?:,|\s*$)", text)
    return {name: Field(int(number), type) for number, type, name in found}


STRUCTS = {
    name: _fields(body)
    for name, body in re.findall(r"(?:struct|exception) (\w+) \{(.*?)\}", _TEXT, re.S)
}
METHODS = {
    name: _fields(arguments)
    for name, arguments in re.findall(
        r"^  [\w<>]+ (\w+)\((.*?)\)(?: throws \([^)]*\))?,?$", _TEXT, re.M
    )
}
