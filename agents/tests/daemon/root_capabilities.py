# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: an agent of another user, with the capabilities of docs/security.md alone.

Started under `unshare --net --mount`; needs veth, HTB and BPF of the running kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.network import qdisc

from agents.tests.daemon.daemons import Caller, Daemon, calling, written
from agents.tests.own_host import with_eth0

ROOT = Path(__file__).parents[3]
BPF = "CAP_SYS_ADMIN"
NOBODY = 65534
VALUES: dict[str, int | str] = {
    "mtu": 1400, "tcp_sack": 0, "tcp_rmem": "4096 8192 16384", "net.core.somaxconn": "5000", "initcwnd": 20,
    "gro_flush": 20_000, "htb_rate": 10**8, "cc": "reno",
}  # fmt: skip


def documented() -> list[str]:
    """The capabilities in the table of docs/security.md."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(CAP_[A-Z_]+)` \|", text, re.MULTILINE)


def agent(folder: Path, capabilities: list[str]) -> tuple[Daemon, str]:
    """A daemon with these alone, and its address; not root's, as on a rack."""
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    tgen = shutil.copy2(os.environ.get("TESTCTL_TGEN", ROOT / "agents" / "tgen" / "tgen"), folder / "tgen")
    words = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in capabilities)])
    path = written(folder, devices={"alpha": "eth0"}, lease=True)
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--ambient-caps={words}"]
    before = ["setpriv", "--pdeathsig=KILL", "--no-new-privs", *user, f"--bounding-set={words}", f"--inh-caps={words}"]
    return Daemon(path, before=before, env={"TESTCTL_TGEN": str(tgen)}), f"unix:{folder}/alpha.sock"


def collect(caller: Caller, name: str, **options: int | str) -> None:
    caller.start(name, "collector", name, **options)
    status = caller.call("Stop", pb.StopRequest(task=name))
    assert status.ok, (name, status.error)


def check_all(caller: Caller, device: str, *, bpf: bool) -> None:
    before = caller.facts()
    caller.acquire()
    caller.set(**VALUES)
    assert caller.facts() != before
    caller.call("Restore")
    collect(caller, "capture", device=device)
    collect(caller, "tcp_info", interval_ns=10**6)
    collect(caller, "counters", devices=device)
    no_red = qdisc.unavailable("red")
    if bpf:
        for mark in ("ack", "data"):
            caller.set(htb_rate=10**8, htb_mark=mark, htb_ecn_threshold=30_000)
            caller.call("Restore")
        collect(caller, "tcp_events")
    else:
        refused(lambda: caller.set(htb_rate=10**8, htb_mark="ack", htb_ecn_threshold=30_000), "htb_mark: want ack; ")
        if no_red:
            words = f"htb_ecn_threshold: want 30000; {no_red}, so a BPF program has to mark data: "
            refused(lambda: caller.set(htb_rate=10**8, htb_ecn_threshold=30_000), words)
        refused(lambda: collect(caller, "tcp_events"))
    caller.call("Release")
    assert caller.facts() == before


def refused(attempt: Callable[[], object], words: str = "") -> None:
    """That an agent without a capability says that, and lives."""
    with pytest.raises(grpc.RpcError, match=f"{words}.*not permitted") as error:
        attempt()
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def main() -> None:
    with_eth0()
    whole = documented()
    assert BPF in whole, whole
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # tgen is found by who the agent is, not by what it may
        for name, capabilities in {"whole": whole, "less": [one for one in whole if one != BPF]}.items():
            daemon, address = agent(Path(folder) / name, capabilities)
            with calling(address) as caller:
                check_all(caller, "eth0", bpf=BPF in capabilities)
            assert daemon.end() == 0, daemon.log
    print(f"enough: {', '.join(whole)}")


if __name__ == "__main__":
    main()
