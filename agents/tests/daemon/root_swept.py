# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: a killed agent's BPF congestion control is taken back by the next one.

Started under `unshare --net --mount`; needs what compiles and loads BPF.  /run is its own, with what agents note there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from testctl_agent.cc.struct_ops import available

from agents.tests.daemon.daemons import Caller, Daemon, calling, written
from agents.tests.own_host import run

NAME = "dctcp_bug"


def has_it_set(caller: Caller) -> None:
    caller.acquire()
    caller.set(cc=NAME)
    assert NAME in available()


def main() -> None:
    if NAME in available():
        print(f"somebody else has registered {NAME}")
        return
    run("mount -t tmpfs run /run")
    run("ip link set lo up")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, address = written(folder, lease=True), f"unix:{folder}/alpha.sock"
        daemon = Daemon(path)
        with calling(address) as caller:
            before = caller.facts()
            has_it_set(caller)
        daemon.kill()
        assert NAME in available()
        daemon = Daemon(path)
        assert NAME not in available()
        assert f"took back congestion controls of an agent that was killed: {NAME}" in daemon.log
        with calling(address) as caller:
            assert caller.facts() == before
            has_it_set(caller)
            caller.call("Release")
            assert NAME not in available()
        assert daemon.end() == 0
    print("taken back")


if __name__ == "__main__":
    main()
