# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of a machine that deploys no rack."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from testctl.cli import doctor


def test_what_a_rack_wants_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    found = {one.what: one for one in doctor.examine()}
    for name in ("rack: ansible", "rack: ansible-playbook", "rack: ssh"):
        assert (found[name].ok, found[name].optional) == (False, True), name
        assert found[name].fix
