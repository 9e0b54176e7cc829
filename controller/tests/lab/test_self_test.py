# SPDX-License-Identifier: Apache-2.0
"""What a kernel has to show in its self-test, and how user processes of a lab run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from testctl.lab import boot_parameters
from testctl.lab.self_test import FILE, SECCOMP, Check, SelfTest, judged, kept
from testctl.system import checkout
from testctl_agent.spec.errors import PlanError

TREE = "reno cubic dctcp bbr cdg westwood vegas htcp illinois highspeed scalable"
BY_SECCOMP = b"\0seccomp=<on/auto/off>\0"


def facts(**given: Any) -> dict[str, Any]:
    mine = [path.stem.removeprefix("tcp_") for path in (checkout.lab() / "cc").glob("tcp_*.c")]
    good = {"late_ns": [256] * 8, "ports": [[1, 2], [1, 2], [3, 4]], "ccs": [*TREE.split(), *mine]}
    return good | given


def wrong(**given: Any) -> list[str]:
    return [check.name for check in judged(facts(**given)) if not check.ok]


def test_a_good_kernel() -> None:
    assert wrong() == []


def test_timers_of_a_coarse_clock() -> None:
    assert wrong(late_ns=[256] * 7 + [257]) == ["timers to the nanosecond"]
    assert wrong(late_ns=[-1] * 8) == ["timers to the nanosecond"]


def test_random_numbers_that_do_not_follow_the_seed() -> None:
    assert wrong(ports=[[1, 2], [1, 3], [3, 4]]) == ["random numbers by seed"]
    assert wrong(ports=[[1, 2], [1, 2], [1, 2]]) == ["random numbers by seed"]


def test_a_congestion_control_that_was_not_built() -> None:
    (check,) = [check for check in judged(facts(ccs=TREE.split())) if not check.ok]
    assert "areno" in check.got


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "linux").write_bytes(BY_SECCOMP)
    return tmp_path / "linux"


def test_user_processes_run_by_seccomp_where_the_self_test_saw_that_it_repeats(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECCOMP, raising=False)
    assert boot_parameters.parameters(kernel) == []
    SelfTest((Check("a", True, "b"),), seccomp=True).keep(kernel.parent)
    assert boot_parameters.parameters(kernel) == ["seccomp=auto"]
    assert boot_parameters.parameters(kernel, seccomp=False) == []
    monkeypatch.setenv(SECCOMP, "off")
    assert boot_parameters.parameters(kernel) == []
    SelfTest((), seccomp=False).keep(kernel.parent)
    monkeypatch.setenv(SECCOMP, "on")
    assert boot_parameters.parameters(kernel) == ["seccomp=auto"]
    kernel.write_bytes(b"an older kernel, to which the word is one of its first process")
    assert boot_parameters.parameters(kernel) == []
    monkeypatch.setenv(SECCOMP, "yes")
    with pytest.raises(PlanError, match="TESTCTL_LAB_SECCOMP: want on or off; got 'yes'"):
        boot_parameters.parameters(kernel)


def test_what_is_kept_beside_the_kernel(tmp_path: Path) -> None:
    assert kept(tmp_path) is None
    found = SelfTest((Check("timers", False, "1 or 2 ns late"), Check("other", True, "")), seccomp=True)
    found.keep(tmp_path)
    assert kept(tmp_path) == found
    assert found.summary == "failed: timers: 1 or 2 ns late"
    (tmp_path / FILE).write_text("{}")
    assert kept(tmp_path) is None


def test_words_of_the_environment_are_part_of_the_code_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(boot_parameters.SET, raising=False)
    assert boot_parameters.key() == ""
    monkeypatch.setenv(boot_parameters.SET, "slub_debug=FZ")
    assert len(boot_parameters.key()) == 16
    boot_parameters.check()
    for word in ("time-travel=off", "mem=1G", "seccomp=on"):
        monkeypatch.setenv(boot_parameters.SET, word)
        with pytest.raises(PlanError, match=f"got '{word}'"):
            boot_parameters.check()
