# SPDX-License-Identifier: Apache-2.0
"""plugins/rack/tools/rack up, down, status, changes; with machines also on, off, cycle, console."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from machine_rack import plan as machines_plan
from machine_rack import rack as machines
from testctl.system.subprocesses import run
from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError

from simulated_rack import hosts, inventory, leftovers, network
from simulated_rack.changes import changes
from simulated_rack.host_init import OVERLAID
from simulated_rack.plan import MANAGEMENT, SimulatedRack, plan

POWER = ("on", "off", "cycle", "console")
"""What is done to one machine."""
BEFORE = "before.json"
MADE = {BEFORE, "inventory", "keys", "nodes", "ssh"}
"""What a rack's directory has, once it is whole."""


def main() -> None:
    words = argparse.ArgumentParser(
        prog="plugins/rack/tools/rack", description="A rack of namespaces or of machines, on this machine."
    )
    words.add_argument("do", choices=["up", "down", "status", "changes", *POWER])
    words.add_argument("name", nargs="?", default="", help="of a machine: on, off, cycle, console")
    words.add_argument("--state", type=Path, default=Path(".rack"), help="directory of all its files (.rack)")
    words.add_argument("--hosts", type=int, default=2, help="how many hosts (2); there is one switch")
    words.add_argument(
        "--management", help=f"network of the SSH servers ({MANAGEMENT}; of machines {machines_plan.MANAGEMENT})"
    )
    words.add_argument("--machines", action="store_true", help="machines with kernels of their own, in QEMU")
    words.add_argument("--accel", default="auto", help="how QEMU runs machines: kvm, tcg, auto (kvm where it is)")
    words.add_argument(
        "--clock", action="append", default=[], metavar="NAME=SECONDS", help="a machine's clock when it is switched on"
    )
    given = words.parse_args()
    state = given.state.resolve()
    try:
        if os.geteuid() != 0:
            raise PlanError("rack: want root, to make namespaces and devices; got another user")
        match given.do:
            case "up" if given.machines:
                management = given.management or machines_plan.MANAGEMENT
                machines.up(state, given.hosts, management, given.accel, _clocks(given.clock))
            case "up":
                up(plan(state, given.hosts, given.management or MANAGEMENT))
            case "down" if machines.is_machines(state):
                machines.down(state)
            case "down":
                down(state)
            case "changes":
                print("\n".join(changes(state)))
            case "status":
                sys.exit(machines.status(state) if machines.is_machines(state) else status(state))
            case power:
                machines.power(state, power, given.name)
    except TestctlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def _clocks(given: list[str]) -> dict[str, float]:
    """NAME=SECONDS of the command line.  Raises PlanError."""
    found = {}
    for word in given:
        name, _, seconds = word.partition("=")
        try:
            found[name] = float(seconds)
        except ValueError as error:
            raise PlanError(f"rack: --clock: want NAME=SECONDS such as alpha=3.5; got {word!r}") from error
    return found


def up(rack: SimulatedRack) -> None:
    """All or nothing: what was made before an error goes again."""
    state = rack.state
    if state.exists():
        raise TestbedError(
            f"rack: want a directory that does not exist yet; got {state} (plugins/rack/tools/rack down)"
        )
    if any(state.is_relative_to(place) for place in OVERLAID):
        raise PlanError(f"rack: want --state outside of {', '.join(OVERLAID)}, which the nodes overlay; got {state}")
    before = leftovers.seen(state)
    network.refuse(rack)
    complete = False
    try:
        network.up(rack)
        hosts.furnish(rack)
        (state / BEFORE).write_text(json.dumps(before), encoding="utf-8")
        hosts.open_all(rack)
        folder = inventory.write(rack)
        complete = True
    finally:
        if not complete:
            down(state)
    for node in rack.nodes:
        print(f"{node.name:8} {node.kind:7} {node.management:12} {' '.join(node.devices)} {node.address}")
    print(f"inventory: {folder}")


def down(state: Path) -> None:
    """Remove all; says what is left, and fails when something is.

    Raises PlanError, before anything is touched, for a directory that is no rack's.
    """
    if state.exists() and not _is_racks(state):
        raise PlanError(f"rack: want --state with the directory of a rack; got {state}, which is none")
    known = leftovers.net_inodes()
    try:
        before = json.loads((state / BEFORE).read_text(encoding="utf-8"))
    except OSError:
        # Not known: what deployments leave counts as having been there.
        before = {kind: these if kind in ("users", "files") else [] for kind, these in leftovers.seen(state).items()}
        before["files"] = [name for name in before["files"] if name != str(state)]
    _hang_up(state)
    hosts.close_all(network.namespaces())
    network.down()
    if state.exists():
        shutil.rmtree(state)
    after = leftovers.seen(state, known)
    print("left: " + ", ".join(f"{len(after[kind])} {kind} (before: {len(before[kind])})" for kind in after))
    if left := leftovers.differences(before, after):
        raise TestbedError("rack: not all is as before:\n  " + "\n  ".join(left))


def _is_racks(state: Path) -> bool:
    """Whether a directory is one that `up` made, be it half."""
    if not state.is_dir():
        return False
    found = {path.name for path in state.iterdir()}
    return BEFORE in found or found <= MADE


def _hang_up(state: Path) -> None:
    """End the connections that ssh keeps open for Ansible."""
    for path in (state / "ssh").glob("[0-9]*.*"):
        try:
            run(["ssh", "-F", "none", "-o", f"ControlPath={path}", "-O", "exit", path.name])
        except TestbedError:
            path.unlink(missing_ok=True)  # a socket that nobody listens at


def status(state: Path) -> int:
    """Print what there is; 0 when a rack is up, 1 when there is none."""
    found = leftovers.seen(state)
    for kind, these in found.items():
        print(f"{kind}: {', '.join(these) or 'none'}")
    return 0 if found["namespaces"] else 1


if __name__ == "__main__":
    main()
