# SPDX-License-Identifier: Apache-2.0
"""Words of hosts are no templates of Ansible's on the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_rack import menus
from testctl_rack.on_hosts import on_hosts


def test_ansible_evaluates_nothing_of_a_word(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.write_text("alpha ansible_connection=local\n", encoding="utf-8")
    evil = f"{{{{ lookup('pipe', 'touch {tmp_path}/owned') }}}}"
    with pytest.raises(TestbedError, match=r"boot_once\.py on alpha: want words of .*; got .\{\{ lookup"):
        on_hosts(inventory, ["alpha"], menus.SCRIPT, ["once", evil, "6.1", "10"])
    assert not (tmp_path / "owned").exists()
