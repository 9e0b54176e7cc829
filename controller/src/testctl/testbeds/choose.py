# SPDX-License-Identifier: Apache-2.0
"""Finds a testbed by the value of --testbed.

A distribution declares its testbeds in its pyproject.toml, as the controller does:

    [project.entry-points."testctl.testbeds"]
    netns = "testctl.testbeds.netns"

The name is the word after --testbed; the value a module with `testbed(word) -> Testbed` (testbed.py).  A word that is
no testbed's name but a path is for the testbed `inventory`.  A testbed that lacks a method is refused.
"""

from __future__ import annotations

from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system.entry_points import Group

from testctl.core.testbed_kind import RACK
from testctl.testbeds.testbed import Testbed

TESTBEDS = Group("testctl.testbeds", "testbed", "testbed", {RACK.name: "testctl-rack"})


def find(word: str) -> Testbed:
    """Raises PlanError when it is neither a testbed's name nor a path, TestbedError when the testbed can't be had."""
    names = [name for name in TESTBEDS.names() if name != RACK.name]
    if word not in names and not (word and Path(word).exists()):
        raise PlanError(f"--testbed: want {', '.join(names)} or an Ansible inventory; got {word!r}, which is not there")
    if word not in names and RACK.name not in TESTBEDS.names():
        raise TestbedError(
            f"--testbed: want {' or '.join(names)}; got {word!r}: an inventory needs the distribution "
            f"{TESTBEDS.known[RACK.name]}, which is not installed"
        )
    testbed = TESTBEDS.module(word if word in names else RACK.name).testbed(word)
    if not isinstance(testbed, Testbed):
        methods = [name for name in vars(Testbed) if not name.startswith("_") and not hasattr(testbed, name)]
        raise TestbedError(
            f"--testbed {word}: want the methods of {Testbed.__module__}.Testbed; lacking: {', '.join(methods)}"
        )
    return testbed
