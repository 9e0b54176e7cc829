# SPDX-License-Identifier: Apache-2.0
"""The kernel's own counters before and after: SNMP, devices and queueing disciplines.

There is one reader per source.  A reader that fails never stops the others; its error is listed under
"errors".  Paths are below a root, so that tests can use files instead of the kernel's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.network import qdisc
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_ports
from testctl_agent.tasks.task import Result, Task

NAME = "counters"
BEFORE, AFTER = "counters_before.json", "counters_after.json"
ROOT = Path("/")
_OF_IPV6 = ("Ip6", "Icmp6", "Udp6")
_DEVICE_COLUMNS = [
    "rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo_errors", "rx_frame_errors", "rx_compressed",
    "multicast", "tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo_errors", "collisions",
    "tx_carrier_errors", "tx_compressed",
]  # fmt: skip


def snmp(root: Path = ROOT) -> dict[str, int]:
    """{"Tcp.RetransSegs": n, "TcpExt.TCPTimeouts": n, "Ip6.InReceives": n, …} from net/snmp, net/netstat and net/snmp6.

    In the first two each group is two lines, of names and of values (proc(5)); net/snmp6 is not there without IPv6,
    and has a name and a value a line: IP's, ICMP's and UDP's are taken.
    """
    counters: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        lines = (root / "proc/net" / name).read_text(encoding="ascii").splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            group, _, columns = names.partition(":")
            if not values.startswith(f"{group}:"):
                raise ValueError(f"{name}: want the values of {group}; got {values[:40]!r}")
            numbers = values.partition(":")[2].split()
            counters.update((f"{group}.{c}", int(n)) for c, n in zip(columns.split(), numbers, strict=True))
    ipv6 = root / "proc/net/snmp6"
    for line in ipv6.read_text(encoding="ascii").splitlines() if ipv6.exists() else []:
        fields = line.split()
        if len(fields) != 2:
            raise ValueError(f"snmp6: want a name and a value; got {line[:40]!r}")
        for group in _OF_IPV6:
            if fields[0].startswith(group):
                counters[f"{group}.{fields[0].removeprefix(group)}"] = int(fields[1])
    return counters


def devices(root: Path = ROOT) -> dict[str, dict[str, int]]:
    """The counters of every device of this namespace, from net/dev."""
    table = {}
    for line in (root / "proc/net/dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, numbers = line.partition(":")
        table[name.strip()] = dict(zip(_DEVICE_COLUMNS, map(int, numbers.split()), strict=True))
    return table


def statistics(device: str, root: Path = ROOT) -> dict[str, int]:
    """The counters of one device in sysfs, which has more of them than net/dev, including carrier changes.

    A /sys mounted in another namespace may also have a device of that name.  Raises ValueError
    unless its bytes are between the ones in net/dev before and after.
    """
    least = _device_table((device,), root)[device]
    folder = root / "sys/class/net" / device / "statistics"
    values = {path.name: int(path.read_text(encoding="ascii")) for path in sorted(folder.iterdir())}
    changes = folder.parent / "carrier_changes"
    if changes.exists():
        values["carrier_changes"] = int(changes.read_text(encoding="ascii"))
    most = _device_table((device,), root)[device]
    for name in ("rx_bytes", "tx_bytes"):
        if not least[name] <= values[name] <= most[name]:
            raise ValueError(f"{folder}: want {name} of {least[name]}; got {values[name]}: is /sys of this namespace?")
    return values


def _device_table(wanted: Sequence[str], root: Path) -> dict[str, dict[str, int]]:
    table = devices(root)
    if absent := [device for device in wanted if device not in table]:
        raise ValueError(f"no device {', '.join(absent)}; there are: {', '.join(sorted(table))}")
    return {device: table[device] for device in wanted or sorted(table)}


def snapshot(wanted: Sequence[str] = (), root: Path = ROOT) -> dict[str, Any]:
    """All counters now: {"snmp", "device", "qdisc", "errors": [text]}.

    wanted  devices; none: all of this namespace
    """
    readers: dict[str, Callable[[], Any]] = {
        "snmp": lambda: snmp(root),
        "device": lambda: _device_table(wanted, root),
        "sysfs": lambda: {device: statistics(device, root) for device in wanted or sorted(devices(root))},
        "qdisc": lambda: [
            row
            for device in wanted or sorted(devices(root))
            for row in (*qdisc.counters(device), *ebpf_ports.counters(device))
        ],
    }
    tables: dict[str, Any] = {"snmp": {}, "device": {}, "sysfs": {}, "qdisc": [], "errors": []}
    for name, read in readers.items():
        try:
            tables[name] = read()
        except (OSError, ValueError, TestbedError) as error:
            tables["errors"].append(f"{name}: {error}")
    for device, more in tables.pop("sysfs").items():
        tables["device"][device] = more | tables["device"].get(device, {})
    return tables


@dataclass
class _CountersTask(Task):
    """A Task without a program: it reads the counters when it is started and when it is stopped."""

    wanted: tuple[str, ...]
    workdir: Path
    errors: list[str] | None = None
    ended: bool = False

    def _write(self, name: str) -> None:
        tables = snapshot(self.wanted)
        (self.workdir / name).write_text(json.dumps(tables, indent=1, sort_keys=True), encoding="utf-8")
        self.errors = [*(self.errors or []), *(f"{name}: {text}" for text in tables["errors"])]

    def start(self) -> None:
        self._write(BEFORE)

    def poll(self) -> bool:
        return self.ended

    def stop(self) -> None:
        if not self.ended:
            self._write(AFTER)
            self.ended = True

    def result(self) -> Result:
        if not self.ended:
            raise TestbedError("counters: has not ended")
        return {"errors": self.errors or []}

    def files(self) -> list[str]:
        return [name for name in (BEFORE, AFTER) if (self.workdir / name).exists()]


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    """options: devices, a list such as "eth0,eth1"; none: all of this namespace."""
    wanted = tuple(name for name in str(options.get("devices", "")).split(",") if name)
    return _CountersTask(wanted, workdir)
