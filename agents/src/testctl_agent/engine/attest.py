# SPDX-License-Identifier: Apache-2.0
"""What an entity is right now, as facts name → text: for comparing before with after.

Only what stands still while nobody changes it: no counters.  A fact that can't be read says why, and
never stops the others; one that this kernel does not have is left out.  Nothing is started, and only
/proc, /sys, netlink and ethtool's ioctl are read, in the network namespace of the caller.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from testctl_agent.engine import attest_link
from testctl_agent.spec.errors import TestbedError

_CORE = (
    "bpf_jit_enable", "busy_poll", "busy_read", "default_qdisc", "dev_weight", "gro_normal_batch",
    "high_order_alloc_disable", "netdev_budget", "netdev_budget_usecs", "netdev_max_backlog",
    "netdev_tstamp_prequeue", "optmem_max", "rmem_default", "rmem_max", "rps_sock_flow_entries", "somaxconn",
    "tstamp_allow_data", "wmem_default", "wmem_max",
)  # fmt: skip
_IPV4 = (
    "fib_multipath_hash_policy", "ip_default_ttl", "ip_early_demux", "ip_forward", "ip_forward_use_pmtu",
    "ip_local_port_range", "ip_no_pmtu_disc", "min_pmtu", "route/min_adv_mss",
)  # fmt: skip
_LEFT_OUT = ("tcp_fastopen_key", "tcp_available_congestion_control", "tcp_allowed_congestion_control")
"""A secret; and lists of the whole kernel, which grow when a congestion control is used for the first time."""
_QUEUE = ("gro_flush_timeout", "napi_defer_hard_irqs", "threaded")


def attest(devices: Sequence[str], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, str]:
    """All facts, in the order of their names."""
    facts = {"kernel": platform.release()}
    facts.update(_sysctls(proc / "sys"))
    for device in devices:
        facts.update(_queues(device, sys))
        for name, read in attest_link.READERS.items():
            facts[f"link {device} {name}"] = _one(read, device)
    return dict(sorted(facts.items()))


def _one(read: Callable[[str], str], device: str) -> str:
    try:
        return read(device)
    except (TestbedError, OSError) as error:
        return f"can't be read: {error}"


def _sysctls(root: Path) -> Iterable[tuple[str, str]]:
    """("sysctl net.ipv4.tcp_sack", "1"), …"""
    ipv4, core = root / "net/ipv4", root / "net/core"
    paths = [path for path in ipv4.glob("tcp_*") if path.name not in _LEFT_OUT]
    for path in (*paths, *(ipv4 / name for name in _IPV4), *(core / name for name in _CORE)):
        if (text := _text(path)) is not None:
            yield f"sysctl {'.'.join(path.relative_to(root).parts)}", " ".join(text.split())


def _queues(device: str, sys: Path) -> Iterable[tuple[str, str]]:
    for name in _QUEUE:
        if (text := _text(sys / "class/net" / device / name)) is not None:
            yield f"link {device} {name}", text.strip()


def _text(path: Path) -> str | None:
    """A file's text; None when it is not there or may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
