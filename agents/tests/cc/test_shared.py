# SPDX-License-Identifier: Apache-2.0
"""Congestion controls that several processes use: registered once, gone with the last, however it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.cc import shared
from testctl_agent.cc.struct_ops import available, unavailable
from testctl_agent.spec.errors import Unavailable

from agents.tests.cc.sources import SOURCES

USER = """
import sys
from testctl_agent.cc import shared
from pathlib import Path
state, name = Path(sys.argv[1]), sys.argv[2]
shared.acquire(name, state)
print("has it", flush=True)
if sys.stdin.readline() == "give back\\n":
    shared.release(name, state)
"""

pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-")]


def user(state: Path, name: str = "dctcp_bug") -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", USER, str(state), name], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "has it\n"
    return process


def test_the_last_user_takes_it_away(tmp_path: Path) -> None:
    if "dctcp_bug" in available():
        pytest.skip("somebody has registered dctcp_bug")
    with user(tmp_path) as one, user(tmp_path) as other:
        one.communicate("give back\n")
        assert "dctcp_bug" in available()
        assert shared.remove_unused(tmp_path) == []
        other.kill()
        other.wait()
    assert "dctcp_bug" in available()  # nobody uses it, and nobody has looked
    assert shared.remove_unused(tmp_path) == ["dctcp_bug"]
    assert "dctcp_bug" not in available()
    assert [path.name for path in tmp_path.iterdir()] == ["gate"]


def test_the_next_agent_takes_back_what_a_killed_one_had(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).parents[1] / "daemon" / "root_swept.py")
    if said.startswith("somebody else"):
        pytest.skip(said)
    assert said == "taken back\n"


def test_a_host_that_finds_it_registered_uses_it_too(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).with_name("root_two_users.py"))
    if said.startswith("somebody else"):
        pytest.skip(said)
    assert said == "all is as before\n"


def test_who_uses_it_is_seen_without_a_lock(tmp_path: Path) -> None:
    if "dctcp_bug" in available():
        pytest.skip("somebody has registered dctcp_bug")
    with user(tmp_path) as one:
        assert shared.in_use(tmp_path) == ["dctcp_bug"]
        one.kill()
        one.wait()
    assert shared.in_use(tmp_path) == []
    assert shared.remove_unused(tmp_path) == ["dctcp_bug"]


def test_what_the_kernel_has_itself_is_nobodys(tmp_path: Path) -> None:
    """An attestation leaves out what is in use: it would miss one that stays, as long as another run uses it."""
    with user(tmp_path, "reno"):
        assert shared.there(tmp_path) == ["reno"]
        assert shared.in_use(tmp_path) == []


def test_a_directory_that_is_closed_to_a_user_is_not_swept(tmp_path: Path) -> None:
    assert shared.remove_unused(tmp_path / "nowhere") == []
    assert list(tmp_path.iterdir()) == []


def test_what_there_is_no_program_of(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"this kernel has .*, and there is no BPF program for nosuch"):
        shared.acquire("nosuch", tmp_path)


def test_an_interrupt_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str, lock: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shared, "_register", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shared.acquire("dctcp_bug", tmp_path)
    assert not (tmp_path / "dctcp_bug").exists()


def test_a_source_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shared.SOURCES, str(SOURCES[0].parent))
    found = [shared.source_of(name) for name in ("dctcp_bug", "areno", "nosuch")]
    assert [path and path.parent.name for path in found] == ["bpf", "cc", None]
