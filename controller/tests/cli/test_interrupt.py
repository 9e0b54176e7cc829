# SPDX-License-Identifier: Apache-2.0
"""The signal handlers of a command that runs points."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from testctl import cli
from testctl.cli import interrupt
from testctl.cli.interrupt import INTERRUPTED, TOGETHER_S, interruptible
from testctl.cli.main import main
from testctl_agent.spec.errors import PlanError

BOTH = (signal.SIGINT, signal.SIGTERM)
PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 1s]\n"


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in BOTH]


@pytest.mark.parametrize("number", BOTH)
def test_the_first_signal_interrupts_and_the_handlers_are_restored(number: signal.Signals) -> None:
    before = handlers()
    with pytest.raises(KeyboardInterrupt), interruptible():
        os.kill(os.getpid(), number)
    assert handlers() == before


@pytest.mark.parametrize(("kept", "words"), [("", "interrupted"), ("nothing is kept", "interrupted; nothing is kept")])
def test_a_command_says_what_is_kept_after_it_has_undone_the_rest(
    capsys: pytest.CaptureFixture[str], kept: str, words: str
) -> None:
    before = handlers()
    with pytest.raises(SystemExit) as ended, interruptible(kept, lambda: print("undone", file=sys.stderr)):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == f"undone\n{words}\n"
    assert handlers() == before


def test_two_signals_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `timeout` sends them."""
    monkeypatch.setattr(interrupt, "TOGETHER_S", 600.0)
    after = []

    def command() -> None:
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                after.append("the end of the command")

    with pytest.raises(KeyboardInterrupt):
        command()
    assert after == ["the end of the command"]


def test_the_second_signal_ends_the_process() -> None:
    child = os.fork()
    if child == 0:
        try:
            with interruptible():
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                except KeyboardInterrupt:
                    time.sleep(2 * TOGETHER_S)
                    os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == INTERRUPTED


def test_an_error_restores_the_handlers_too() -> None:
    before = handlers()
    with pytest.raises(PlanError), interruptible():
        raise PlanError("a plan")
    assert handlers() == before


def test_main_leaves_the_handlers_of_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that fails after its handlers were installed: its results' directory is a file."""
    before = handlers()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "taken").write_text("", encoding="utf-8")
    argv = ["testctl", "run", "plan.yaml", "--cluster", "127.0.0.1:1", "--out", "taken"]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit):
        main()
    assert handlers() == before


def test_every_command_uses_it_as_a_context() -> None:
    """Called without `with` it would install nothing."""
    texts = [path.read_text(encoding="utf-8") for path in Path(cli.__file__).parent.glob("*.py")]
    calls = [line.strip() for text in texts for line in text.splitlines() if " interruptible(" in line]
    assert [line for line in calls if not line.startswith(("with ", "def "))] == []
    assert len(calls) >= 7
