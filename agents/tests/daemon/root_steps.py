# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: an agent that dies before each single thing it does to its host.

Started under `unshare --net --mount` with what HTB is to mark; needs veth, HTB and BPF of the running kernel.
What it does is a request to netlink, a system call to BPF, or a file that it opens for writing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from testctl_agent.bpf import load
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.attest import attest
from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.network import netlink
from testctl_agent.spec.types import Value

from agents.tests.engine.snapshot import differ
from agents.tests.own_host import with_eth0

VALUES: dict[str, Value] = {
    "mtu": 1400, "gro": True, "tso": False, "gro_flush": 20_000, "tcp_sack": 0, "initcwnd": 20, "cc": "reno",
    "htb_rate": 10**8, "htb_buffer": 50_000, "htb_burst": 10_000, "htb_ecn_threshold": 20_000,
    "htb_mark": sys.argv[1],
}  # fmt: skip
DIED, DONE = 9, 0


def engine(folder: Path) -> Engine:
    return assemble(AgentConfig("alpha", "host", {"alpha": "eth0"}, folder / "work", folder / "journal")).engine


def die_before(last: int) -> None:
    """From here on this process ends before the step with this number."""
    steps = 0

    def step() -> None:
        nonlocal steps
        if steps == last:
            os._exit(DIED)
        steps += 1

    def opened(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            step()

    def stepping(call: Any) -> Any:
        def stepped(*arguments: Any) -> Any:
            step()
            return call(*arguments)

        return stepped

    sys.addaudithook(opened)
    netlink.Netlink._send = stepping(netlink.Netlink._send)  # type: ignore[method-assign]
    load._bpf = stepping(load._bpf)


def dies(last: int, folder: Path, *, apply: bool) -> bool:
    """Whether an agent that is to die before a step of its work did, or came to the work's end."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (DIED, DONE), code
        return code == DIED
    die_before(last)
    mine = engine(folder)
    if apply:
        mine.apply([Setting("alpha", name, value) for name, value in VALUES.items()])
    mine.restore()
    os._exit(DONE)


def main() -> None:
    with_eth0()
    steps = changed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = attest(["eth0"])
        while dies(steps, folder, apply=True):
            changed += attest(["eth0"]) != before
            dies(steps % 40, folder, apply=False)  # the one that restores dies too
            engine(folder).restore()
            after = attest(["eth0"])
            assert after == before, f"step {steps}: {differ(before, after)}"
            assert not (folder / "journal").exists()
            steps += 1
    assert steps > changed > len(VALUES)
    print(f"{steps} deaths, {changed} with a changed host; all is as before")


if __name__ == "__main__":
    main()
