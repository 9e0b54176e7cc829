# SPDX-License-Identifier: Apache-2.0
"""Runs as root: this namespace is a router between two hosts, one of whose links has a smaller MTU.

Started under `unshare --net --mount`; the hosts' namespaces go with their processes.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from agents.tests.own_host import entered, run

NEAR, FAR = "10.1.0.2", "10.2.0.2"
_END = """
import json, sys
from pathlib import Path
from testctl_agent.generators import probe
sys.stdin.readline()
task = probe.task(json.loads(sys.argv[1]), Path("."))
task.start()
print("ready", flush=True)
task.wait(60) if sys.argv[2] == "client" else sys.stdin.readline()
task.stop()
print(json.dumps(task.result()), flush=True)
"""


@contextlib.contextmanager
def host(side: str, network: int, device: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a namespace of its own, linked to this one; it begins on a signal."""
    options |= {"side": side, "seed": 3, "port": 7407}
    argv = ["unshare", "--net", sys.executable, "-c", _END, json.dumps(options), side]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        entered(process.pid)
        run(f"ip link add {device} type veth peer name eth0 netns {process.pid}")
        inside = f"nsenter --net=/proc/{process.pid}/ns/net"
        run(f"ip addr add 10.{network}.0.1/24 dev {device}")
        run(f"ip link set {device} up")
        run(f"{inside} ip addr add 10.{network}.0.2/24 dev eth0")
        run(f"{inside} ip link set eth0 up")
        run(f"{inside} ip route add default via 10.{network}.0.1")
        yield process
    finally:
        process.kill()
        process.wait()
        subprocess.run(["ip", "link", "del", device], check=False, capture_output=True)  # it may have gone by itself


def tell(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return process.stdout.readline()


def probed(size: int, *commands: str) -> dict[str, Any]:
    """What the client finds after the commands, in which {far} is how a command is run at the far host."""
    with (
        host("server", 2, "far", address=FAR, peer=NEAR) as server,
        host("client", 1, "near", address=FAR, bind=NEAR, bytes=size) as client,
    ):
        for command in commands:
            run(command.format(far=f"nsenter --net=/proc/{server.pid}/ns/net"))
        assert tell(server) == "ready\n"
        assert tell(client) == "ready\n"
        assert client.stdout is not None
        found: dict[str, Any] = json.loads(client.stdout.readline())
        print({name: found[name] for name in ("bytes", "passes", "largest_forward", "largest_backward")})
        tell(server)
        return found


def main() -> None:
    run("sysctl -qw net.ipv4.ip_forward=1")
    found = probed(1500)
    assert (found["passes"], found["largest"]) == (True, 1500)
    # the router's device: what comes from near is refused there; a veth takes a VLAN tag more than its MTU
    found = probed(1500, "ip link set far mtu 1400")
    assert (found["passes"], found["largest_forward"], found["largest_backward"]) == (False, 1400, 1404)
    assert found["why"].startswith(f"from {NEAR} to {FAR} packets of 1500 bytes do not arrive, the largest that do")
    # the far host's own device
    found = probed(1500, "{far} ip link set eth0 mtu 1280")
    assert (found["largest_forward"], found["largest_backward"]) == (1284, 1280)
    # one way alone
    found = probed(1500, "ip route replace 10.2.0.0/24 dev far mtu lock 1300")
    assert (found["passes"], found["largest_forward"], found["largest_backward"]) == (False, 1300, 1500)
    assert found["why"] == f"from {NEAR} to {FAR} packets of 1500 bytes do not arrive, the largest that do have 1300"
    # jumbo asked for where no device has it
    found = probed(9000)
    assert (found["passes"], found["largest"]) == (False, 1500)
    print("done")


if __name__ == "__main__":
    main()
