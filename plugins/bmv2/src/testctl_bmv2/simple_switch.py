# SPDX-License-Identifier: Apache-2.0
"""One process of BMv2 (simple_switch_grpc): found, started, waited for, ended.

It dies with the thread that started it (PR_SET_PDEATHSIG, set by util-linux's setpriv), and a file
says which process it is, so that one left behind all the same is ended by the next that starts under
the same name.  P4Runtime is served at a unix socket beside that file.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import subprocesses
from testctl_agent.system.toolchain import cache_dir

from testctl_bmv2 import thrift_port
from testctl_bmv2.thrift import SimpleSwitch

VARIABLE = "TESTCTL_BMV2"
PROGRAM = "simple_switch_grpc"
START_S, THRIFT_S, END_S = 30.0, 3.0, 5.0
_POLL_S = 0.01


def find() -> Path | None:
    """simple_switch_grpc: what $TESTCTL_BMV2 names, or else the one on PATH."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or PROGRAM)
    return Path(found) if found else None


def unavailable() -> str:
    """Why BMv2 can't be run here; "" when it can."""
    if find() is None:
        where = os.environ.get(VARIABLE)
        return f"want {PROGRAM} {f'at ${VARIABLE}={where}' if where else f'on PATH or at ${VARIABLE}'}; got none"
    return "" if shutil.which("setpriv") else "want setpriv (util-linux) on PATH; got none"


def run_directory() -> Path:
    """Where sockets and process files lie: of this network namespace only.

    root's in /run; another user's in its cache (TESTCTL_CACHE, which a deployment sets), where nobody else makes files.
    """
    inode = os.stat("/proc/thread-self/ns/net").st_ino
    base = Path("/run/testctl") if os.geteuid() == 0 else cache_dir()
    return base / f"bmv2-{inode}"


def own(directory: Path) -> None:
    """Make a directory of this user alone.  Raises TestbedError for one that others made or may write to."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (directory, directory.parent):
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise TestbedError(
                    f"BMv2: {path}: want a directory of user {os.geteuid()} that nobody else may write to; got "
                    f"{stat.filemode(found.st_mode)} of user {found.st_uid}"
                )
    except OSError as error:
        raise TestbedError(f"BMv2: {directory}: can't be made: {error.strerror}") from error


def _began(pid: int) -> str:
    """When a process started, in ticks since boot (proc(5), stat field 22); "" when there is none or it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def free_port() -> int:
    """A TCP port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Switch:
    """A running BMv2.

    address  of P4Runtime, as gRPC takes it
    packets  of the data plane over gRPC, "" when it has devices
    thrift   None when it was built without Thrift
    log      its output
    """

    process: subprocesses.Process
    address: str
    packets: str
    thrift: SimpleSwitch | None
    directory: Path

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def check(self) -> None:
        """Raise TestbedError, with its last words, if it has ended."""
        if self.process.poll() is not None:
            raise TestbedError(f"{PROGRAM}: it ended (exit {self.process.returncode}): {_last_words(self.log)}")

    def close(self) -> None:
        """End it and take away its files; a second call does nothing."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(END_S)
            except subprocesses.WaitTimeout:
                self.process.kill()
                self.process.wait()
        _forget(self.directory)


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return " / ".join(lines[-3:]) or "no output"


def _forget(directory: Path) -> None:
    closed = directory / "thrift"
    if closed.exists():
        if (port := closed.read_text(encoding="ascii")).isdecimal():  # a full disk leaves none, and no port was closed
            thrift_port.forget(int(port))
        closed.unlink()
    for name in ("pid", "grpc", "packets", "log"):
        (directory / name).unlink(missing_ok=True)
    if directory.exists():
        directory.rmdir()


def end_stale(directory: Path) -> None:
    """End the process that an agent which died left behind, and take away its files."""
    note = directory / "pid"
    if note.exists():
        pid, _, began = note.read_text(encoding="ascii").strip().partition(" ")
        if pid.isdigit() and began and _began(int(pid)) == began:
            os.kill(int(pid), signal.SIGKILL)
            until = time.monotonic() + END_S
            while _began(int(pid)) == began and time.monotonic() < until:
                time.sleep(_POLL_S)
    _forget(directory)


def start(ports: Mapping[int, str], directory: Path, packets: bool = False, device: int = 0) -> Switch:
    """Start BMv2 without a program in this network namespace, and wait until it listens.

    ports      P4 port → network device
    directory  for its files, made here; what was there of an earlier one is ended first
    packets    instead of devices, serve the data plane over gRPC
    With devices its Thrift port is closed to all but this host first; without, for tests alone, it is not.
    Raises TestbedError: not found, did not start, did not listen in time.
    """
    if reason := unavailable():
        raise TestbedError(f"BMv2: {reason}")
    own(directory)  # before anything in it is believed
    end_stale(directory)
    own(directory)
    thrift = free_port()
    if ports:
        (directory / "thrift").write_text(str(thrift), encoding="ascii")
        _closed(directory, thrift)
    argv = ["setpriv", "--pdeathsig", "KILL", "--", str(find()), "--no-p4", "--device-id", str(device)]
    argv += ["--thrift-port", str(thrift)]
    for number, name in ports.items():
        argv += ["-i", f"{number}@{name}"]
    argv += ["--", "--grpc-server-addr", f"unix:{directory / 'grpc'}"]
    if packets:
        argv += ["--dp-grpc-server-addr", f"unix:{directory / 'packets'}"]
    process = subprocesses.start(argv, directory / "log", directory / "log")
    switch = Switch(process, f"unix:{directory / 'grpc'}", f"unix:{directory / 'packets'}" if packets else "", None,
                    directory)  # fmt: skip
    try:
        (directory / "pid").write_text(f"{process.pid} {_began(process.pid)}\n", encoding="ascii")
        _wait(switch)
        client = _thrift(switch, thrift)
    except OSError as error:
        switch.close()
        raise TestbedError(f"BMv2: {directory}: {error}") from error
    except BaseException:
        switch.close()
        raise
    return replace(switch, thrift=client)


def _closed(directory: Path, port: int) -> None:
    try:
        thrift_port.close(port)
    except TestbedError:
        (directory / "thrift").unlink()
        _forget(directory)
        raise


def _listens(address: str | tuple[str, int]) -> bool:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe:
        code = probe.connect_ex(address)
    if code == errno.ENETUNREACH:
        raise TestbedError(f"{PROGRAM}: want this network namespace's loopback up, for its Thrift server; it is down")
    return code == 0


def _thrift(switch: Switch, port: int) -> SimpleSwitch | None:
    """Its Thrift server, which listens a moment after the others; None when it was built without."""
    until = time.monotonic() + THRIFT_S
    while not _listens(("127.0.0.1", port)):
        switch.check()
        if time.monotonic() > until:
            return None
        time.sleep(_POLL_S)
    return SimpleSwitch(port)


def _wait(switch: Switch) -> None:
    until = time.monotonic() + START_S
    sockets = [name for name in ("grpc", "packets" if switch.packets else "") if name]
    while not all(_listens(str(switch.directory / name)) for name in sockets):
        switch.check()
        if time.monotonic() > until:
            raise TestbedError(f"{PROGRAM}: want it to listen within {START_S:g} s; {_last_words(switch.log)}")
        time.sleep(_POLL_S)
