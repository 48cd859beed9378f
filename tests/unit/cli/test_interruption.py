"""Ctrl-C ends the demo even where a library swallowed it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bridge.app.cli import demo as module


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_swallowed_interrupt_is_noticed_at_the_next_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story(out: Path, say: Callable[[str], None], **_: Any) -> int:
        say("1/2")
        with contextlib.suppress(KeyboardInterrupt):  # as an import in a bare except does
            signal.raise_signal(signal.SIGINT)
        say("2/2")
        return 0

    monkeypatch.setattr("bridge.app.demo.run.missing_parts", list)
    monkeypatch.setattr("bridge.app.demo.run.run_demo", story)
    result = CliRunner().invoke(module.demo, ["--out", str(tmp_path / "demo")])
    assert result.exit_code == 130
    assert result.output.splitlines() == ["1/2", "stopped"]


def test_another_handler_that_was_left_behind_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story(out: Path, say: Callable[[str], None], **_: Any) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("1/2")
        signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr("bridge.app.demo.run.missing_parts", list)
    monkeypatch.setattr("bridge.app.demo.run.run_demo", story)
    assert CliRunner().invoke(module.demo, ["--out", str(tmp_path / "demo")]).exit_code == 130


def test_a_demo_without_a_terminal_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.0)
    with module._progress("files") as tick:
        tick(1250, 5000)
        tick(7, 0)
    assert capsys.readouterr().err.splitlines() == ["     1,250 of 5,000 files", "     7 files"]
