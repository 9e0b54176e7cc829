# SPDX-License-Identifier: Apache-2.0
"""The switch's parameters as rows of the tables of p4/*/testbed.p4.  Pure; any driver takes them.

Ports are P4 numbers, counted from 1.  Of the fates that fit a packet the first in the text wins: it is
given as a rank (the lowest wins across the three tables), and within `fate` as a priority.
Every function raises ApplyError: who, wanted, got.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from testctl_agent.spec import ecmp
from testctl_agent.spec.ecmp import BROADCAST, Stations, devices_of
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.fate import LAST, MAX_SWAPS, Fate
from testctl_agent.spec.flows import MAX_CONNECTIONS, Connection, flow_id
from testctl_agent.spec.loss import rule_of
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Range, Ternary

EVERYBODY = 2**48 - 1
"""The row of all group addresses in the table `forward`."""

DATA, ACK = 1, 2
"""Kinds of packets (p4/common/types.p4)."""

CODES = {"drop": 1, "mark": 2, "delay": 3, "echo": 4, "clear": 5, "lose": 6, "reorder": 11, "duplicate": 13,
         "corrupt": 14, "corrupt header": 15, "trim": 16, "swap": 17}  # fmt: skip
"""Codes of fates in the telemetry."""

DRAWN = {"duplicate": "duplicating.drawn", "corrupt": "corrupting.drawn", "corrupt header": "corrupting_headers.drawn",
         "trim": "trimming.drawn"}  # fmt: skip
"""Tables of changes at a rate."""

SIZES = {"forward": 1024, "member": 256, "connection4": 4097, "connection6": 4097, "classify4": 256, "classify6": 256,
         "fate": 256, "every": 256, "loss": 4097, "reorder": 4097, **dict.fromkeys(DRAWN.values(), 4097),
         "swap": MAX_SWAPS, "ecn": 512}  # fmt: skip
"""Rows of each table."""

FORWARDING_TABLES = ("forward", "member")
FLOW_TABLES = ("connection4", "connection6", "classify4", "classify6")
FATE_TABLES = ("fate", "every", "loss")
TABLES_OF = {"reorder": ("reorder",), "swap": ("swap",), **{action: (table,) for action, table in DRAWN.items()}}
"""Tables of actions that not every target can do."""

TWICE = 512
"""Multicast group TWICE + n has port n two times."""

REGISTERS = ("begins", "highest", "data_seen", "first_seen", "acks_seen")
"""Registers indexed by flow id."""

MAX_DEPTH = 2**19 - 1
"""enq_qdepth of v1model and TNA has 19 bits, and stays at its end."""


def groups(ports: Mapping[str, int], stations: Stations) -> dict[int, tuple[int, ...]]:
    """Multicast groups: number n has the ports of BROADCAST (all, if it is not there) but n, for what came in there;
    none where there are no others."""
    everyone = tuple(ports[device] for device in devices_of(stations.get(BROADCAST, tuple(ports))))
    members = {n: tuple(port for port in everyone if port != n) for n in ports.values()}
    return {n: others for n, others in members.items() if others}


def forwarding(ports: Mapping[str, int], stations: Stations, *, flood: bool = True, seed: int = 0) -> tuple[Entry, ...]:
    """Rows for the hosts behind the devices (→ port), and to `flood` group addresses.

    seed  of the draw by which connections are spread over several devices
    """
    rows = [Entry("forward", {"destination": Exact(EVERYBODY)}, "flood", {"group": 0})] if flood else []
    spread: dict[tuple[str, ...], int] = {}
    for mac, value in stations.items():
        devices = devices_of(value)
        for device in devices:
            if device not in ports:
                raise ApplyError(f"switch, {mac}: want a device of the switch ({', '.join(ports)}); got {device}")
        keys: dict[str, Key] = {"destination": Exact(_mac(mac))}
        if mac == BROADCAST:
            continue
        if len(devices) == 1:
            rows.append(Entry("forward", keys, "send", {"port": ports[devices[0]]}))
            continue
        if not 1 <= len(devices) <= ecmp.MAX_WAYS:
            raise ApplyError(f"switch, {mac}: want 1 to {ecmp.MAX_WAYS} devices that lead to it; got {len(devices)}")
        group = spread.setdefault(devices, len(spread) + 1)
        rows.append(Entry("forward", keys, "spread", {"group": group, "spread_salt": ecmp.salt_of(seed)}))
    for devices, group in spread.items():
        for place, (low, high) in enumerate(ecmp.bounds(len(devices))):
            member: dict[str, Key] = {"group": Exact(group), "draw": Range(low, high)}
            rows.append(Entry("member", member, "send", {"port": ports[devices[place]]}, priority=1 + place))
    return _fitting("forwarding", rows)


def connections(known: Sequence[Connection]) -> tuple[Entry, ...]:
    """Two rows for each connection, forward and backward.  Port 0 stands for any port."""
    if len(known) > MAX_CONNECTIONS:
        raise ApplyError(f"switch, flows: want at most {MAX_CONNECTIONS} connections; got {len(known)}")
    rows = []
    for place, connection in enumerate(known):
        source, sink = (connection.source, connection.source_port), (connection.sink, connection.sink_port)
        rows.append(_connection(source, sink, flow_id(place, 0), 2 * (len(known) - place)))
        rows.append(_connection(sink, source, flow_id(place, 1), 2 * (len(known) - place) - 1))
    return _fitting("flows", rows)


def fates(wanted: Sequence[Fate], known: Sequence[Connection]) -> tuple[Entry, ...]:
    """Rows for the fates of these connections, each connection by itself."""
    rows: list[Entry] = []
    for rank, fate in enumerate(wanted):
        places = [place for place, connection in enumerate(known) if connection.flow == fate.flow]
        if not places:
            names = ", ".join(dict.fromkeys(connection.flow for connection in known)) or "none is set"
            raise ApplyError(f"switch, fate: want one of its flows ({names}); got {fate.flow}")
        for place in places:
            direction = known[place].direction_of(acks=fate.what == "acks")
            rows.extend(_fate(fate, flow_id(place, direction), rank))
    rows.extend(_swap_places(wanted, known))
    numbered = [
        Entry(row.table, row.keys, row.action, row.params, len(rows) - n if row.table == "fate" else 0)
        for n, row in enumerate(rows)
    ]
    return _fitting("fate", numbered)


def thresholds(by_port: Mapping[int, int]) -> tuple[Entry, ...]:
    """Rows for ports that mark CE from a depth on, in the target's unit: bytes, packets (BMv2) or cells (Tofino)."""
    for port, depth in by_port.items():
        if not 0 <= depth <= MAX_DEPTH:
            want = f"want at most {MAX_DEPTH} (a depth has 19 bits in P4)"
            raise ApplyError(f"switch, port {port}, ecn_threshold: {want}; got {depth}")
    rows = [Entry("ecn", {"port": Exact(port)}, "threshold", {"depth": depth}) for port, depth in by_port.items()]
    return _fitting("ecn_threshold", rows)


def cells(known: Sequence[Connection]) -> Iterator[tuple[str, int]]:
    """Registers and cells to set to 0 when these connections become the switch's."""
    ids = 2 * len(known)
    return ((name, flow) for name in REGISTERS for flow in range(1, ids + 1))


def _connection(source: tuple[str, int], sink: tuple[str, int], flow: int, priority: int) -> Entry:
    (src, sport), (dst, dport) = ((ipaddress.ip_address(address), port) for address, port in (source, sink))
    numbers = {"src": int(src), "dst": int(dst), "protocol": 6, "sport": sport, "dport": dport}
    if sport and dport:
        keys: dict[str, Key] = {name: Exact(number) for name, number in numbers.items()}
        return Entry(f"connection{src.version}", keys, "set_flow", {"flow": flow})
    masks = {"src": 2**src.max_prefixlen - 1, "dst": 2**src.max_prefixlen - 1, "protocol": 255}
    masks |= {"sport": 65535 if sport else 0, "dport": 65535 if dport else 0}
    loose: dict[str, Key] = {name: Ternary(numbers[name], mask) for name, mask in masks.items() if mask}
    return Entry(f"classify{src.version}", loose, "set_flow", {"flow": flow}, priority)


def _fate(fate: Fate, flow: int, rank: int) -> Iterator[Entry]:
    kind = ACK if fate.what == "acks" else DATA
    keys: dict[str, Key] = {"flow": Exact(flow), "kind": Exact(kind)}
    if fate.random:
        yield _random(fate, flow, rank)
    elif fate.every and fate.by_ns:
        params = {"n": fate.every, "every_rank": rank, "hold_ns": fate.by_ns}
        yield Entry("every", keys, "delay_every_nth", params)
    elif fate.every:
        params = {"n": fate.every, "code": CODES[fate.action], "every_rank": rank}
        yield Entry("every", keys, "every_nth", params)
    else:
        for low, high in fate.ranges:
            chosen: dict[str, Key] = dict(keys)
            if fate.first:
                chosen["first_ordinal"] = Range(1, LAST)
            field = "offset" if fate.what == "bytes" else "first_ordinal" if fate.first else "ordinal"
            chosen[field] = Range(low, high)
            hold = {"hold_ns": fate.by_ns} if fate.by_ns else {}
            if CODES[fate.action] < CODES["duplicate"]:
                yield Entry("fate", chosen, fate.action, {"rank": rank} | hold)
            else:
                yield Entry("fate", chosen, "change", {"rank": rank, "code": CODES[fate.action]})


def _swap_places(wanted: Sequence[Fate], known: Sequence[Connection]) -> Iterator[Entry]:
    """A place for each connection that swaps packets."""
    flows = {fate.flow for fate in wanted if fate.action == "swap"}
    places = [place for place, connection in enumerate(known) if connection.flow in flows]
    for at, place in enumerate(places[: SIZES["swap"]]):
        kept = flow_id(place, known[place].direction_of(acks=False))
        yield Entry("swap", {"flow": Exact(kept)}, "keep_at", {"at": at})
    if len(places) > SIZES["swap"]:
        raise ApplyError(f"switch, fate: want at most {SIZES['swap']} connections with a swap; got {len(places)}")


def _random(fate: Fate, flow: int, rank: int) -> Entry:
    rule = rule_of(fate, flow)
    keys = {"flow": Exact(flow)}
    salts = dict(zip(("salt_a", "salt_b", "salt_c"), rule.salts, strict=True))
    if fate.action == "reorder":
        params = {"most": rule.most, **salts, "reorder_rank": rank, "hold_ns": fate.by_ns}
        return Entry("reorder", keys, "hold_back", params)
    if fate.action in DRAWN:
        return Entry(DRAWN[fate.action], keys, "change", {"most": rule.most, **salts, "drawn_rank": rank})
    if rule.stay is None:
        return Entry("loss", keys, "lose", {"most": rule.most, **salts, "loss_rank": rank})
    return Entry("loss", keys, "lose_in_bursts", {"most": rule.most, "go_on": rule.stay, **salts, "loss_rank": rank})


def _mac(text: str) -> int:
    digits = text.replace(":", "")
    try:
        if len(text) != 17 or len(digits) != 12:
            raise ValueError("not six bytes")
        return int(digits, 16)
    except ValueError as error:
        raise ApplyError(f"switch, forwarding: want a MAC address; got {text!r}") from error


def _fitting(who: str, rows: Sequence[Entry]) -> tuple[Entry, ...]:
    """The rows, if they fit into their tables and no two have the same key."""
    seen: set[tuple[str, tuple[tuple[str, Key], ...], int]] = set()
    for row in rows:
        same = (row.table, tuple(sorted(row.keys.items(), key=lambda pair: pair[0])), row.priority)
        if same in seen:
            shown = ", ".join(f"{name} {key}" for name, key in row.keys.items())
            raise ApplyError(f"switch, {who}: want one row of table {row.table} for {shown}; got two")
        seen.add(same)
    for table, most in SIZES.items():
        got = sum(row.table == table for row in rows)
        if got > most:
            raise ApplyError(f"switch, {who}: want at most {most} rows of table {table}; got {got}")
    return tuple(rows)
