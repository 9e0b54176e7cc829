# SPDX-License-Identifier: Apache-2.0
"""All of a network namespace as other programs than the agent see it: ip, tc, ethtool, and /proc/sys/net."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

SYSCTLS = Path("/proc/sys/net")
_COUNTED = frozenset({
    "age", "bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen", "used", "expires", "cacheinfo",
    "valid_life_time", "preferred_life_time", "stats", "stats64", "carrier_up_count", "carrier_down_count",
})  # fmt: skip
"""What counts, or runs down."""
_ODD = re.compile(r"nf_conntrack_count|netfilter/nf_log|tcp_(available|allowed)_congestion_control")
"""Counters, and what is the whole machine's: other tests may change it at the same time."""


def said(*argv: str) -> str:
    """What a program prints; its words when it has none of that."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"


def still(found: Any) -> Any:
    """Without what counts."""
    if isinstance(found, dict):
        return {key: still(value) for key, value in found.items() if key not in _COUNTED}
    return [still(one) for one in found] if isinstance(found, list) else found


def _facts(name: str, text: str) -> dict[str, str]:
    """One fact for each object of a list in JSON; the text where a program knows no JSON for it."""
    try:
        found = still(json.loads(text or "[]"))
    except ValueError:
        return {name: text}
    return {f"{name} {number}": json.dumps(one, sort_keys=True) for number, one in enumerate(found)}


def sysctls() -> dict[str, str]:
    facts = {}
    for path in sorted(SYSCTLS.rglob("*")):
        if path.is_file() and not _ODD.search(str(path)):
            try:
                facts[f"sysctl {path.relative_to(SYSCTLS)}"] = path.read_text(errors="replace")
            except OSError as error:
                facts[f"sysctl {path.relative_to(SYSCTLS)}"] = str(error.strerror)
    return facts


def everything(*devices: str) -> dict[str, str]:
    """All facts; addresses, routes, rules, links, queueing, and of each device what ethtool says."""
    facts = sysctls()
    for family in ("-4", "-6"):
        for what in ("address", "route show table all", "rule", "neigh show nud permanent", "nexthop"):
            facts |= _facts(f"ip {family} {what}", said("ip", "-d", "-j", family, *what.split()))
    facts |= _facts("ip link", said("ip", "-d", "-j", "link"))
    for device in devices:
        for what in ("qdisc", "class"):
            facts |= _facts(f"tc {what} {device}", said("tc", "-d", "-j", what, "show", "dev", device))
        for parent in ("ingress", "egress"):
            facts[f"tc filter {device} {parent}"] = said("tc", "-d", "filter", "show", "dev", device, parent)
        for option in ("-k", "-l", "-g", "-c", "-a"):
            facts[f"ethtool {option} {device}"] = said("ethtool", option, device)
        for path in sorted(Path(f"/sys/class/net/{device}").glob("queues/*/?ps_*")):
            facts[f"sys {device} {path.parent.name} {path.name}"] = path.read_text()
        for name in ("gro_flush_timeout", "napi_defer_hard_irqs", "threaded", "tx_queue_len"):
            facts[f"sys {device} {name}"] = Path(f"/sys/class/net/{device}/{name}").read_text()
    return facts


def differ(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is not as it was."""
    names = before.keys() | after.keys()
    return {name: (before.get(name), after.get(name)) for name in sorted(names) if before.get(name) != after.get(name)}
