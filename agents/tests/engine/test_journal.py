# SPDX-License-Identifier: Apache-2.0
"""The journal on disk: torn lines, lines that are none, entities that are gone, a full disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.journal import Entry, Journal
from testctl_agent.spec.errors import ApplyError

from agents.tests.engine.test_apply import World, engine, start

FUZZ = settings(max_examples=200, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
LINES = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=5)


def test_what_a_crash_cut_off_is_removed_before_the_next_entry(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for torn in ('{"entity": "x", "para', '{"entity"', "\0\0\0"):
        path.write_text('{"entity": "x", "parameter": "a", "value": 1, "wanted": 5}\n' + torn)
        Journal(path).add(Entry("x", "b", 2, 5))
        assert Journal(path).read() == [Entry("x", "a", 1, 5), Entry("x", "b", 2, 5)]
    path.write_text("torn")
    Journal(path).add(Entry("x", "b", 2, 5))
    assert Journal(path).read() == [Entry("x", "b", 2, 5)]


@FUZZ
@given(lines=LINES, cut=st.integers(0, 400))
def test_a_journal_cut_anywhere_restores_what_is_whole(
    tmp_path: Path, lines: list[tuple[str, str, int]], cut: int
) -> None:
    path = tmp_path / "j"
    path.unlink(missing_ok=True)
    for entity, name, value in lines:
        Journal(path).add(Entry(entity, name, value, 5))
    os.truncate(path, min(cut, path.stat().st_size))
    whole = path.read_text().count("\n")
    world = World(start())
    engine(world, path).restore()
    wanted = start()
    for entity, name, value in reversed(lines[:whole]):
        wanted[entity, name] = value
    assert world.state == wanted
    assert not path.exists()


@pytest.mark.parametrize(
    "odd",
    ["", "[]", '{"odd": 1}', "\x7fELF", "[" * 10**5, '{"entity": 1, "parameter": "a", "value": 1, "wanted": 5}',
     '{"entity": "x", "parameter": "a", "value": 1}'],
)  # fmt: skip
def test_a_line_that_is_none_is_kept_and_the_others_restored(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "j"
    first, second = (json.dumps({"entity": "x", "parameter": name, "value": 3, "wanted": 5}) for name in "ab")
    path.write_text(f"{first}\n{odd}\n{second}\n")
    world = World(start())
    mine = engine(world, path)
    with pytest.raises(ApplyError, match=r"j:2: not a journal entry: "):
        mine.restore()
    assert (world.state["x", "a"], world.state["x", "b"]) == (3, 3)
    assert path.read_text() == odd + "\n"


def test_an_entity_that_is_gone_is_named_and_the_others_restored(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for entry in (Entry("x", "a", 3, 5), Entry("gone", "a", 3, 5), Entry("x", "gone", 3, 5), Entry("y", "a", 3, 5)):
        Journal(path).add(entry)
    world = World(start())
    mine = engine(world, path)
    with pytest.raises(ApplyError) as failed:
        mine.restore()
    assert str(failed.value) == (
        "x, gone: not restored: host x: no parameter gone; "
        "gone, a: not restored: gone: not an entity of this agent, which has x, y"
    )
    assert (world.state["x", "a"], world.state["y", "a"]) == (3, 3)
    assert Journal(path).read() == [Entry("gone", "a", 3, 5), Entry("x", "gone", 3, 5)]


def test_a_bug_in_one_parameter_does_not_keep_the_others(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for entry in (Entry("x", "a", 3, 5), Entry("x", "b", "no number", 5), Entry("y", "a", 3, 5)):
        Journal(path).add(entry)
    world = World(start())
    with pytest.raises(ApplyError, match=r"^x, b: not restored: ValueError: invalid literal"):
        engine(world, path).restore()
    assert (world.state["x", "a"], world.state["y", "a"]) == (3, 3)
    assert Journal(path).read() == [Entry("x", "b", "no number", 5)]


def test_what_went_wrong_is_said_before_what_then_did(tmp_path: Path) -> None:
    world = World(start())
    mine = engine(world, tmp_path / "j")
    mine.apply([Setting("x", "a", 2)])
    mine.entities.pop("x")
    with pytest.raises(ApplyError, match=r"^x: not an entity .*; and then: x, a: not restored: x: not an entity"):
        mine.apply([Setting("x", "b", 2)])


def test_a_value_no_plan_could_hold_is_refused_untouched(tmp_path: Path) -> None:
    world = World(start())
    mine = engine(world, tmp_path / "j")
    for value in (100, -1, "5", True, 1.0, "x=1 y=2"):
        with pytest.raises(ApplyError, match=r"^host x, b: want a whole number from 0 to 99; got "):
            mine.apply([Setting("x", "a", 2), Setting("x", "b", value)])
    assert world.seen == []


def test_the_journal_is_its_owners_alone(tmp_path: Path) -> None:
    Journal(tmp_path / "deep" / "j").add(Entry("x", "a", 1, 5))
    assert (tmp_path / "deep" / "j").stat().st_mode & 0o777 == 0o600


def test_a_journal_that_can_t_be_made_refuses_the_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    world = World(start())
    mine = engine(world, tmp_path / "file" / "j")
    with pytest.raises(ApplyError, match=r"^host x, a: not set: .*/file/j: the journal can't be written: "):
        mine.apply([Setting("x", "a", 2)])
    assert world.state == start()


@pytest.mark.root
def test_a_full_disk_refuses_the_change_and_leaves_the_journal_whole(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_full_disk.py")).endswith("nothing was changed\n")


def test_what_could_not_be_changed_need_not_be_restored(tmp_path: Path) -> None:
    """A value that can't be set, not even to what it is, leaves nothing to restore."""
    world = World(start())
    mine = engine(world, tmp_path / "j")
    world_step = world.step

    def read_only(what: str) -> None:
        world_step(what)
        if what == "apply x.b":
            raise ApplyError("host x, b: read-only")

    world.step = read_only  # type: ignore[method-assign]
    with pytest.raises(ApplyError, match=r"^host x, b: read-only$"):
        mine.apply([Setting("x", "a", 2), Setting("x", "b", 2)])
    assert world.state == start()
    assert not (tmp_path / "j").exists()
