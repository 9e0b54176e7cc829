# SPDX-License-Identifier: Apache-2.0
"""The rows that a switch's P4 program starts with."""

from __future__ import annotations

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.params.types import FileText
from testctl_agent.spec import p4_program
from testctl_agent.spec.param import ParamSpec

__all__ = ["SPEC", "apply", "read", "unavailable"]

SPEC = ParamSpec(
    name="entries",
    kind="switch",
    help=(
        "The table entries, multicast groups, clone sessions and registers of the switch's program: the path, from the "
        "plan, of a runtime JSON as p4lang's tutorials have it, or of commands of simple_switch_CLI; where a number is "
        "wanted, the name of a host or neighbour stands for its MAC address, IP address or port"
    ),
    type=FileText(
        "the path of a file with entries that begins at the plan, such as ./s1-runtime.json, or none",
        p4_program.canonical_entries,
        p4_program.entries_of_file,
    ),
    testbeds=frozenset({"lab"}),
)
