# SPDX-License-Identifier: Apache-2.0
"""Plans: read, checked, expanded to points, and held against results."""

from testctl.plan.cover import Coverage
from testctl.plan.judge import ExpectationVerdict, PointVerdict, evaluate
from testctl.plan.load import load_plan, load_topology
from testctl.plan.model import Assignment, Design, Expectation, Flow, Plan, Point
from testctl.plan.points import MAX_POINTS, coverage, expand
from testctl.plan.registry import MetricInfo, Registry
from testctl.plan.schema import schema
from testctl.plan.summary import Factor, Summary, summarise
from testctl.plan.topology import Topology, topology_dir, topology_names

__all__ = [
    "MAX_POINTS",
    "Assignment",
    "Coverage",
    "Design",
    "Expectation",
    "ExpectationVerdict",
    "Factor",
    "Flow",
    "MetricInfo",
    "Plan",
    "Point",
    "PointVerdict",
    "Registry",
    "Summary",
    "Topology",
    "coverage",
    "evaluate",
    "expand",
    "load_plan",
    "load_topology",
    "schema",
    "summarise",
    "topology_dir",
    "topology_names",
]
