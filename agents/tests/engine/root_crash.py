# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: an agent that is killed at random moments while it changes its host.

Started under `unshare --net --mount`; needs veth and HTB of the running kernel.  A second process is the
controller: the agent's own threads must not be in step with it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).parents[3]))
from agents.tests.engine.daemons import Caller, Daemon, calling, written

KILLS = 30
LONGEST_S = 0.05
"""A round of Apply and Restore takes less."""
VALUES: dict[str, int | str] = {
    "mtu": 1400, "tcp_sack": 0, "tcp_rmem": "4096 8192 16384", "tcp_ecn": 1, "initcwnd": 20, "gro_flush": 20_000,
    "htb_rate": 10**8, "htb_buffer": 50_000, "cc": "reno",
}  # fmt: skip


def run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def change(caller: Caller, stop: threading.Event) -> None:
    """Apply and Restore until the agent is gone."""
    try:
        while not stop.is_set():
            caller.set(**VALUES)
            caller.call("Restore")
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            raise


def main() -> None:
    run("mount -t sysfs sys /sys")
    run("ip link add eth0 type veth peer name far")
    for command in ("addr add 10.0.0.1/16 dev eth0", "link set far up", "link set eth0 up", "link set lo up"):
        run(f"ip {command}")
    chance = random.Random(7)
    found_changed = journals = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder, devices={"alpha": "eth0"}, lease=True)
        address = f"unix:{folder}/alpha.sock"
        daemon = Daemon(path)
        with calling(address) as caller:
            before = caller.facts()
        for _ in range(KILLS):
            with calling(address) as caller:
                caller.acquire()
                stop = threading.Event()
                changing = threading.Thread(target=change, args=(caller, stop))
                changing.start()
                time.sleep(chance.uniform(0, LONGEST_S))
                daemon.kill()
                stop.set()
                changing.join()
            journals += (folder / "journal.jsonl").exists()
            found_changed += Path("/proc/sys/net/ipv4/tcp_sack").read_text() == "0\n"
            daemon = Daemon(path)
            with calling(address) as caller:
                after = caller.facts()
            assert after == before, {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v}
            assert not (folder / "journal.jsonl").exists()
        assert daemon.end() == 0
    assert found_changed > 0, "no kill came between Apply and Restore"
    print(f"{KILLS} kills, {journals} with a journal, {found_changed} with a changed host; all is as before")


if __name__ == "__main__":
    main()
