# SPDX-License-Identifier: Apache-2.0
"""Reference counts of congestion controls that the hosts of one machine share.

A congestion control registered as BPF is visible in every namespace, and the list of those that a namespace may
use, net.ipv4.tcp_allowed_congestion_control, exists only in the initial namespace.  Both belong to the whole
kernel, so hosts share them, and the last user removes them:

    /run/testctl/cc/gate   locked while a process acquires or releases
    /run/testctl/cc/NAME   locked (shared) by every user of NAME; contains what was done for it

A lock ends with its process.  A NAME that no process has locked is unused: remove_unused(), at the start of every run,
undoes what was done for it.
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
from testctl_agent.cc.noted import STATE as STATE
from testctl_agent.cc.struct_ops import available, register
from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.system.namespace import join

SOURCES = "TESTCTL_CC"
"""Environment variable: a directory of tcp_NAME.c (lab/cc), searched after the agent's own."""

_OWN = Path(__file__).parent / "bpf"
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_FIRST = Path("/proc/1/ns/net")
_LOCKS = Path("/proc/locks")
"""1: FLOCK  ADVISORY  READ 123 00:1a:4711 0 EOF; for a process that waits for a lock, 1: -> FLOCK …"""
_BYTES = 256  # of a file
_held: dict[str, int] = {}
"""Name → open, locked file, for each congestion control that this process uses."""


def source_of(name: str) -> Path | None:
    """The file that is compiled to BPF for a congestion control; None where there is none."""
    given = os.environ.get(SOURCES)
    for folder in (_OWN, *([Path(given)] if given else [])):
        path = folder / f"tcp_{name}.c"
        if path.is_file() and (folder == _OWN or "TESTCTL_CC" in path.read_text(encoding="utf-8")):
            return path
    return None


def fingerprint(given: Path) -> str:
    """Hash of all sources that can be compiled to BPF: the agent's own, and a directory's."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in (_OWN, given) for path in folder.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def acquire(name: str, state: Path = STATE) -> None:
    """Ensure that a congestion control is available, from the kernel or as BPF, until release().

    Raises Unavailable if the kernel does not have it and can't load it as BPF, ProgramError, TestbedError.
    """
    if name in _held:
        return
    with _gate(state):
        _remove_unused(state)
        file = state / name
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _register(name, lock)
        except BaseException:
            if not _record(lock):
                file.unlink()
            os.close(lock)
            raise
        fcntl.flock(lock, fcntl.LOCK_SH)
        _held[name] = lock


def allow(name: str, state: Path = STATE) -> None:
    """Allow every namespace to use what this process has acquired as its default.  Raises Unavailable."""
    lock = _held[name]
    with _gate(state):
        record = _record(lock)
        try:
            if name not in _allowed():
                _remember(lock, record | {"allowed": True})
                _allow(name, True)
        except OSError as error:
            raise Unavailable(
                "not allowed in namespaces: add it to net.ipv4.tcp_allowed_congestion_control of the first one "
                f"({error.strerror})"
            ) from error


def release(name: str, state: Path = STATE) -> None:
    """Release it; the last user undoes what was done for it."""
    lock = _held.pop(name, None)
    if lock is None:
        return
    with _gate(state):
        os.close(lock)
        _remove_unused(state)


def held() -> list[str]:
    return list(_held)


def there(state: Path = STATE) -> list[str]:
    """Names that a process has acquired, including processes that have ended."""
    return sorted(path.name for path in state.glob("*") if path.name != "gate")


def remove_unused(state: Path = STATE) -> list[str]:
    """Undo what no process uses and return its names.  Does nothing for a user who may not read the directory."""
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK, effective_ids=True) or not there(state):
        return []
    with _gate(state):
        return _remove_unused(state)


def in_use(state: Path = STATE) -> list[str]:
    """Names that a live process has as BPF now; what the kernel has itself stays without it.  Takes no lock."""
    try:
        held = {line.split()[5].rpartition(":")[2] for line in _LOCKS.read_text(encoding="ascii").splitlines()}
        files = [file for name in there(state) if str((file := state / name).stat().st_ino) in held]
        return [file.name for file in files if json.loads(file.read_bytes() or b"{}").get("source")]
    except (OSError, ValueError):
        return []


def _remove_unused(state: Path) -> list[str]:
    removed = []
    for name in there(state):
        file = state / name
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _take_back(file, lock)
        removed.append(name)
    return removed


def _take_back(file: Path, lock: int) -> None:
    record = _record(lock)
    if record.get("allowed"):
        with suppress(OSError):  # it is gone, and with it that it was allowed
            _allow(file.name, False)
    if record.get("source"):
        unregister_struct_ops(file.name)
    file.unlink()
    os.close(lock)


def _register(name: str, lock: int) -> None:
    """Register it unless it is registered; the file is written first."""
    record, source = _record(lock), source_of(name)
    if name in available():
        if source and record.get("source") not in (None, _key(source)):
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


def _record(lock: int) -> dict[str, object]:
    """The content of a lock file: the actions taken for its users."""
    record: dict[str, object] = json.loads(os.pread(lock, _BYTES, 0) or b"{}")
    return record


def _remember(lock: int, record: Mapping[str, object]) -> None:
    """Write the lock file in one write, which a kill does not interrupt."""
    os.pwrite(lock, json.dumps(record).encode().ljust(_BYTES), 0)


@contextmanager
def _gate(state: Path) -> Iterator[None]:
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (state / "gate").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _in_first(what: str | None) -> str:
    """Read, or write and read, the list of allowed congestion controls, which only the initial namespace has."""
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

    thread = threading.Thread(target=there)  # a thread enters the namespace and ends there
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return got[0]


def _allowed() -> list[str]:
    return _in_first(None).split()


def _allow(name: str, wanted: bool) -> None:
    others = [other for other in _allowed() if other != name]
    _in_first(" ".join([*others, *([name] if wanted else [])]))
