# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: an agent that is killed at random moments while it changes its host.

Started under `unshare --net --mount`; needs veth and HTB of the running kernel.  A second process is the
controller: the agent's own threads must not be in step with it.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from pathlib import Path

import grpc

from agents.tests.daemon.daemons import Caller, Daemon, calling, written
from agents.tests.engine.snapshot import differ
from agents.tests.own_host import with_eth0

KILLS, IN_THE_MIDST, MAX_KILLS = 30, 5, 300
"""So many at least, so many of them between an Apply and its Restore, and no more than that."""
DIES_TOO = ["setpriv", "--pdeathsig=KILL"]
VALUES: dict[str, int | str] = {
    "mtu": 1400, "tcp_sack": 0, "tcp_rmem": "4096 8192 16384", "tcp_ecn": 1, "initcwnd": 20, "gro_flush": 20_000,
    "htb_rate": 10**8, "htb_buffer": 50_000, "cc": "reno",
}  # fmt: skip


def change(caller: Caller, stop: threading.Event) -> None:
    """Apply and Restore until the agent is gone."""
    try:
        while not stop.is_set():
            caller.set(**VALUES)
            caller.call("Restore")
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            raise


def measured(caller: Caller) -> float:
    """How long a round of Apply and Restore takes here and now."""
    caller.acquire()
    begin = time.monotonic()
    caller.set(**VALUES)
    caller.call("Restore")
    took_s = time.monotonic() - begin
    caller.call("Release")
    return took_s


def main() -> None:
    with_eth0()
    chance = random.Random(7)
    kills = journals = changed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder, devices={"alpha": "eth0"}, lease=True)
        address = f"unix:{folder}/alpha.sock"
        daemon = Daemon(path, before=DIES_TOO)
        with calling(address) as caller:
            before = caller.facts()
            round_s = measured(caller)
        while kills < KILLS or (changed < IN_THE_MIDST and kills < MAX_KILLS):
            with calling(address) as caller:
                caller.acquire()
                stop = threading.Event()
                changing = threading.Thread(target=change, args=(caller, stop))
                changing.start()
                time.sleep(chance.uniform(0, 2 * round_s))
                daemon.kill()
                stop.set()
                changing.join()
            kills += 1
            journals += (folder / "journal.jsonl").exists()
            changed += Path("/proc/sys/net/ipv4/tcp_sack").read_text() == "0\n"
            daemon = Daemon(path, before=DIES_TOO)
            with calling(address) as caller:
                after = caller.facts()
            assert after == before, differ(before, after)
            assert not (folder / "journal.jsonl").exists()
        assert daemon.end() == 0
    assert changed >= IN_THE_MIDST, f"{changed} of {kills} kills came between Apply and Restore"
    print(f"{kills} kills, {journals} with a journal, {changed} with a changed host; all is as before")


if __name__ == "__main__":
    main()
