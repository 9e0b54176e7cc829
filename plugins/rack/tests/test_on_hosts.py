# SPDX-License-Identifier: Apache-2.0
"""Words of hosts are no templates of Ansible's on the controller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_rack import menus
from testctl_rack.on_hosts import _result, on_hosts


def test_ansible_evaluates_nothing_of_a_word(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.write_text("alpha ansible_connection=local\n", encoding="utf-8")
    evil = f"{{{{ lookup('pipe', 'touch {tmp_path}/owned') }}}}"
    with pytest.raises(TestbedError, match=r"boot_once\.py on alpha: want words of .*; got .\{\{ lookup"):
        on_hosts(inventory, ["alpha"], menus.SCRIPT, ["once", evil, "6.1", "10"])
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("where", ["stderr", "module_stderr"])
def test_a_script_that_failed_is_quoted_with_its_last_words(tmp_path: Path, where: str) -> None:
    trace = "Traceback (most recent call last):\n" + "  File x\n" * 100 + "TimeoutExpired: update-grub"
    (tmp_path / "alpha").write_text(json.dumps({"msg": "non-zero return code", "stdout": "", where: trace}))
    error = _result(tmp_path / "alpha", "")["error"]
    assert error.startswith("Ansible: ")
    assert error.endswith("TimeoutExpired: update-grub")
    assert len(error) < 520
