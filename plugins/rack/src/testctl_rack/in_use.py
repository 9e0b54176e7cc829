# SPDX-License-Identifier: Apache-2.0
"""python -m testctl_rack.in_use NAME LISTEN KEYS: exit 3, and who has it, where a run has a machine; else 0.

Playbooks ask this before they change a machine.  A machine whose agent does not answer, or that has no certificate yet,
is in no run: what is wrong with it may be what the playbook is to repair.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grpc
from testctl.system.say import say
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError

from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine
from testctl_rack.mtls import ANSWER_S, open_channel, read_keys
from testctl_rack.reservation import FREE, described


def in_use(machine: Machine, keys: Path) -> str:
    """Who has a machine, its lease or the next one, and until when; "" where nobody has.

    Raises TestbedError for keys that are there and can't be used: then nobody knows.
    """
    try:
        with open_channel(machine, read_keys(keys)) as channel:
            user = described(Stub(channel).Queue(pb.QueueRequest(), timeout=ANSWER_S))
    except grpc.RpcError:
        return ""
    except TestbedError as error:
        if isinstance(error.__cause__, FileNotFoundError):  # no certificate yet
            return ""
        raise
    return "" if user == FREE else user


if __name__ == "__main__":
    try:
        user = in_use(Machine(sys.argv[1], "host", sys.argv[2]), Path(sys.argv[3]))
    except TestbedError as error:
        sys.exit(str(error))
    if user:
        say(user, sys.stdout)
        sys.exit(3)
