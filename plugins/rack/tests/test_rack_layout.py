# SPDX-License-Identifier: Apache-2.0
"""Directories of a service's user: the state directory of an earlier version of the agent, and links that a user puts
in the place of a directory.

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

ROOT = Path(__file__).parents[3]
NOBODY = 65534
CASES = ("killed", "planted", "interrupted", "new")
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: agent, tasks_from: old_layout}
"""
pytestmark = pytest.mark.alone


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
    done = playbook(place, str(place / "hosts.json"), "-e", json.dumps(more))
    assert done.returncode == 0, done.stdout
    return done.stdout


def playbook(place: Path, inventory: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                        "ANSIBLE_ROLES_PATH": str(ROOT / "playbooks" / "roles"), "LC_ALL": "C.UTF-8"}  # fmt: skip
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", inventory, str(place / "play.yml"), *words]
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=env, timeout=300
    )


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


SERVICE = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: service_directories}
"""


def made(place: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """The role's tasks for directories of nobody."""
    (place / "play.yml").write_text(SERVICE, encoding="utf-8")
    more = {"service_directories_user": "nobody", "service_directories_paths": list(map(str, paths)),
            "ansible_python_interpreter": sys.executable}  # fmt: skip
    return playbook(place, "localhost,", "-c", "local", "-e", json.dumps(more))


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """The directory that a service's directories are in, and a victim beside it."""
    (tmp_path / "victim").mkdir(mode=0o700)
    return tmp_path / "service"


def test_directories_of_a_service(service: Path) -> None:
    done = made(service.parent, service / "results", service / "cache")
    assert done.returncode == 0, done.stdout
    assert [owner(path) for path in (service, service / "results", service / "cache")] == [0, NOBODY, NOBODY]
    assert "changed=0" in made(service.parent, service / "results", service / "cache").stdout


@pytest.mark.parametrize("earlier", [False, True])
def test_a_link_of_the_service_is_not_followed(service: Path, earlier: bool) -> None:
    """Nor in a directory that an earlier version has given to the user, with all that is in it."""
    service.mkdir()
    (service / "results").symlink_to(service.parent / "victim")
    if earlier:
        os.chown(service, NOBODY, NOBODY)
    done = made(service.parent, service / "results")
    assert done.returncode != 0
    assert "already exists as a link" in done.stdout
    assert owner(service) == owner(service.parent / "victim") == 0
    assert oct((service.parent / "victim").stat().st_mode) == "0o40700"


def test_a_directory_above_is_not_the_user_s(service: Path) -> None:
    (service / "deep").mkdir(parents=True)
    os.chown(service, NOBODY, NOBODY)
    done = made(service.parent, service / "deep" / "results")
    assert done.returncode != 0
    assert f"want directories of root above {service}/deep/results; got {service} of nobody" in done.stdout
    assert list((service / "deep").iterdir()) == []
