# SPDX-License-Identifier: Apache-2.0
"""What a kernel's log reports of the kernel itself is found, with its text; what any boot says is no fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testctl.lab import kernel_log
from testctl.lab.kernel_log import faults

BOOT = """<5>Linux version 6.12.117 (gcc-12 (Debian 12.2.0-14) 12.2.0) #1
<6>RCU Tasks Trace: Setting shift to 0 and lim to 1 rcu_task_cb_adjust=1.
<6>printk: legacy console [stderr0] disabled
<4>Warning: unable to open an initial console.
<6>random: crng init done
<6>tcp_bbr: debugging information follows
"""
WARNING = """<4>------------[ cut here ]------------
<4>testctl_fault: a warning on purpose
<4>WARNING: CPU: 0 PID: 1 at net/ipv4/testctl/lab_fault.c:24 warn+0x4f/0x60
<4>CPU: 0 UID: 0 PID: 1 Comm: swapper Not tainted 6.12.117 #1
<4>Call Trace:
<4> [<6002a1b3>] ? warn+0x4f/0x60
<4>---[ end trace 0000000000000000 ]---
"""
REPORTS = {
    "BUG: KASAN: slab-use-after-free in tcp_ack+0x1f/0x30": "a sanitizer",
    "UBSAN: shift-out-of-bounds in net/ipv4/tcp_input.c:100:20": "a sanitizer",
    "WARNING: possible circular locking dependency detected": "lockdep",
    "WARNING: suspicious RCU usage": "lockdep",
    "INFO: task kworker/0:1 blocked for more than 122 seconds.": "a task that hangs",
    "kernel BUG at net/core/skbuff.c:200!": "a BUG",
    "BUG: unable to handle page fault for address: 0000000000000010": "an oops",
    "BUG kmalloc-32 (Not tainted): Right Redzone overwritten": "an object of the allocator",
    "BUG skbuff_head_cache (Tainted: G    B): Poison overwritten": "an object of the allocator",
    "ODEBUG: free active (active state 0) object: 0000000061a0c0de object type: timer_list": "an object",
    "list_add corruption. prev->next should be next": "a list",
    "unregister_netdevice: waiting for eth0 to become free. Usage count = 2": "a leak",
}


def test_a_boot_is_no_fault() -> None:
    assert faults(BOOT) == []


@pytest.mark.parametrize("times", [False, True])
def test_a_warning_is_found_with_its_text(times: bool) -> None:
    log = BOOT + WARNING + "<6>eth0: renamed\n"
    if times:
        log = re.sub(r"^(<\d>)", r"\1[   20.000333] ", log, flags=re.MULTILINE)
    (text,) = faults(log)
    assert text.startswith(
        "testctl_fault: a warning on purpose\nWARNING: CPU: 0 PID: 1 at net/ipv4/testctl/lab_fault.c"
    )
    assert text.endswith("---[ end trace 0000000000000000 ]---")
    assert "renamed" not in text


@pytest.mark.parametrize("line", REPORTS)
def test_other_reports(line: str) -> None:
    (text,) = faults(f"{BOOT}<3>{line}\n<3>more of it\n")
    assert text.startswith(line)
    assert "more of it" in text


def test_many_are_counted() -> None:
    found = faults(WARNING * 20)
    assert len(found) == kernel_log.MOST_FAULTS + 1
    assert found[-1] == "and 12 more reports"


def test_a_log_that_has_lost_it_still_fails(tmp_path: Path) -> None:
    words = "a warning, by the kernel's taints; its log has no longer the text"
    assert faults(BOOT, 1 << 9) == [words]
    file = tmp_path / "kernel.log"
    file.write_text(f"512\n{BOOT}")
    assert kernel_log.read(file) == [words]
    file.write_text(f"0\n{BOOT}")
    assert kernel_log.read(file) == []
    assert kernel_log.read(tmp_path / "none") == []
