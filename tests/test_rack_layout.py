# SPDX-License-Identifier: Apache-2.0
"""What deploy.yml does with the state directory of an earlier version, which was its user's.

Each case is a directory that Ansible takes for a host of that name.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOBODY = 65534
CASES = ("killed", "planted", "interrupted", "new")
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: agent, tasks_from: old_layout}
"""
pytestmark = pytest.mark.root


def old(case: Path) -> Path:
    """A state directory as earlier versions made it, of an agent that was killed."""
    state = case / "state"
    (state / "work" / "lease-1").mkdir(parents=True)
    (state / "journal.jsonl").write_text("kept\n", encoding="utf-8")
    (state / "packages").write_text("tcpdump\nopenssh-server\n", encoding="utf-8")
    for path in [state, *state.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    return state


def planted(state: Path) -> None:
    """Links in place of all that was there."""
    victim = state.parent / "victim"
    victim.mkdir(mode=0o700)
    (victim / "file").write_text("tcpdump\n", encoding="utf-8")
    for name in ("work", "packages", "journal.jsonl"):
        (state / name).rename(state / f"{name}.away")
    (state / "packages").symlink_to(victim / "file")
    for name in ("work", "agent", "journal.jsonl"):
        (state / name).symlink_to(victim)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases after the role's tasks, which then change nothing more."""
    place = tmp_path_factory.mktemp("layout")
    (place / "new").mkdir()
    old(place / "killed")
    planted(old(place / "planted"))
    interrupted = old(place / "interrupted")
    os.chown(interrupted, 0, 0)
    (interrupted / "agent").mkdir()
    run(place)
    assert set(re.findall(r"changed=(\d+)", run(place))) == {"0"}
    return place


def run(place: Path) -> str:
    known = {
        case: {"ansible_connection": "local", "ansible_python_interpreter": sys.executable,
               "agent_state": str(place / case / "state"), "agent_config": str(place / case / "etc")}
        for case in CASES
    }  # fmt: skip
    (place / "hosts.json").write_text(json.dumps({"all": {"hosts": known}}), encoding="utf-8")
    (place / "play.yml").write_text(PLAY, encoding="utf-8")
    more = {"agent_unit": "testctl-none", "agent_service": str(place / "none"), "agent_kind": "host",
            "ansible_facts": {"service_mgr": "none"}}  # fmt: skip
    env = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                        "ANSIBLE_ROLES_PATH": str(ROOT / "playbooks" / "roles"), "LC_ALL": "C.UTF-8"}  # fmt: skip
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(place / "hosts.json")]
    done = subprocess.run(
        [*argv, str(place / "play.yml"), "-e", json.dumps(more)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False, env=env, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def owner(path: Path) -> int:
    return path.lstat().st_uid


def test_the_journal_and_the_packages_of_this_role_are_kept(upgraded: Path) -> None:
    state = upgraded / "killed" / "state"
    assert owner(state) == 0
    assert [path.name for path in state.iterdir()] == ["agent"]
    assert (state / "agent" / "journal.jsonl").read_text(encoding="utf-8") == "kept\n"
    assert (upgraded / "killed" / "etc" / "packages").read_text(encoding="utf-8") == "tcpdump\n"


def test_links_of_the_agents_user_are_not_followed(upgraded: Path) -> None:
    victim = upgraded / "planted" / "victim"
    assert owner(victim) == owner(victim / "file") == 0
    assert oct(victim.stat().st_mode) == "0o40700"
    assert [path.name for path in victim.iterdir()] == ["file"]
    assert not (upgraded / "planted" / "etc").exists()
    agent = upgraded / "planted" / "state" / "agent"
    assert agent.is_dir()
    assert not agent.is_symlink()


def test_an_upgrade_that_was_broken_off_is_finished(upgraded: Path) -> None:
    state = upgraded / "interrupted" / "state"
    assert (state / "agent" / "journal.jsonl").read_text(encoding="utf-8") == "kept\n"
    assert not (state / "journal.jsonl").exists()


def test_a_host_without_an_agent_is_left_alone(upgraded: Path) -> None:
    assert list((upgraded / "new").iterdir()) == []
