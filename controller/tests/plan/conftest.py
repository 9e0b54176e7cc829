# SPDX-License-Identifier: Apache-2.0
"""A small registry of parameters and metrics, so that these tests don't change with the agents' files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from testctl.plan import Plan, load_plan
from testctl_agent.spec.param import Kind, ParamSpec, Scope
from testctl_agent.spec.types import Amount, Choice, Int, Switch, Text, Value, ValueType
from testctl_agent.spec.units import Bytes, Duration, Rate


@dataclass(frozen=True)
class FakeMetric:
    unit: str
    text: bool = False
    null: str = ""


METRICS = {
    "throughput_bps": FakeMetric("bit/s"),
    "stability_cv_10ms": FakeMetric(""),
    "rtt_p99_us": FakeMetric("µs", null="NaN without any"),
    "stall_cause": FakeMetric("", text=True),
    "jain": FakeMetric(""),
}


def spec(
    kind: Kind, name: str, of: ValueType, scope: Scope = "entity", default: Value | None = None, **more: Any
) -> ParamSpec:
    return ParamSpec(name=name, kind=kind, help=name, type=of, scope=scope, default=default, **more)


SPECS = [
    spec("host", "cc", Text(r"[a-z][a-z0-9_]{0,14}", "the name of a congestion control")),
    spec("host", "kernel", Text(r"[0-9.]+", "a version"), scope="testbed"),
    spec("host", "mtu", Int(576, 65535, "bytes"), scope="path"),
    spec("host", "tso", Switch()),
    spec("host", "gro_flush", Amount(Duration)),
    spec("host", "htb_rate", Amount(Rate)),
    spec("host", "rack_only", Switch(), testbeds=frozenset({"inventory"})),
    spec("host", "sysctl", Text(r".+", "text"), pattern=r"net\.(?:ipv4|core)\.[a-z0-9_]+|tcp_ecn"),
    spec("host", "capture", Switch(), default=True, role="collector"),
    spec("switch", "mtu", Int(576, 65535, "bytes"), scope="path"),
    spec("port", "rate", Amount(Rate, none="none")),
    spec("port", "delay", Amount(Duration)),
    spec("flow", "cc", Text(r"[a-z]+", "a congestion control")),
    spec("flow", "duration", Amount(Duration), role="flow"),
    spec("flow", "bytes", Amount(Bytes, least=1), role="flow"),
    spec("flow", "start", Amount(Duration), role="flow", default=Duration(0)),
    spec("flow", "parallel", Int(1, 64), role="flow", default=1),
    spec("flow", "generator", Choice(("tgen", "iperf3")), role="flow", default="tgen"),
]


class FakeRegistry:
    """Finds as the agents' registry does: by name, else by the family's pattern."""

    def specs(self) -> dict[str, dict[str, ParamSpec]]:
        found: dict[str, dict[str, ParamSpec]] = {"host": {}, "switch": {}, "port": {}, "flow": {}}
        for s in SPECS:
            found[s.kind][s.name] = s
        return found

    def find(self, kind: str, name: str) -> ParamSpec | None:
        for s in SPECS:
            if s.kind == kind and s.name == name:
                return s
            if s.kind == kind and s.pattern and re.fullmatch(s.pattern, name):
                ecn = name.endswith("tcp_ecn")
                return replace(s, name=name, pattern="", type=Choice((0, 1, 2)) if ecn else s.type)
        return None


BASE = """\
topology: pair
flows: {bulk: sender -> receiver}
"""

Load = Callable[..., Plan]


@pytest.fixture(scope="session")
def load() -> Load:
    """Loads text or bytes with the registry and metrics of these tests."""

    def make(text: str | bytes, overrides: Sequence[str] = (), **more: Any) -> Plan:
        source = textwrap.dedent(text).encode() if isinstance(text, str) else text
        options = {"metrics": METRICS, "registry": FakeRegistry(), **more}
        return load_plan(source, overrides=overrides, **options)

    return make


@pytest.fixture(scope="session")
def plan_of(load: Load) -> Load:
    """A plan from its tuples and what else follows them; topology pair, flow bulk."""

    def make(rest: str, overrides: Sequence[str] = (), **more: Any) -> Plan:
        return load(BASE + textwrap.dedent(rest), overrides, **more)

    return make


@pytest.fixture(scope="session")
def registry() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture(scope="session")
def metrics() -> dict[str, FakeMetric]:
    return METRICS
