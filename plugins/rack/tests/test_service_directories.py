# SPDX-License-Identifier: Apache-2.0
"""Directories of a service's user, and links that it puts in the place of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.playbooks import Done, play_here

NOBODY = 65534
pytestmark = pytest.mark.alone


def owner(path: Path) -> int:
    return path.lstat().st_uid


def made(place: Path, *paths: Path) -> Done:
    """The role's tasks for directories of nobody."""
    role = {"ansible.builtin.include_role": {"name": "service_directories"}}
    given = {"service_directories_user": "nobody", "service_directories_paths": list(map(str, paths))}
    return play_here(place, [{"tasks": [role]}], **given)


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """The directory that a service's directories are in, and a victim beside it."""
    (tmp_path / "victim").mkdir(mode=0o700)
    return tmp_path / "service"


def test_directories_of_a_service(service: Path) -> None:
    done = made(service.parent, service / "results", service / "cache")
    assert done.code == 0, done.said
    assert [owner(path) for path in (service, service / "results", service / "cache")] == [0, NOBODY, NOBODY]
    assert made(service.parent, service / "results", service / "cache").changed == {"localhost": 0}


@pytest.mark.parametrize("earlier", [False, True])
def test_a_link_of_the_service_is_not_followed(service: Path, earlier: bool) -> None:
    """Nor in a directory that an earlier version has given to the user, with all that is in it."""
    service.mkdir()
    (service / "results").symlink_to(service.parent / "victim")
    if earlier:
        os.chown(service, NOBODY, NOBODY)
    done = made(service.parent, service / "results")
    assert done.code != 0
    assert "already exists as a link" in done.said
    assert owner(service) == owner(service.parent / "victim") == 0
    assert oct((service.parent / "victim").stat().st_mode) == "0o40700"


def test_a_directory_above_is_not_the_user_s(service: Path) -> None:
    (service / "deep").mkdir(parents=True)
    os.chown(service, NOBODY, NOBODY)
    done = made(service.parent, service / "deep" / "results")
    assert done.code != 0
    assert f"want directories of root above {service}/deep/results; got {service} of nobody" in done.said
    assert list((service / "deep").iterdir()) == []
