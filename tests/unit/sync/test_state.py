from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.sync.state import SyncState, parse_state, storage_digest, text_digest
from bridge.table.directory.discovered import SCHEMA, Discovered

STATE = SyncState("s", "n", "t", "hive", 5, 3, 1)


def test_what_is_written_reads_back() -> None:
    assert parse_state(STATE.to_text()) == STATE
    assert len(replace(STATE, storage="x" * 32, names="y" * 32, table="z" * 32).to_text()) < 400


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "begun 1",
        '{"storage": 1}',
        replace(STATE, version=2).to_text(),
        STATE.to_text().replace(":5", ':"5"'),
        STATE.to_text().replace("}", ',"more":1}'),
    ],
)
def test_what_cannot_be_trusted_is_no_state(text: str | None) -> None:
    assert parse_state(text) is None


def test_the_digest_tells_every_change() -> None:
    row = {"path": "p=1", "files": 1, "bytes": 9, "newest": 7, "sample": "f", "sample_bytes": 9}

    def digest(**changes: object) -> str:
        rows = SCHEMA.empty_table().from_pylist([{**row, **changes}], schema=SCHEMA)
        return storage_digest(Discovered("file:///t", rows))

    other = [digest(path="p=2"), digest(files=2), digest(bytes=8), digest(newest=8)]
    assert len({digest(), *other}) == 5 and digest() == digest()
    assert text_digest(["a", "b"]) != text_digest(["ab"]) != text_digest(["b", "a"])
