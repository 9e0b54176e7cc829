# SPDX-License-Identifier: Apache-2.0
"""A journal that is found again: after a reboot, after somebody else's change, after a kill, by a newer version."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.journal import Entry, Journal, this_boot
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError

from agents.tests.daemon.daemons import SWITCH, Daemon, calling, running, written
from agents.tests.engine.test_apply import NAMES, Parameter, World, start


def agent(world: World, journal: Path, boot: str = "boot-1") -> Engine:
    """The agent that finds a journal: it remembers nothing of the one before."""
    parameters = {name: Parameter(world, name) for name in NAMES}
    entities = [Entity("x", "host"), Entity("y", "host")]
    return Engine(entities, lambda kind, name: parameters.get(name), Journal(journal, boot))


def test_after_another_boot_nothing_is_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(start())
    agent(world, tmp_path / "j").apply([Setting("x", "a", 5), Setting("x", "b", 5)])
    world.state |= {("x", "a"): 9, ("x", "b"): 1}  # what the new boot has set, and has not
    world.seen.clear()
    with caplog.at_level(logging.WARNING):
        assert agent(world, tmp_path / "j", "boot-2").restore() == []
    assert (world.state["x", "a"], world.state["x", "b"]) == (9, 1)
    assert not any(step.startswith("apply") for step in world.seen)
    assert [record.getMessage() for record in caplog.records] == [
        "x, a: was 1 when a boot of this machine that is over changed it; is 9 now, which stays"
    ]
    assert not (tmp_path / "j").exists()


def test_what_somebody_else_has_changed_since_is_not_written_over(tmp_path: Path) -> None:
    world = World(start())
    mine = agent(world, tmp_path / "j")
    mine.apply([Setting("x", "a", 5), Setting("x", "b", 5)])
    world.state["x", "a"] = 9
    says = (
        "x, a: not restored: was 1, is 9; it was set to 5, and somebody else has changed it since: set it to 1, or, "
        f"to keep what it is, remove its lines from {tmp_path}/j"
    )
    for one in (mine, mine, agent(world, tmp_path / "j"), agent(world, tmp_path / "j")):
        with pytest.raises(ApplyError) as failed:
            one.restore()
        assert str(failed.value) == says
        assert (world.state["x", "a"], world.state["x", "b"]) == (9, 1)
    world.state["x", "a"] = 1
    agent(world, tmp_path / "j").restore()
    assert world.state == start()
    assert not (tmp_path / "j").exists()


def test_two_changes_of_one_parameter_are_both_undone(tmp_path: Path) -> None:
    world = World(start())
    mine = agent(world, tmp_path / "j")
    mine.apply([Setting("x", "a", 5)])
    mine.apply([Setting("x", "a", 6)])
    agent(world, tmp_path / "j").restore()
    assert world.state == start()


@pytest.mark.parametrize("work", ["apply", "restore"])
@pytest.mark.parametrize("half", [0, 7])
def test_what_a_kill_left_half_done_is_restored(tmp_path: Path, work: str, half: int) -> None:
    """A value that is neither the one before nor the one asked for, such as one of two files that are written."""

    class Killed(BaseException):
        pass

    world = World(start())
    mine = agent(world, tmp_path / "j")
    if work == "restore":
        mine.apply([Setting("x", "a", 5), Setting("x", "b", 5)])
    else:
        mine.restore = list  # type: ignore[method-assign]  # who is killed undoes nothing

    def killed(what: str) -> None:
        if what == "apply x.a":
            world.state["x", "a"] = half
            raise Killed

    world.step = killed  # type: ignore[method-assign]
    setting = [Setting("x", "b", 5), Setting("x", "a", 5)]
    with pytest.raises(Killed):
        mine.apply(setting) if work == "apply" else mine.restore()
    del world.step
    agent(world, tmp_path / "j").restore()
    assert world.state == start()


def test_a_restore_that_failed_half_way_is_tried_again_as_it_is(tmp_path: Path) -> None:
    """The same agent, whose journal can't be written meanwhile, does not take its own work for somebody else's."""
    world = World(start())
    mine = agent(world, tmp_path / "j")
    mine.apply([Setting("x", "a", 5)])

    def half(what: str) -> None:
        if what == "apply x.a":
            world.state["x", "a"] = 3
            raise OSError(5, "Input/output error")

    world.step = half  # type: ignore[method-assign]
    keep, mark = mine._journal.keep, mine._journal.mark

    def full(*_: object) -> None:
        raise ApplyError("the journal can't be written: No space left on device")

    mine._journal.keep, mine._journal.mark = full, lambda how: None  # type: ignore[assignment, method-assign]
    with pytest.raises(ApplyError, match=r"x, a: not restored: .*; the journal can't be written"):
        mine.restore()
    del world.step
    mine._journal.keep, mine._journal.mark = keep, mark  # type: ignore[method-assign]
    mine.restore()
    assert world.state == start()


def test_an_agent_after_a_reboot_gives_leases_and_has_written_nothing(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.jsonl").add(Entry("s1:alpha", "rate", 10**8, 10**9, "another-boot"))
    with running(written(tmp_path, **SWITCH)) as daemon, calling(f"unix:{tmp_path}/alpha.sock") as caller:
        caller.acquire()
        assert caller.rate() == "none"
        assert (
            "was 100000000 when a boot of this machine that is over changed it; is none now, which stays" in daemon.log
        )


def test_a_daemon_s_entries_know_their_boot(tmp_path: Path, rig: ExitStack) -> None:
    daemon: Daemon = rig.enter_context(running(written(tmp_path, **SWITCH)))
    caller = rig.enter_context(calling(f"unix:{tmp_path}/alpha.sock"))
    caller.acquire()
    caller.set_rate(10**9)
    daemon.kill()
    (entry,) = Journal(tmp_path / "journal.jsonl").read()
    assert entry == Entry("s1:alpha", "rate", "none", 10**9, this_boot(), settled=True)


def test_a_journal_is_written_whole_however_little_the_disk_takes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:7])))
    Journal(tmp_path / "j").add(Entry("x", "a", 1, 5), Entry("x", "b", 1, 5))
    assert [entry.parameter for entry in Journal(tmp_path / "j").read()] == ["a", "b"]
