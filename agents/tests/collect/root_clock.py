# SPDX-License-Identifier: Apache-2.0
"""Runs as root: two namespaces with a veth between them, and one clock; the offset is 0 within its error.

Started under `unshare --net --mount`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from testctl_agent.collect import clock

from agents.tests.own_host import entered, run

NEAR, FAR = "10.0.0.1", "10.0.0.2"
_SERVER = f"""
import sys
from pathlib import Path
from testctl_agent.collect import clock
sys.stdin.readline()
task = clock.task({{"side": "server", "address": "{FAR}", "peer": "{NEAR}", "seed": 9}}, Path("."))
task.start()
print("ready", flush=True)
sys.stdin.readline()
task.stop()
print(task.result()["answered"], flush=True)
"""


def main() -> None:
    far = subprocess.Popen(
        ["unshare", "--net", sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert far.stdin is not None
        assert far.stdout is not None
        entered(far.pid)
        run(f"ip link add eth0 type veth peer name eth0 netns {far.pid}")
        for address, where in ((NEAR, ""), (FAR, f"nsenter --net=/proc/{far.pid}/ns/net")):
            run(f"{where} ip addr add {address}/24 dev eth0".strip())
            run(f"{where} ip link set eth0 up".strip())
        far.stdin.write("go\n")
        far.stdin.flush()
        assert far.stdout.readline() == "ready\n"
        options = {"side": "client", "address": FAR, "bind": NEAR, "seed": 9, "count": 200, "interval_ns": 10**6}
        asking = clock.task(options, Path("."))
        asking.start()
        assert asking.wait(60)
        found = asking.result()
        print(
            {name: found[name] for name in ("offset_ns", "error_ns", "error_run_ns", "drift_ppm", "samples", "rtt_ns")}
        )
        assert abs(found["offset_ns"]) <= found["error_ns"] <= found["error_run_ns"]
        assert found["samples"] > 100
        far.stdin.write("end\n")
        far.stdin.flush()
        assert int(far.stdout.readline()) >= found["samples"]
    finally:
        far.kill()
        far.wait()
    print("done")


if __name__ == "__main__":
    main()
