# SPDX-License-Identifier: Apache-2.0
"""What a plan may state and its author may not mean: printed before a run, never an error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Rate

from testctl.core.routes import SEED
from testctl.plan.model import Plan
from testctl.plan.unlimited import unlimited_flows

_MTU, _ETHERNET = 1500, 14
_BPS = re.compile(r"([0-9.]+)\s*([kMG])bps")


def remarks(plan: Plan) -> list[str]:
    """A sentence for each, with its place."""
    return [*unlimited_flows(plan), *_bits(plan), *_seeds(plan), *_buffers(plan)]


def _bits(plan: Plan) -> Iterator[str]:
    """Rates in "Gbps", which are bytes to tc and bits here."""
    for assignment in plan.assignments:
        if not any(isinstance(t.spec.type, Amount) and t.spec.type.of is Rate for t in assignment.targets):
            continue
        for text, place in zip(assignment.texts, assignment.places, strict=True):
            if match := _BPS.fullmatch(text):
                meant = f"{match[1]}{match[2].lower()}bit"
                yield f"{place}: {assignment.key}: {text} is {meant}, in bits (tc would read bytes): write {meant}"


def _seeds(plan: Plan) -> Iterator[str]:
    """A seed that chooses between ways which the topology does not have."""
    for assignment in plan.assignments:
        if not plan.topology.ecmp and any(target.param == SEED for target in assignment.targets):
            yield (
                f"{assignment.place}: {assignment.key}: topology {plan.topology.name} has one way between any two "
                "hosts, so this changes nothing (docs/plans.md has those with several)"
            )


def _buffers(plan: Plan) -> Iterator[str]:
    """A buffer that holds no full-sized packet: it drops each, also while nothing waits."""
    for assignment in plan.assignments:
        small = [
            (int(size), mtu + _ETHERNET)
            for point in plan.points
            for target in assignment.targets
            if target.param == "buffer"
            and (size := point.settings.get(target.entity, {}).get("buffer")) not in (None, "none")
            for mtu in [max(int(of.get("mtu", _MTU)) for of in point.settings.values())]
            if int(size) < mtu + _ETHERNET
        ]
        if small:
            size, packet = small[0]
            yield (
                f"{assignment.place}: {assignment.key}: a buffer of {size} bytes holds no packet of {packet}, the MTU "
                "and Ethernet's header, so that each of them is dropped"
            )
