# SPDX-License-Identifier: Apache-2.0
"""Checks a topology's hosts and links, whichever file they are of."""

from __future__ import annotations

from testctl_agent.spec.ecmp import MAX_WAYS

from testctl.core.topology import Topology


def check_links(topology: Topology) -> None:
    """Raises ValueError unless two hosts or more have one link, to a switch, and any two nodes one way between them;
    with ecmp, at least one."""
    for host in topology.hosts:
        ends = topology.neighbours[host]
        if len(ends) != 1 or ends[0] not in topology.switches:
            got = f"{len(ends)}: {', '.join(ends[:8]) or 'none'}"
            raise ValueError(f"host {host}: want one link, to a switch; got {got}")
    _check_ways(topology)
    if len(topology.hosts) < 2:
        raise ValueError(f"want two hosts or more; got {len(topology.hosts)}")
    for switch in topology.switches:
        for host, ways in topology.next_hops(switch).items():
            if len(ways) > MAX_WAYS:
                raise ValueError(f"switch {switch}: want at most {MAX_WAYS} ways to {host}; got {len(ways)}")


def _check_ways(topology: Topology) -> None:
    parent = {name: name for name in topology.entities}

    def top(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for a, b in topology.links:
        if top(a) == top(b) and not topology.ecmp:
            raise ValueError(
                f"the link {a} - {b} closes a loop; want one way between any two, or `ecmp: true` in the "
                "file, by which switches spread the connections over ways of equal cost"
            )
        parent[top(a)] = top(b)
    apart = sorted({top(name) for name in parent})
    if len(apart) > 1:
        raise ValueError(f"{apart[0]} and {apart[1]} are not linked; want one way between any two")
