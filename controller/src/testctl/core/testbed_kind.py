# SPDX-License-Identifier: Apache-2.0
"""The kinds of testbeds, by what sets them apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KindOfTestbed:
    """Properties of a kind of testbed.

    name           as parameters have it that a kind lacks
    deterministic  runs in virtual time: a point has the same records each time, and there is no noise to measure
    boots_kernels  a point runs on the kernel that it names, built here before
    local          its points run on this machine
    everywhere     every machine has it, so that a cluster's workers can run its points
    """

    name: str
    deterministic: bool = False
    boots_kernels: bool = False
    local: bool = True
    everywhere: bool = False


LAB = KindOfTestbed("lab", deterministic=True, boots_kernels=True, everywhere=True)
NETNS = KindOfTestbed("netns")
RACK = KindOfTestbed("inventory", local=False)
NAMED = {kind.name: kind for kind in (LAB, NETNS)}
"""Those with a name of their own; any other word after --testbed is the path of an inventory."""
DEFAULT = LAB.name
"""The testbed of a run that names none."""


def kind_of(testbed: str) -> KindOfTestbed:
    """By the word after --testbed."""
    return NAMED.get(testbed, RACK)
