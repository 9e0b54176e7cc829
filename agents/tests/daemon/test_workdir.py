# SPDX-License-Identifier: Apache-2.0
"""The working directory is the agent's alone: what it finds there it kills and removes."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.daemon import workdir
from testctl_agent.spec.errors import TestbedError

from agents.tests.daemon.daemons import refused_start, running, written


def test_it_is_made_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "work"
    workdir.own(folder)
    assert folder.stat().st_mode & 0o077 == 0
    (folder / "task").mkdir()
    workdir.own(folder)  # what lies in one that is marked is its own


def test_one_that_somebody_made_for_it_is_taken_when_it_is_empty(tmp_path: Path) -> None:
    workdir.own(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [workdir.MARK]


@pytest.mark.parametrize("name", ["precious", "lease-", "lease-3"])
def test_one_of_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a file")
    with pytest.raises(
        TestbedError, match=rf"^{tmp_path}: want the agent's own working directory.*; got one with {name}$"
    ):
        workdir.own(tmp_path)
    assert (tmp_path / name).exists()


def test_one_that_others_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(TestbedError, match=r"that nobody else may write to \(0700\); got mode 1777$"):
        workdir.own(tmp_path)


def test_a_mark_that_is_a_link_is_none(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / workdir.MARK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TestbedError, match=r"got one with .testctl-agent, elsewhere$"):
        workdir.own(tmp_path)


def test_another_s_program_that_logs_there_lives(tmp_path: Path) -> None:
    """Two agents by mistake with one directory: the second does not start, and the first's tasks go on."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "log").write_text("")
    code, said = refused_start(written(tmp_path, workdir=str(shared)))
    assert (code, "want the agent's own working directory" in said) == (3, True)
    with running(written(tmp_path)):
        pass
