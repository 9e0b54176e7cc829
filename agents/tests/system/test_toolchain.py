# SPDX-License-Identifier: Apache-2.0
"""A cache that others may write to is refused: what is in it is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import toolchain

KINDS = ("kernels", "records", "boot", "tgen", "p4")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    toolchain.cache_dir()
    for name in KINDS:
        (tmp_path / "cache" / name).mkdir(mode=0o755)
    (tmp_path / "cache").chmod(0o755)
    toolchain._check_own.cache_clear()
    return tmp_path / "cache"


def test_ones_own_is_taken(cache: Path) -> None:
    assert toolchain.cache_dir() == cache


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("name", ["", *KINDS])
def test_one_that_others_may_write_to_is_refused(cache: Path, name: str, mode: int) -> None:
    (cache / name).chmod(mode)
    with pytest.raises(TestbedError, match=f"want a cache that only its user may write.*; got mode {mode:o} of"):
        toolchain.cache_dir()


def test_what_others_can_not_reach_may_be_as_it_is(cache: Path) -> None:
    """With a umask of 002 all that is made is writable by a group."""
    (cache / "kernels").chmod(0o775)
    cache.chmod(0o700)
    assert toolchain.cache_dir() == cache


@pytest.mark.root
def test_another_user_s_is_refused(cache: Path) -> None:
    os.chown(cache / "kernels", 12345, 12345)
    with pytest.raises(TestbedError, match="of user 12345"):
        toolchain.cache_dir()


def test_a_user_without_a_home_has_to_name_a_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user is in no passwd."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert toolchain.cache_dir() == cache
    monkeypatch.delenv("TESTCTL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(TestbedError, match="TESTCTL_CACHE: want a directory for what is built, or HOME; got none"):
        toolchain.cache_dir()
