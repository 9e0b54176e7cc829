# SPDX-License-Identifier: Apache-2.0
"""What each machine of a rack says of itself: who has it, since when, who waits, what it runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.boot_notes import WAS

from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine, read_rack
from testctl_rack.mtls import ANSWER_S, Keys, describe, explain, open_channel, read_keys
from testctl_rack.reservation import described


def rack_status(path: Path) -> tuple[list[str], bool]:
    """One line for each machine, and whether all that are in service answer.  Changes nothing; needs no lease."""
    rack = read_rack(path)
    keys = read_keys(rack.keys)
    machines = list(rack.machines.values())
    with ThreadPoolExecutor(len(machines)) as pool:
        lines = list(pool.map(lambda machine: _line(machine, keys), machines))
    return [line for line, _ in lines], all(answers for _, answers in lines)


def _line(machine: Machine, keys: Keys) -> tuple[str, bool]:
    if machine.out_of_service:
        return f"{machine}: out of service: {machine.out_of_service}", True
    with open_channel(machine, keys) as channel:
        stub = Stub(channel)
        try:
            queue = stub.Queue(pb.QueueRequest(), timeout=ANSWER_S)
            about = describe(stub)
        except grpc.RpcError as error:
            return explain(str(machine), error), False
    once = f", for this boot; else {about.notes[WAS]}" if WAS in about.notes else ""
    return f"{machine}: {described(queue)}; Linux {about.kernel}{once}", True
