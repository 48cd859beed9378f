"""Which failures of a call are tried again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.kernel.errors import MetastoreFailure
from bridge.metastore._gen import ttypes
from bridge.metastore.calls import Caller, MetastoreSettings

DERBY = (
    "Fetch of object failed: A lock could not be obtained due to a deadlock, cycle of locks and "
    "waiters is: Lock : ROW, PARTITIONS, (55,53) . The selected victim is XID : 12817."
)


class Connection:
    """Compared by identity, as a real one."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def close(self) -> None:
        """Nothing is open."""


class Script:
    """A pool of one connection whose answers are written down."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def take(self) -> Any:
        return Connection(SimpleNamespace(ask=self._ask))

    def give_back(self, connection: Any) -> None:
        """There is but one."""

    def _ask(self) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def caller(*answers: Any) -> tuple[Caller, Script]:
    script = Script(list(answers))
    made = Caller("thrift://127.0.0.1:9", MetastoreSettings(retry_pause=0.001, retry_deadline=5))
    made._pool = script  # type: ignore[assignment]
    return made, script


@pytest.mark.parametrize(
    "text",
    [
        DERBY,
        "Deadlock found when trying to get lock; try restarting transaction",
        "ERROR: could not serialize access due to concurrent update",
        "ERROR: deadlock detected",
    ],
)
def test_what_was_rolled_back_for_another_is_tried_again(text: str) -> None:
    made, script = caller(ttypes.MetaException(text), ttypes.MetaException(text), 7)
    assert made.call("ask") == 7
    assert not script.answers


def test_not_what_must_not_happen_twice() -> None:
    made, script = caller(ttypes.MetaException(DERBY), 7)
    with pytest.raises(MetastoreFailure, match="selected victim"):
        made.call("ask", repeatable=False)
    assert script.answers == [7]


def test_not_what_would_fail_again() -> None:
    made, script = caller(ttypes.MetaException("no such database: x"), 7)
    with pytest.raises(MetastoreFailure, match="no such database"):
        made.call("ask")
    assert script.answers == [7]
