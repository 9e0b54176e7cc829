# SPDX-License-Identifier: Apache-2.0
"""Attestation: the present state of an entity as facts, name → text, to compare before and after.

Only facts that nothing but a change of configuration changes: no counters.  A fact that can't be read says why, and
never stops the others; one that this kernel does not have is left out.  Nothing is started, and only
/proc, /sys, netlink and ethtool's ioctl are read, in the network namespace of the caller.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from testctl_agent.engine import attest_link
from testctl_agent.spec.errors import TestbedError

_TREES = ("net/core", "net/ipv4", "net/ipv6")
_LEFT_OUT = frozenset({
    "net/core/netdev_rss_key", "net/ipv4/tcp_fastopen_key",
    "net/ipv4/tcp_available_congestion_control", "net/ipv4/tcp_allowed_congestion_control",
})  # fmt: skip
"""Secrets; and lists of the whole machine, the first being the fact "congestion controls"."""
_SECRET = "/stable_secret"
_OF_DEVICES = ("/conf", "/neigh")
_ALWAYS = ("all", "default")
_MAX_BYTES = 1 << 16
"""Of a file of /proc/sys or /sys, which one read returns whole."""
_QUEUE = ("gro_flush_timeout", "napi_defer_hard_irqs", "threaded")


def attest(devices: Sequence[str], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, str]:
    """All facts, in the order of their names.  A front-panel port ("3/0") is no device of this machine and has none."""
    devices = [device for device in devices if "/" not in device]
    facts = {"kernel": platform.release()}
    facts.update(_congestion_controls(proc / "sys/net"))
    facts.update(_sysctls(proc / "sys", devices))
    for device in devices:
        facts.update(_queues(device, sys / "class/net" / device))
        for name, read in attest_link.READERS.items():
            try:
                facts[f"link {device} {name}"] = read(device)
            except (TestbedError, OSError) as error:
                facts[f"link {device} {name}"] = f"can't be read: {error}"
    return dict(sorted(facts.items()))


def _congestion_controls(net: Path) -> Iterable[tuple[str, str]]:
    """All that are registered, without those that running agents loaded as BPF.  They belong to the whole machine, so
    only its first network namespace, known by its default qdisc, reports them."""
    from testctl_agent.cc import shared  # which begins with an agent's parts

    registered = _text(net / "ipv4/tcp_available_congestion_control")
    if registered and (net / "core/default_qdisc").exists():
        yield "congestion controls", " ".join(sorted(set(registered.split()) - set(shared.in_use())))


def _sysctls(root: Path, devices: Sequence[str]) -> Iterable[tuple[str, str]]:
    """("sysctl net.ipv4.tcp_sack", "1"), …: all that can be read, without other devices' ones."""
    whose, top = {*_ALWAYS, *devices}, f"{root}/"
    for where, folders, files in (step for tree in _TREES for step in os.walk(f"{top}{tree}")):
        if where.endswith(_OF_DEVICES):
            folders[:] = [name for name in folders if name in whose]
        for file in files:
            name = f"{where}/{file}".removeprefix(top)
            if name not in _LEFT_OUT and not name.endswith(_SECRET) and (text := _text(f"{top}{name}")) is not None:
                yield f"sysctl {name.replace('/', '.')}", " ".join(text.split())


def _queues(device: str, folder: Path) -> Iterable[tuple[str, str]]:
    """Settings of the device in /sys, and the processors of its queues as one fact."""
    for name in _QUEUE:
        if (text := _text(folder / name)) is not None:
            yield f"link {device} {name}", text.strip()
    masks = {f"{path.parent.name}/{path.name}": _text(path) for path in sorted(folder.glob("queues/*/?ps_*"))}
    set_masks = [f"{name}:{text.strip()}" for name, text in masks.items() if text and text.strip(" ,0\n")]
    if masks:
        yield f"link {device} queues processors", " ".join(set_masks) or "any"


def _text(path: Path | str) -> str | None:
    """A file's text; None when it is not there or may not be read.  There are hundreds: no file object for each."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, _MAX_BYTES).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(file)
