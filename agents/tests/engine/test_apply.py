# SPDX-License-Identifier: Apache-2.0
"""The engine: all or nothing, and the state before whatever fails."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.journal import Entry, Journal
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int, Value

NAMES = ("a", "b", "c", "d")


class Crash(BaseException):
    """The agent is killed: nothing of its own runs any more."""


@dataclass
class World:
    """Values of parameters a..d of hosts x and y, and the step at which something goes wrong."""

    state: dict[tuple[str, str], int]
    steps: int = 0
    fail_at: int = -1
    how: type[BaseException] = ApplyError
    seen: list[str] = field(default_factory=list)

    def step(self, what: str) -> None:
        self.seen.append(what)
        self.steps += 1
        if self.steps - 1 == self.fail_at:
            raise self.how(f"step {self.fail_at}: {what}")


class Parameter:
    """One parameter file over a World; d comes after c, and reading needs a step too."""

    def __init__(self, world: World, name: str, after: tuple[str, ...] = ()) -> None:
        self.world = world
        self.SPEC = ParamSpec(name=name, kind="host", help="test", type=Int(0, 99), after=after)

    def unavailable(self, entity: Entity, name: str) -> str:
        self.world.step(f"needs {entity.name}.{name}")
        return ""

    def read(self, entity: Entity, name: str) -> Value:
        self.world.step(f"read {entity.name}.{name}")
        return self.world.state[entity.name, name]

    def apply(self, entity: Entity, name: str, value: Value) -> None:
        self.world.step(f"apply {entity.name}.{name}")
        self.world.state[entity.name, name] = int(value)
        self.world.step(f"applied {entity.name}.{name}")


def engine(world: World, journal: Path) -> Engine:
    parameters = {n: Parameter(world, n, ("a",) if n == "c" else ()) for n in NAMES}
    entities = [Entity("x", "host"), Entity("y", "host")]
    return Engine(entities, lambda kind, name: parameters.get(name), Journal(journal))


def start() -> dict[tuple[str, str], int]:
    return {(entity, name): 1 for entity in "xy" for name in NAMES}


WANTED = st.dictionaries(st.tuples(st.sampled_from("xy"), st.sampled_from(NAMES)), st.integers(0, 5), min_size=1)
FUZZ = settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(wanted=WANTED, fail_at=st.integers(0, 60))
def test_whatever_step_fails_the_state_is_the_state_before(
    tmp_path: Path, wanted: dict[Any, int], fail_at: int
) -> None:
    journal = tmp_path / "journal"
    journal.unlink(missing_ok=True)
    world = World(start(), fail_at=fail_at)
    mine = engine(world, journal)
    try:
        mine.apply([Setting(entity, name, value) for (entity, name), value in wanted.items()])
    except ApplyError:
        assert world.state == start()
    else:
        assert world.state == start() | wanted
        world.fail_at = -1
        mine.restore()
        assert world.state == start()
    assert not journal.exists()


@FUZZ
@given(wanted=WANTED, fail_at=st.integers(0, 60))
def test_after_a_crash_the_next_agent_restores(tmp_path: Path, wanted: dict[Any, int], fail_at: int) -> None:
    journal = tmp_path / "journal"
    journal.unlink(missing_ok=True)
    world = World(start(), fail_at=fail_at, how=Crash)
    mine = engine(world, journal)
    # A crash runs nothing more, so what a live engine does on the way out is cut off.
    mine.restore = lambda: []  # type: ignore[method-assign]
    with contextlib.suppress(Crash):
        mine.apply([Setting(entity, name, value) for (entity, name), value in wanted.items()])
    world.fail_at = -1
    engine(world, journal).restore()
    assert world.state == start()
    assert not journal.exists()


def test_all_is_written_down_before_the_first_change(tmp_path: Path) -> None:
    world, journal = World(start()), Journal(tmp_path / "j")
    known: list[list[Entry]] = []
    mine = engine(world, tmp_path / "j")
    world.step = lambda what: known.append(journal.read()) if what.startswith("apply ") else None  # type: ignore[method-assign]
    mine.apply([Setting("x", "c", 3), Setting("x", "b", 1), Setting("y", "a", 2)])
    assert known == [[Entry("x", "c", 1, 3), Entry("y", "a", 1, 2)]] * 2


class Entangled(Parameter):
    """A parameter whose change sets another one too, as that of an MTU may."""

    def apply(self, entity: Entity, name: str, value: Value) -> None:
        super().apply(entity, name, value)
        self.world.state[entity.name, "b"] = int(value)


@FUZZ
@given(a=st.integers(0, 3), b=st.integers(0, 3), fail_at=st.integers(0, 30))
def test_what_changes_with_another_is_set_and_restored(tmp_path: Path, a: int, b: int, fail_at: int) -> None:
    (tmp_path / "j").unlink(missing_ok=True)
    world = World(start(), fail_at=fail_at)
    parameters = {"a": Entangled(world, "a"), "b": Parameter(world, "b")}
    mine = Engine([Entity("x", "host")], lambda kind, name: parameters.get(name), Journal(tmp_path / "j"))
    try:
        mine.apply([Setting("x", "a", a), Setting("x", "b", b)])
    except ApplyError:
        assert world.state == start()
    else:
        assert world.state == start() | {("x", "a"): a, ("x", "b"): b}
        world.fail_at = -1
        mine.restore()
        assert world.state == start()


def test_order_follows_after(tmp_path: Path) -> None:
    world = World(start())
    engine(world, tmp_path / "j").apply([Setting("x", "c", 3), Setting("x", "a", 2)])
    applied = [what for what in world.seen if what.startswith("apply ")]
    assert applied == ["apply x.a", "apply x.c"]


def test_a_value_that_reads_back_otherwise_is_refused_and_undone(tmp_path: Path) -> None:
    world = World(start())
    mine = engine(world, tmp_path / "j")
    world_step = world.step

    def stubborn(what: str) -> None:
        world_step(what)
        if what == "applied x.a" and world.state["x", "a"] == 7:
            world.state["x", "a"] = 5

    world.step = stubborn  # type: ignore[method-assign]
    with pytest.raises(ApplyError, match=r"host x, a: want 7; read back 5"):
        mine.apply([Setting("x", "b", 2), Setting("x", "a", 7)])
    assert world.state == start()


def test_unknown_entity_and_parameter_say_what_there_is(tmp_path: Path) -> None:
    mine = engine(World(start()), tmp_path / "j")
    with pytest.raises(ApplyError, match=r"z: not an entity of this agent, which has x, y"):
        mine.apply([Setting("z", "a", 1)])
    with pytest.raises(ApplyError, match=r"host x: no parameter nonsense"):
        mine.apply([Setting("x", "nonsense", 1)])


def test_restore_goes_on_past_a_failure_and_keeps_it(tmp_path: Path) -> None:
    world = World(start())
    mine = engine(world, tmp_path / "j")
    mine.apply([Setting("x", "a", 2), Setting("x", "b", 2), Setting("y", "a", 2)])
    world.steps, world.fail_at = 0, 6  # after a read of each, the second apply of the way back
    with pytest.raises(ApplyError, match=r"x, b: not restored"):
        mine.restore()
    assert [entry.parameter for entry in Journal(tmp_path / "j").read()] == ["b"]
    world.fail_at = -1
    mine.restore()
    assert world.state == start()


def test_a_journal_line_cut_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path).add(Entry("x", "a", 1, 5))
    with path.open("a") as file:
        file.write('{"entity": "x", "para')
    assert Journal(path).read() == [Entry("x", "a", 1, 5)]
    path.write_text(json.dumps({"odd": 1}) + "\n")
    with pytest.raises(ApplyError, match=r"j:1: not a journal entry"):
        engine(World(start()), path).restore()


@pytest.mark.parametrize("step", ["read x.a", "applied x.a"])
def test_what_can_t_be_read_is_refused_in_words(tmp_path: Path, step: str) -> None:
    world = World(start())
    mine = engine(world, tmp_path / "j")
    world_step = world.step

    def unreadable(what: str) -> None:
        world_step(what)
        if what == "read x.a" and (step == "read x.a" or "applied x.a" in world.seen):
            raise PermissionError(13, "Permission denied")

    world.step = unreadable  # type: ignore[method-assign]
    with pytest.raises(ApplyError, match=r"^host x, a: can't be read: Permission denied"):
        mine.apply([Setting("x", "a", 2)])
