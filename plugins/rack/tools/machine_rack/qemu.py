# SPDX-License-Identifier: Apache-2.0
"""One machine: its QEMU is started, killed as a power cut is, reset, and its console read."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from testctl.system.subprocesses import run, start
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.untrusted import words
from testctl_rack.power import CURSOR

from machine_rack import disk, qmp
from machine_rack.plan import Machine, MachineRack, Nic

PROGRAM = "qemu-system-x86_64"
CONSOLE = "console.log"
CPU = {"kvm": "host", "tcg": "Nehalem"}
"""Without AVX, which TCG emulates slowly: a boot takes 26 s of a processor instead of 37."""
GONE_S = 20.0


def overlay(rack: MachineRack, machine: Machine) -> None:
    """The machine's own disk: what it writes, over the image."""
    folder = rack.dir(machine)
    folder.mkdir(parents=True)
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(rack.image / disk.NAME),
         str(folder / "disk.qcow2")])  # fmt: skip


def argv(rack: MachineRack, machine: Machine, now: datetime) -> list[str]:
    """The command line of a machine that is switched on now."""
    folder = rack.dir(machine)
    nics = [f"{nic.device},{nic.mac}{f',{nic.address}' if nic.address else ''}" for nic in machine.nics]
    identity = " ".join([machine.name, rack.controller, *nics]).replace(",", ",,")
    clock = (now + timedelta(seconds=machine.clock_s)).strftime("%Y-%m-%dT%H:%M:%S") if machine.clock_s else "utc"
    found = [
        PROGRAM, "-name", f"{rack.state}/{machine.name}", "-machine", "q35,usb=off,vmport=off,smm=off",
        "-accel", rack.accel if rack.accel == "kvm" else "tcg,tb-size=256", "-cpu", CPU[rack.accel], "-smp", "1",
        "-m", str(rack.memory_mb), "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none",
        "-rtc", f"base={clock},clock=host",
        "-smbios", f"type=1,serial={identity}",
        "-chardev", f"file,id=console,path={folder / CONSOLE},append=on", "-serial", "chardev:console",
        "-qmp", f"unix:{folder / 'qmp'},server=on,wait=off", "-pidfile", str(folder / "pid"),
        "-drive", f"if=none,id=disk,file={folder / 'disk.qcow2'},format=qcow2,cache=writeback,discard=unmap",
        "-device", "virtio-blk-pci,drive=disk", "-device", "virtio-rng-pci",
    ]  # fmt: skip
    for nic in machine.nics:
        found += ["-netdev", _netdev(rack, machine, nic)]
        found += ["-device", f"{nic.model},netdev={nic.device},id=nic-{nic.device},mac={nic.mac},romfile="]
    return found


def _netdev(rack: MachineRack, machine: Machine, nic: Nic) -> str:
    if not nic.peer:
        return f"tap,id={nic.device},ifname={machine.tap},script=no,downscript=no"
    here, there = rack.socket(f"{machine.name}-{nic.device}"), rack.socket(nic.peer)
    return f"dgram,id={nic.device},local.type=unix,local.path={here},remote.type=unix,remote.path={there}"


def on(rack: MachineRack, machine: Machine) -> None:
    """Switch a machine on; it boots.  Raises TestbedError when it runs already, or QEMU does not start."""
    folder = rack.dir(machine)
    if pid(folder):
        raise TestbedError(f"rack, {machine.name}: want it off; its QEMU runs as process {pid(folder)}")
    process = start(argv(rack, machine, datetime.now(UTC)), log=folder / "qemu.log", env=os.environ)
    until = time.monotonic() + GONE_S
    while not (folder / "pid").exists():
        if process.poll() is not None or time.monotonic() > until:
            words_ = (folder / "qemu.log").read_text(encoding="utf-8", errors="replace").strip()
            raise TestbedError(f"rack, {machine.name}: QEMU does not start: {words_ or 'it says nothing'}")
        time.sleep(0.02)


def off(rack: MachineRack, machine: Machine) -> None:
    """Cut a machine's power: what it has not written to its disk is lost.  No error where it is off already."""
    folder = rack.dir(machine)
    if number := pid(folder):
        os.kill(number, signal.SIGKILL)
        until = time.monotonic() + GONE_S
        while _alive(number):
            if time.monotonic() > until:
                raise TestbedError(f"rack, {machine.name}: want its QEMU gone; process {number} does not end")
            time.sleep(0.02)
    (folder / "pid").unlink(missing_ok=True)


def reset(rack: MachineRack, machine: Machine) -> None:
    """Press the reset button."""
    qmp.ask(rack.dir(machine) / "qmp", "system_reset")


def link(rack: MachineRack, machine: Machine, device: str, up: bool) -> None:
    """Plug or unplug a machine's cable: its NIC sees no carrier."""
    qmp.ask(rack.dir(machine) / "qmp", "set_link", name=device, up=up)


def pid(folder: Path) -> int:
    """The process of the machine's QEMU; 0 when it is off."""
    try:
        number = int((folder / "pid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    with suppress(OSError):
        command = Path(f"/proc/{number}/cmdline").read_bytes()
        if str(folder / "pid").encode() in command.split(b"\0") and _alive(number):
            return number
    return 0


def _alive(number: int) -> bool:
    """Whether a thread of a process is left: the first may be gone while another still holds the disk's lock."""
    with suppress(ChildProcessError):
        os.waitpid(number, os.WNOHANG)
    for thread in Path("/proc").glob(f"{number}/task/*/stat"):
        with suppress(OSError):
            state = thread.read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            if state not in ("Z", "X"):
                return True
    return False


def console(rack: MachineRack, machine: Machine, lines: int = 60) -> str:
    """The last lines of a machine's console."""
    try:
        text = (rack.dir(machine) / CONSOLE).read_bytes()[-65536:].decode("utf-8", errors="replace")
    except OSError:
        return ""
    text = CURSOR.sub("", text).replace("\r", "\n")
    kept = [words(line.strip()) for line in text.split("\n") if line.strip()]
    return "\n".join(kept[-lines:])
