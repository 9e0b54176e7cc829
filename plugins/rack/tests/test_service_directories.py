# SPDX-License-Identifier: Apache-2.0
"""Directories of a service's user, and links that it puts in the place of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOBODY = 65534
pytestmark = pytest.mark.alone


def owner(path: Path) -> int:
    return path.lstat().st_uid


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
    env = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                        "ANSIBLE_ROLES_PATH": str(ROOT / "playbooks" / "roles"), "LC_ALL": "C.UTF-8"}  # fmt: skip
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local"]
    return subprocess.run(
        [*argv, "-e", json.dumps(more), str(place / "play.yml")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False, env=env, timeout=300,
    )  # fmt: skip


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
