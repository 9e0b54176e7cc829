# SPDX-License-Identifier: Apache-2.0
"""Whether a run has a machine is not known without keys that can be used; then a playbook changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_rack import pki, reservation
from testctl_rack.in_use import in_use
from testctl_rack.inventory_file import Machine

ALPHA = Machine("alpha", "host", "127.0.0.1:9")


def test_before_the_first_deployment_no_run_has_a_machine(tmp_path: Path) -> None:
    assert in_use(ALPHA, tmp_path / "none") == ""
    pki.make(tmp_path, ["alpha"])
    (tmp_path / "controller.crt").unlink()
    assert in_use(ALPHA, tmp_path) == ""


def test_keys_that_can_not_be_used_are_not_no_keys(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"])
    (tmp_path / "controller.key").chmod(0o644)
    with pytest.raises(TestbedError, match=r"controller\.key: others can read this key"):
        in_use(ALPHA, tmp_path)


def test_keys_of_another_user_are_not_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(TestbedError, match=r"ca\.crt: Permission denied"):
        in_use(ALPHA, tmp_path)


def test_a_user_without_a_name_holds_a_lease_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a user whom its passwd does not have."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(reservation.getpass, "getuser", unknown)
    assert reservation.holder("a run").startswith(f"{os.getuid()}@")
