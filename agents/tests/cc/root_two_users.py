# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: a host whose congestion control another one has registered uses it, too.

Started under `unshare --net --mount`.  /run is its own, with what agents note there.
"""

from __future__ import annotations

import subprocess
import sys

from testctl_agent.cc import shared
from testctl_agent.cc.struct_ops import available
from testctl_agent.params.entity import Entity
from testctl_agent.params.host import cc

NAME = "dctcp_bug"
HOST = Entity("near", "host", ("lo",))
OTHER = f"""
import sys
from testctl_agent.cc import shared
shared.acquire("{NAME}")
print("has it", flush=True)
sys.stdin.readline()
shared.release("{NAME}")
"""


def main() -> None:
    if NAME in available():
        print(f"somebody else has registered {NAME}")
        return
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)
    before = str(cc.read(HOST, "cc"))
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"has it\n"
        cc.apply(HOST, "cc", NAME)
        assert shared.held() == [NAME], shared.held()
    assert NAME in available()
    cc.apply(HOST, "cc", before)
    assert NAME not in available()
    print("all is as before")


if __name__ == "__main__":
    main()
