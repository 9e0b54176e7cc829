# SPDX-License-Identifier: Apache-2.0
"""State parameters of other distributions, by entry points of the group testctl_agent.parameters.

The name of an entry point is KIND.NAME, such as "host.tx_queue_len", and its value a module with what a file of
params/KIND/ has.  They are looked up only for a name that the agents do not have themselves, and for lists.
"""

from __future__ import annotations

from dataclasses import replace

from testctl_agent.params.members import Member, RegistryError, specs_of
from testctl_agent.spec.param import Kind
from testctl_agent.system.entry_points import PARAMETERS

KINDS: tuple[Kind, ...] = ("host", "port", "switch")
TESTBEDS = frozenset({"lab", "netns"})
"""Where agents run from the controller's own environment; a rack's are installed without other distributions."""


def names() -> list[tuple[str, str]]:
    """(kind, name) of all that are installed."""
    return [(kind, name) for kind, _, name in (entry.partition(".") for entry in PARAMETERS.names())]


def find(kind: str, name: str) -> Member | None:
    """The parameter of that kind and name; None when no distribution brings it.  Raises TestbedError."""
    entry = f"{kind}.{name}"
    if entry not in PARAMETERS.names():
        return None
    module = PARAMETERS.module(entry)
    try:
        if kind not in KINDS:
            raise RegistryError(f"want a kind of {', '.join(KINDS)}; got {kind}")
        spec = next((spec for spec in specs_of(kind, name, module) if spec.name == name), None)
        if spec is None:
            raise RegistryError(f"want a SPEC of the name {name}; got none")
        if spec.role != "state" or spec.pattern or spec.default is not None:
            raise RegistryError("want the role state, and neither pattern nor default")
    except RegistryError as error:
        raise RegistryError(f"{who(kind, name)}: {error}") from error
    return Member(replace(spec, testbeds=spec.testbeds & TESTBEDS), module)


def package(kind: str, name: str) -> str:
    """The top-level package of a parameter, which is not imported.  Raises TestbedError."""
    return PARAMETERS.package(f"{kind}.{name}")


def who(kind: str, name: str) -> str:
    """As errors name it."""
    return f"parameter {kind}.{name} of the distribution {PARAMETERS.distribution(f'{kind}.{name}')}"
