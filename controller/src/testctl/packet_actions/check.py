# SPDX-License-Identifier: Apache-2.0
"""Checks that the switches applied all requested packet actions, and no others.

If several rules select a packet, the first one in the text applies.  An action may be impossible for a
packet: a mark if it is not ECN-capable (retransmissions are not), clearing if it has no CE, any change if
the port's full buffer dropped it.  A rule that selects packets by index must apply to each of them; a rule
that selects a class (every, open ranges, bytes) must apply at least once if any packet allowed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from testctl_agent.spec import p4_program
from testctl_agent.spec.fate import ACTIONS, LAST, Fate, show
from testctl_agent.spec.flows import flow_id
from testctl_agent.spec.loss import rule_of
from testctl_agent.spec.p4_program import NONE

from testctl.core import routes
from testctl.core.point import TimedFlow
from testctl.metrics.core.view import Rows
from testctl.packet_actions.copies import packets_of
from testctl.packet_actions.findings import RuleFinding, ranges_of, requested_fates, words_of
from testctl.packet_actions.loss import are_lost
from testctl.packet_actions.receivers import unnoticed
from testctl.records import Records
from testctl.records.schema import CE, FATES, FIN, RST, SYN, Array, Bools, Ints

_OFFSETS = 2**32
_BY_PROGRAM = tuple(FATES.index(name) for name in ACTIONS)
_NOT_SENT = tuple(FATES.index(name) for name in ("buffer_drop", "other_drop", "link_drop", "aqm_drop"))
_DROPPED = FATES.index("other_drop")
_DUPLICATE = FATES.index("duplicate")
_NOBODY = -1


def check_fates(records: Records) -> tuple[list[RuleFinding], list[str]]:
    """(a finding for every rule on every connection, reasons why the point is invalid: [] if it is valid)."""
    reasons = []
    for switch in records.point.topology.switches:
        if lost := records.outcome.result_of(switch, "telemetry").get("lost", 0):
            reasons.append(f"{switch}: {lost} records of its telemetry were lost, because its ring was full")
    findings: list[RuleFinding] = []
    for switch, rules in requested_fates(records.point).items():
        if switch not in records.switches:
            requested = show(rules)
            reasons.append(f"{switch}: wanted: {requested}; whether it happened is not known: there is no telemetry")
            continue
        for number, flow in enumerate(records.point.flows):
            own_rules = [(place, rule) for place, rule in enumerate(rules) if rule.flow == flow.name]
            if own_rules:
                checked, why = _flow(records, switch, own_rules, number)
                findings += checked
                reasons += why
    reasons += unnoticed(records) + swallowed(records)
    return findings, [*reasons, *(finding.fault for finding in findings if finding.fault)]


def swallowed(records: Records) -> list[str]:
    """Reasons for the flows of whose packets the user's P4 program of a switch sent none on."""
    where, wheres = records.codes("where")
    names, all_names = records.codes("flow")
    reasons = []
    for switch in records.point.topology.switches:
        value = str(records.point.settings.get(switch, {}).get("program", NONE))
        if value == NONE or switch not in wheres:
            continue
        for flow in (flow.name for flow in records.point.flows if flow.name in all_names):
            fates = records.column("fate")[(where == wheres.index(switch)) & (names == all_names.index(flow))]
            if len(fates) and (fates == _DROPPED).all():
                came = f"all {len(fates)} packets of {flow} that came"
                reasons.append(f"{switch}: its program, {p4_program.parse(value)[0]}, dropped {came}")
    return reasons


def _flow(
    records: Records, switch: str, rules: list[tuple[int, Fate]], number: int
) -> tuple[list[RuleFinding], list[str]]:
    """The rules of one flow at one switch, on each of its connections."""
    flows = records.point.flows
    flow, parallel = flows[number], flows[number].parallel
    before = sum(other.parallel for other in flows[:number])
    where, wheres = records.codes("where")
    names, all_names = records.codes("flow")
    passed = (where == wheres.index(switch)) & (names == all_names.index(flow.name))
    passed &= records.column("ordinal") >= 0
    findings: list[RuleFinding] = []
    reasons: list[str] = []
    passing = [_passing(records, flow, switch, back=acks != flow.reversed) for acks in (False, True)]
    for _, rule in rules:
        if not passing[rule.what == "acks"]:
            elsewhere = f"no connection of flow {flow.name} was given a way over it (ecmp_seed chooses other ways)"
            reasons.append(f"{switch}: wanted: {show((rule,))}; {elsewhere}")
    for conn in range(parallel):
        name = flow.name if parallel == 1 else f"{flow.name}, connection {conn}"
        of_conn = passed & (records.column("conn") == conn)
        for acks in (False, True):
            here = conn in passing[acks]
            own_rules = [(place, rule) for place, rule in rules if (rule.what == "acks") == acks and here]
            direction = int(acks != flow.reversed)
            packets = Rows(records, np.flatnonzero(of_conn & (records.column("direction") == direction)))
            packets = packets.where(_acks(packets) if acks else packets["length"] > 0) if len(packets) else packets
            if own_rules:
                stream = _Stream(
                    switch, name, conn, flow_id(before + conn, direction), "acks" if acks else "data", packets
                )
                findings += stream.findings(own_rules)
                reasons += stream.gaps()
                reasons += stream.unasked()
    return findings, reasons


def _passing(records: Records, flow: TimedFlow, switch: str, *, back: bool) -> frozenset[int]:
    """The connections whose packets pass a switch; all if the topology is unknown."""
    ways = routes.ways(records.point, flow, back=back)
    return frozenset(conn for way, conns in ways.items() if switch in way or not way for conn in conns)


def _acks(packets: Rows) -> Bools:
    return np.asarray((packets["length"] == 0) & (packets["flags"] & (SYN | FIN | RST) == 0))


@dataclass
class _Stream:
    """The data segments, or the ACKs, of one connection in the order of arrival at a switch."""

    switch: str
    name: str
    conn: int
    flow_id: int
    kind: str
    packets: Rows

    def __post_init__(self) -> None:
        packets = packets_of(self.packets)
        self.rows, self.fate = packets.rows, packets.fate
        self.packets = self.packets.where(packets.first) if len(self.packets) else self.packets
        self.taken = np.full(len(self.packets), _NOBODY, np.int64)
        self.code = np.zeros(len(self.packets), np.uint8)

    def gaps(self) -> list[str]:
        """A reason unless the telemetry has each packet exactly once, and those that were duplicated twice."""
        ordinals = self.packets["ordinal"]
        most, records = int(ordinals.max(initial=0)), int(self.rows.sum())
        twice = (self.code == _DUPLICATE) | (self.fate == _DUPLICATE)
        if len(ordinals) == most and not (self.rows > np.where(twice, 2, 1)).any():
            return []
        got = f"{records} records for {self.kind} of {self.name}, counted up to {most}"
        return [f"{self.switch}: want a record of every packet in the telemetry; got {got}"]

    def findings(self, rules: list[tuple[int, Fate]]) -> Iterator[RuleFinding]:
        for place, rule in rules:
            yield self._one(place, rule)

    def unasked(self) -> list[str]:
        """Actions of the program that no rule requested for that packet."""
        fate = self.fate
        wrong = np.isin(fate, _BY_PROGRAM) & (fate != self.code)
        reasons = []
        for code in np.unique(fate[wrong]):
            which = words_of(ranges_of(self.packets["ordinal"][wrong & (fate == code)]))
            reasons.append(f"{self.switch}: happened: {FATES[code]} {self.kind} {which} of {self.name}; not requested")
        return reasons

    def _one(self, place: int, rule: Fate) -> RuleFinding:
        numbers = self._numbers(rule)
        chosen = self._chosen(rule, numbers)
        matched = chosen & (self.taken == _NOBODY)
        self.taken[matched] = place
        self.code[matched] = FATES.index(rule.action)
        done = matched & (self.fate == FATES.index(rule.action))
        absent = self._absent(rule, numbers)
        not_done, note = self._not_done(rule, matched & ~done, numbers, bool(done.any()))
        if shadowed := int((chosen & ~matched).sum()):
            note = "; ".join([*([note] if note else []), f"an earlier rule applied to {shadowed}"])
        which = words_of(ranges_of(numbers[done]))
        faults = [text for text in (not_done, absent[1]) if text]
        fault = ""
        if faults:
            requested = show((rule,)) if self.name == rule.flow else f"{show((rule,))} ({self.name})"
            fault = f"{self.switch}: wanted: {requested}; happened: {which}; not: {', '.join(faults)}"
        return RuleFinding(
            switch=self.switch,
            rule=show((rule,)),
            place=place,
            flow=rule.flow,
            conn=self.conn,
            asked=int(chosen.sum()) + absent[0],
            happened=int(done.sum()),
            which=which,
            note=note,
            fault=fault,
        )

    def _numbers(self, rule: Fate) -> Ints:
        """The index of each packet that the rule selects by."""
        if rule.what == "bytes":
            return np.asarray(self.packets["seq"] % _OFFSETS)
        return np.asarray(self.packets["first_ordinal" if rule.first else "ordinal"].astype(np.int64))

    def _chosen(self, rule: Fate, numbers: Ints) -> Bools:
        if rule.random:
            return are_lost(rule_of(rule, self.flow_id), numbers)
        if rule.every:
            return np.asarray(numbers % rule.every == 0)
        chosen = np.zeros(len(numbers), np.bool_)
        for low, high in rule.ranges:
            chosen |= (numbers >= low) & (numbers <= high)
        return np.asarray(chosen & (self.packets["first_ordinal"] > 0)) if rule.first else chosen

    def _absent(self, rule: Fate, numbers: Ints) -> tuple[int, str]:
        """(number of selected packets that never arrived, if the rule has numbers; their numbers and the reason)."""
        if rule.random:
            return 0, ""
        most = int(numbers.max(initial=0))
        if rule.what == "bytes":
            empty = [(a, b) for a, b in rule.ranges if not ((numbers >= a) & (numbers <= b)).any()]
            return 0, f"{words_of(empty)} (no segment began there)" if empty else ""
        if rule.every:
            return 0, "" if most >= rule.every else f"{rule.every} ({self._had(rule, most)})"
        beyond = [(max(a, most + 1), b) for a, b in rule.ranges if b > most and (b != LAST or a > most)]
        count = sum(b - a + 1 for a, b in beyond if b != LAST)
        return count, f"{words_of(beyond)} ({self._had(rule, most)})" if beyond else ""

    def _had(self, rule: Fate, most: int) -> str:
        what = "ACKs" if rule.what == "acks" else "first transmissions" if rule.first else "data segments"
        return f"the flow had {most} {what}"

    def _not_done(self, rule: Fate, rows: Bools, numbers: Ints, some: bool) -> tuple[str, str]:
        """(faults: packets without the action, with reasons; notes: those that are no fault), "" if none."""
        if not rows.any():
            return "", ""
        by_number = bool(rule.ranges) and rule.what != "bytes" and all(high != LAST for _, high in rule.ranges)
        faults, notes = [], []
        left = rows.copy()
        for why, impossible in self._impossible(rule):
            those = left & impossible
            left &= ~those
            if not those.any():
                continue
            strict = by_number and not (rule.action == "clear" and some)
            if strict or not some:
                faults.append(f"{words_of(ranges_of(numbers[those]))} ({why})")
            else:
                notes.append(f"{int(those.sum())} {why}")
        if left.any():
            faults.append(f"{words_of(ranges_of(numbers[left]))} (the switch did not apply it)")
        return ", ".join(faults), "; ".join(notes)

    def _impossible(self, rule: Fate) -> Iterator[tuple[str, Array]]:
        fate, ecn = self.fate, self.packets["ecn"]
        if rule.action not in ("drop", "lose"):
            yield "dropped by the full buffer or for another reason", np.isin(fate, _NOT_SENT)
        if rule.action == "mark":
            yield "not ECN-capable", ecn == 0
        if rule.action == "clear":
            yield "without CE", ecn != CE
