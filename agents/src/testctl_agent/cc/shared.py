# SPDX-License-Identifier: Apache-2.0
"""Congestion controls that hosts of one machine borrow: registered as BPF, or allowed in namespaces.

Both are of the whole kernel: a registered one is there for every namespace, and which of the kernel's own may be
a namespace's default, net.ipv4.tcp_allowed_congestion_control, only the first namespace says.  So what one host
needs is shared, and goes with its last user:

    /run/testctl/cc/gate   locked by who borrows or gives back
    /run/testctl/cc/NAME   locked, shared, by every user for as long as it uses NAME; says what was done for it

A lock ends with its process, however that ends.  Who finds a NAME that nobody has locked takes back what was
done for it: sweep(), at the start of every run.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from testctl_agent.bpf.libbpf import unregister_struct_ops
from testctl_agent.cc.compile import BPF, compiled
from testctl_agent.cc.struct_ops import available, register
from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable
from testctl_agent.system.namespace import join

STATE = Path("/run/testctl/cc")
SOURCES = "TESTCTL_CC"
"""Names a directory of tcp_NAME.c (lab/cc), beside those that agents bring along."""

_OWN = Path(__file__).parent / "bpf"
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_FIRST = Path("/proc/1/ns/net")
_LOCKS = Path("/proc/locks")
"""1: FLOCK  ADVISORY  READ 123 00:1a:4711 0 EOF, and, of who waits for it, 1: -> FLOCK …"""
_BYTES = 256  # of a file
_held: dict[str, int] = {}
"""Name → the open, locked file of each that this process uses."""


def source_of(name: str) -> Path | None:
    """The file that is compiled to BPF for a congestion control; None where there is none."""
    given = os.environ.get(SOURCES)
    for folder in (_OWN, *([Path(given)] if given else [])):
        path = folder / f"tcp_{name}.c"
        if path.is_file() and (folder == _OWN or "TESTCTL_CC" in path.read_text(encoding="utf-8")):
            return path
    return None


def fingerprint(given: Path) -> str:
    """Hash of all that is compiled to BPF, with the sources of a directory."""
    digest = hashlib.sha256()
    for path in sorted(one for folder in (_OWN, given) for one in folder.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def borrow(name: str, state: Path = STATE) -> None:
    """Have it registered, by the kernel or as BPF, until give_back().

    Raises Unavailable when the kernel has it not and can't have it as BPF, ProgramError, TestbedError.
    """
    if name in _held:
        return
    with _gate(state):
        _sweep(state)
        file = state / name
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _register(name, lock)
        except TestctlError:
            if not _said(lock):
                file.unlink()
            os.close(lock)
            raise
        fcntl.flock(lock, fcntl.LOCK_SH)
        _held[name] = lock


def allow(name: str, state: Path = STATE) -> None:
    """Let every namespace have as its default what this process has borrowed.  Raises Unavailable."""
    lock = _held[name]
    with _gate(state):
        said = _said(lock)
        try:
            if name not in _allowed():
                _remember(lock, said | {"allowed": True})
                _allow(name, True)
        except OSError as error:
            raise Unavailable(
                "not allowed in namespaces: add it to net.ipv4.tcp_allowed_congestion_control of the first one "
                f"({error.strerror})"
            ) from error


def give_back(name: str, state: Path = STATE) -> None:
    """This process uses it no longer; its last user takes back what was done for it."""
    lock = _held.pop(name, None)
    if lock is None:
        return
    with _gate(state):
        os.close(lock)
        _sweep(state)


def held() -> list[str]:
    return list(_held)


def there(state: Path = STATE) -> list[str]:
    """What is borrowed by any process, or was by one that is gone."""
    return sorted(path.name for path in state.glob("*") if path.name != "gate")


def sweep(state: Path = STATE) -> list[str]:
    """Take back what nobody uses; its names.  Nothing for a user to whom the directory is closed."""
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK, effective_ids=True) or not there(state):
        return []
    with _gate(state):
        return _sweep(state)


def in_use(state: Path = STATE) -> list[str]:
    """What is borrowed just now, by a process that lives.  It only looks: no lock is tried."""
    try:
        held = {line.split()[5].rpartition(":")[2] for line in _LOCKS.read_text(encoding="ascii").splitlines()}
        return [name for name in there(state) if str((state / name).stat().st_ino) in held]
    except OSError:
        return []


def _sweep(state: Path) -> list[str]:
    taken = []
    for name in there(state):
        file = state / name
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _take_back(file, lock)
        taken.append(name)
    return taken


def _take_back(file: Path, lock: int) -> None:
    said = _said(lock)
    if said.get("allowed"):
        with suppress(OSError):  # it is gone, and with it that it was allowed
            _allow(file.name, False)
    if said.get("source"):
        unregister_struct_ops(file.name)
    file.unlink()
    os.close(lock)


def _register(name: str, lock: int) -> None:
    """Register it if nobody did; it is written down before."""
    said, source = _said(lock), source_of(name)
    if name in available():
        if source and said.get("source") not in (None, _key(source)):
            raise TestbedError(f"{name}: another version of {source} is in use by a run that goes on; wait for its end")
        return
    if source is None:
        have = ", ".join(sorted(available()))
        raise Unavailable(f"this kernel has {have}, and there is no BPF program for {name}")
    _remember(lock, {"source": _key(source)})
    try:
        register(source)
    except TestbedError as error:
        _remember(lock, {})
        raise Unavailable(str(error)) from error


def _key(source: Path) -> str:
    return hashlib.sha256(compiled(source, BPF).read_bytes()).hexdigest()[:16]


def _said(lock: int) -> dict[str, object]:
    """What was done for the users of a file."""
    said: dict[str, object] = json.loads(os.pread(lock, _BYTES, 0) or b"{}")
    return said


def _remember(lock: int, said: Mapping[str, object]) -> None:
    """In one write, which a kill does not cut."""
    os.pwrite(lock, json.dumps(said).encode().ljust(_BYTES), 0)


@contextmanager
def _gate(state: Path) -> Iterator[None]:
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (state / "gate").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _in_first(what: str | None) -> str:
    """Read, or write and read, the list of what is allowed: the first namespace alone has it."""
    got: list[str] = []
    failed: list[OSError] = []

    def there() -> None:
        try:
            join(_FIRST)
            if what is not None:
                _ALLOWED.write_text(what, encoding="ascii")
            got.append(_ALLOWED.read_text(encoding="ascii"))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=there)  # only a thread moves there, and ends there
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return got[0]


def _allowed() -> list[str]:
    return _in_first(None).split()


def _allow(name: str, wanted: bool) -> None:
    others = [one for one in _allowed() if one != name]
    _in_first(" ".join([*others, *([name] if wanted else [])]))
