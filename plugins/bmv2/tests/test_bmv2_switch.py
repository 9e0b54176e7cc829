# SPDX-License-Identifier: Apache-2.0
"""BMv2 as the switch on the running kernel.  bmv2_switch.py is what runs, in namespaces that go with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_bmv2 import simple_switch

MISSING = simple_switch.unavailable()


@pytest.mark.alone
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_switch(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).with_name("bmv2_switch.py"), timeout_s=300)
    assert said.endswith("all is as before\n")


@pytest.mark.parametrize("how", ["link", "writable", "above"])
def test_a_directory_that_others_may_have_made(tmp_path: Path, how: str) -> None:
    """Nothing in it is believed: its socket would be P4Runtime's, its number the one of a process to be killed."""
    above = tmp_path / "testctl"
    above.mkdir()
    directory = above / "bmv2-1"
    if how == "link":
        (tmp_path / "theirs").mkdir()
        directory.symlink_to(tmp_path / "theirs")
    elif how == "writable":
        directory.mkdir()
        directory.chmod(0o777)
    else:
        above.chmod(0o777)
    with pytest.raises(TestbedError, match=r"want a directory of user .* that nobody else may write to; got"):
        simple_switch.own(directory)


def test_its_directory_is_the_agent_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one below /tmp, where anybody may be first."""
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert simple_switch.run_directory().parent == tmp_path
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert simple_switch.run_directory().parent == Path("/run/testctl")
