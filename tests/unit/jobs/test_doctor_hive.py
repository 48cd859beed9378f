"""Doctor's questions to HiveServer2, in one session; no server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bridge.app import doctor
from bridge.hive import checks as doctor_hive
from bridge.hive.checks import HiveAddress
from bridge.kernel.config import Config
from bridge.metastore.hooks import PLAN_HOOK

HIVE = HiveAddress("localhost:10000", "NOSASL")


class Session:
    """Answers as a HiveServer2 with these pre-hooks."""

    opened = 0
    hooks: str | None = ""

    def __init__(self, address: str, authentication: str) -> None:
        Session.opened += 1
        if Session.hooks is None:
            raise OSError("nobody answers")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def query(self, statement: str) -> list[tuple[str]]:
        if statement.startswith("SET"):
            return [(f"{statement[4:]}={Session.hooks}",)]
        return [("4.0.1",)]


@pytest.mark.parametrize(
    ("hooks", "hooked"),
    [(f"org.x.Audit, {PLAN_HOOK}", True), (f"{PLAN_HOOK}2", False), ("", False), (None, None)],
)
def test_one_session_tells_the_checks_of_hive_and_of_the_table(
    monkeypatch: pytest.MonkeyPatch, hooks: str | None, hooked: bool | None
) -> None:
    known: list[bool | None] = []

    def examine_hooks(_: Config, table: str, plans: bool | None) -> Iterator[Any]:
        known.append(plans)
        return iter(())

    monkeypatch.setattr(Session, "opened", 0)
    monkeypatch.setattr(Session, "hooks", hooks)
    monkeypatch.setattr(doctor_hive, "HiveSession", Session)
    monkeypatch.setattr(doctor, "examine_hooks", examine_hooks)
    for check in ("_index", "_metastore", "_planner", "_jdk"):
        monkeypatch.setattr(doctor, check, lambda *_: doctor.Diagnostic("", "ok", ""))
    for check in ("_store", "_left", "examine_record"):
        monkeypatch.setattr(doctor, check, lambda *_: iter(()))
    found = list(doctor.examine(Config({}), "d.t", None, HIVE))
    assert known == [hooked]
    assert Session.opened == 1
    assert any(d.check == "Hive plans" for d in found) == (hooked is not None)
