# SPDX-License-Identifier: Apache-2.0
"""What the doctor looks at, and what he does not insist on."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.cli import doctor


def test_what_other_testbeds_want_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with no program at all the lab's are missing, and those of namespaces may be."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = {one.what: one for one in doctor.examine()}
    root = found["netns: root"]
    assert (root.ok, root.optional, root.fix) == (False, True, "run it with sudo")
    assert (found["gcc"].ok, found["gcc"].optional, found["gcc"].fix) == (
        False,
        False,
        "sudo apt-get install build-essential",
    )


@pytest.mark.lab
def test_a_built_kernel_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {one.what: one for one in doctor.examine()}
    assert found["lab kernel 6.12"].ok
    assert "ip" in found
    assert not {"gcc", "make", "clang", "flex"} & set(found)
