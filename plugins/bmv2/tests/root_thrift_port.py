# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: who reaches the Thrift port of a BMv2 that has devices.

BMv2's place is taken by a program that listens as it does: on all addresses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from testctl_bmv2 import simple_switch

from agents.tests.own_host import another, run

STAND_IN = """\
#!{python}
import signal, socket, sys
words = sys.argv
thrift = socket.create_server(("::", int(words[words.index("--thrift-port") + 1])), family=socket.AF_INET6,
                              dualstack_ipv6=True)
grpc = socket.socket(socket.AF_UNIX)
grpc.bind(words[words.index("--grpc-server-addr") + 1].removeprefix("unix:"))
grpc.listen()
signal.pause()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.0)"


def reached(address: str, port: int, *before: str) -> bool:
    argv = [*before, sys.executable, "-c", CONNECT, address, str(port)]
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0


def tables() -> str:
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout


def main() -> None:
    with another() as far, tempfile.TemporaryDirectory() as folder:
        inside = ["nsenter", f"--target={far}", "--net", "--"]
        run(f"ip link add eth0 type veth peer name eth1 netns {far}")
        for words in ("link set lo up", "addr add 10.0.0.1/24 dev eth0", "addr add fd00::1/64 dev eth0 nodad",
                      "link set eth0 up"):  # fmt: skip
            run(f"ip {words}")
        for words in ("addr add 10.0.0.2/24 dev eth1", "addr add fd00::2/64 dev eth1 nodad", "link set eth1 up"):
            run(f"{' '.join(inside)} ip {words}")
        tried(Path(folder), inside)
    print("closed")


def tried(folder: Path, inside: list[str]) -> None:
    program = folder / "program"
    program.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    os.environ[simple_switch.VARIABLE] = str(program)
    place = folder / "switch"
    switch = simple_switch.start({1: "eth0"}, place)
    port = int((place / "thrift").read_text(encoding="ascii"))
    assert switch.thrift is not None
    assert reached("127.0.0.1", port)
    assert not reached("10.0.0.1", port, *inside)
    assert not reached("fd00::1", port, *inside)
    subprocess.run(["nft", "delete", "table", "inet", f"testctl_bmv2_{port}"], check=True)
    assert reached("10.0.0.1", port, *inside), "it was the rule"
    assert reached("fd00::1", port, *inside)
    switch.close()
    switch = simple_switch.start({1: "eth0"}, place)
    assert "testctl_bmv2_" in tables()
    switch.process.kill()
    switch.process.wait()
    simple_switch.end_stale(place)
    assert tables() == "", "also after an agent that was killed"


if __name__ == "__main__":
    main()
