# SPDX-License-Identifier: Apache-2.0
"""The kinds of testbeds and their properties."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KindOfTestbed:
    """Properties of a kind of testbed.

    name           as in the `testbeds` of parameters
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
"""Kinds by name; any other argument of --testbed is the path of an inventory."""
DEFAULT = LAB.name
"""The default testbed."""


def kind_of(testbed: str) -> KindOfTestbed:
    """The kind for an argument of --testbed."""
    return NAMED.get(testbed, RACK)
