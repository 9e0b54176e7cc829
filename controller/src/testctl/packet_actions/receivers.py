# SPDX-License-Identifier: Apache-2.0
"""Checks that receivers dropped corrupted and trimmed packets: a device that offloads checksums would accept them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from testctl_agent.spec.fate import UNSUMMED

from testctl.packet_actions.findings import requested_fates
from testctl.records import Records
from testctl.records.schema import FATES

_COUNTER = "Tcp.InCsumErrors"
_CODES = [FATES.index(action) for action in UNSUMMED]


def unnoticed(records: Records) -> list[str]:
    """A reason for each host whose TCP dropped fewer packets for their checksum than the last switch sent it."""
    sent: Counter[str] = Counter()
    for switch, rules in requested_fates(records.point).items():
        flows = {rule.flow for rule in rules if rule.action in UNSUMMED}
        where, wheres = records.codes("where")
        if not flows or switch not in wheres:
            continue
        names, all_names = records.codes("flow")
        changed = (where == wheres.index(switch)) & np.isin(records.column("fate"), _CODES)
        changed &= records.column("left_ns") >= 0
        for flow in records.point.flows:
            if flow.name not in flows or flow.name not in all_names:
                continue
            own = changed & (names == all_names.index(flow.name))
            for direction, ends in enumerate((flow.ends, flow.ends[::-1])):
                way = records.point.topology.path(*ends)
                if way and way[-2] == switch:
                    sent[ends[1]] += int((own & (records.column("direction") == direction)).sum())
    reasons = []
    for host, count in sent.items():
        dropped = records.counters.get(host, {}).get("snmp", {}).get(_COUNTER)
        if dropped is not None and dropped < count:
            reasons.append(
                f"{host}: its TCP dropped {dropped} packets for their checksum ({_COUNTER}); "
                f"{count} that were corrupted or trimmed were sent to it"
            )
    return reasons
