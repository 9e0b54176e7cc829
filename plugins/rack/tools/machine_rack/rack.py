# SPDX-License-Identifier: Apache-2.0
"""A rack of machines is made, inspected and removed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from testctl.system.subprocesses import start
from testctl_agent.spec.errors import PlanError, TestbedError

from machine_rack import image, inventory, network, qemu
from machine_rack.plan import DESCRIPTION, Machine, MachineRack, load, plan

READY_S = {"kvm": 300.0, "tcg": 600.0}
MADE = {DESCRIPTION, "inventory", "keys", "machines", "net", "ssh", "ntp.pid", "ntp.log"}
"""What the directory of a rack has."""
ACCELS = ("auto", "kvm", "tcg")
TOOLS = Path(__file__).parents[1]


def is_machines(state: Path) -> bool:
    """Whether a directory is that of a rack of machines."""
    return (state / DESCRIPTION).exists()


def accel(wanted: str) -> str:
    """How QEMU runs a machine here: "kvm" or "tcg".  Raises PlanError."""
    if wanted not in ACCELS:
        raise PlanError(f"rack: --accel: want one of {', '.join(ACCELS)}; got {wanted!r}")
    there = _kvm()
    if wanted == "kvm" and not there:
        raise PlanError("rack: --accel kvm: want /dev/kvm and a processor with vmx or svm; got none")
    return "kvm" if there and wanted != "tcg" else "tcg"


def _kvm() -> bool:
    """Whether KVM runs a machine here.  Some hosts have a /dev/kvm that only runs kernels made for it."""
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and not flags.isdisjoint({"vmx", "svm"})


def up(state: Path, hosts: int, management: str, how: str, clocks: dict[str, float]) -> None:
    """All or nothing: what was made before an error goes again."""
    if state.exists():
        raise TestbedError(
            f"rack: want a directory that does not exist yet; got {state} (plugins/rack/tools/rack down)"
        )
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {text}", flush=True)

    if why := image.lacking():
        raise TestbedError(f"rack: {why}")
    # Planned before the image is made, which takes minutes.
    network.refuse(plan(state, hosts, Path(), accel(how), management, clocks))
    rack = plan(state, hosts, image.image(say), accel(how), management, clocks)
    complete = False
    try:
        (state / "net").mkdir(parents=True)
        state.chmod(0o700)
        rack.save()
        network.up(rack)
        folder = inventory.write(rack)
        _serve_time(rack)
        for machine in rack.machines:
            qemu.overlay(rack, machine)
            qemu.on(rack, machine)
        say(f"{len(rack.machines)} machines switched on ({rack.accel})")
        for machine in rack.machines:
            await_ssh(rack, machine)
            say(f"{machine.name} answers SSH")
        complete = True
    finally:
        if not complete:
            down(state)
    for machine in rack.machines:
        devices = " ".join(nic.device for nic in machine.nics[1:])
        print(f"{machine.name:8} {machine.kind:7} {machine.management:12} {devices}")
    print(f"inventory: {folder}")


def _serve_time(rack: MachineRack) -> None:
    process = start(
        [sys.executable, "-m", "machine_rack.ntp", rack.controller], log=rack.state / "ntp.log",
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
    )  # fmt: skip
    (rack.state / "ntp.pid").write_text(str(process.pid), encoding="ascii")


def await_ssh(rack: MachineRack, machine: Machine, ready_s: float = 0.0) -> None:
    """Until the machine's SSH server answers.  Raises TestbedError with the last lines of its console."""
    ready_s = ready_s or READY_S[rack.accel]
    end = time.monotonic() + ready_s
    while time.monotonic() < end:
        if not qemu.pid(rack.dir(machine)):
            log = (rack.dir(machine) / "qemu.log").read_text(encoding="utf-8", errors="replace").strip()
            raise TestbedError(f"rack, {machine.name}: its QEMU ended: {log or 'it printed nothing'}")
        with suppress(OSError), socket.create_connection((machine.management, 22), 2.0) as connection:
            connection.settimeout(10.0)
            if connection.recv(4) == b"SSH-":
                return
        time.sleep(0.2)
    console = qemu.console(rack, machine) or "nothing"
    raise TestbedError(
        f"rack, {machine.name}: want its SSH server at {machine.management} within {ready_s:g} s; got none; the last "
        f"lines of its console:\n{console}"
    )


def down(state: Path) -> None:
    """Remove all.  Raises PlanError for a directory that is no rack's, TestbedError when something is left."""
    others = {path.name for path in state.iterdir()} - MADE if state.exists() else set()
    if others:
        raise PlanError(
            f"rack: want --state with the directory of a rack of machines, and nothing else in it; got {state}, which "
            f"has {', '.join(sorted(others))}; nothing is removed"
        )
    if state.exists():
        with suppress(TestbedError):
            rack = load(state)
            for machine in rack.machines:
                qemu.off(rack, machine)
        _end_time(state)
        for path in (state / "ssh").glob("[0-9]*.*"):
            path.unlink(missing_ok=True)
    if network.belongs_to() in (state, None):
        network.down()
    if state.exists():
        shutil.rmtree(state)
    if left := [*processes(state), *network.devices()]:
        raise TestbedError(f"rack: not all is removed: {', '.join(left)}")
    print("left: 0 processes, 0 devices, 0 files")


def _end_time(state: Path) -> None:
    with suppress(OSError, ValueError):
        number = int((state / "ntp.pid").read_text(encoding="ascii"))
        if b"machine_rack.ntp" in Path(f"/proc/{number}/cmdline").read_bytes():
            os.kill(number, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(number, 0)


def processes(state: Path) -> list[str]:
    """The processes that belong to a rack, by the words of their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if command.startswith(qemu.PROGRAM) and f"{state}/" in command:
                found.append(f"process {path.parent.name} {command[:60]}")
    return found


def status(state: Path) -> int:
    """Print what there is; 0 when all machines are on."""
    rack = load(state)
    states = {one.name: qemu.pid(rack.dir(one)) for one in rack.machines}
    for machine in rack.machines:
        number = states[machine.name]
        print(f"{machine.name:8} {machine.kind:7} {machine.management:12} {f'process {number}' if number else 'off'}")
    return 0 if all(states.values()) else 1


def power(state: Path, what: str, name: str) -> None:
    """on, off, cycle, console of one machine."""
    rack = load(state)
    machine = rack.of(name)
    match what:
        case "on":
            qemu.on(rack, machine)
        case "off":
            qemu.off(rack, machine)
        case "cycle":
            qemu.off(rack, machine)
            qemu.on(rack, machine)
        case "console":
            print(qemu.console(rack, machine))
