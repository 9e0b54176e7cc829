# SPDX-License-Identifier: Apache-2.0
"""Plans: reading, checks, expansion to points, and judging of results."""

from testctl.core.point import Point
from testctl.core.topology import Topology
from testctl.plan.claims import CLAIM_VERDICTS, Claim, Ours, evaluate_claims
from testctl.plan.cost import cost_ms
from testctl.plan.cover import Coverage
from testctl.plan.figures import figures_of
from testctl.plan.judge import (
    ExpectationVerdict,
    Judgement,
    Measured,
    PointVerdict,
    compared_with,
    evaluate,
    verdict_alone,
)
from testctl.plan.load import CLAIM_PLANS, load_plan, load_topology
from testctl.plan.model import Assignment, Design, Expectation, FigureSpec, Flow, Plan
from testctl.plan.overview import Overview, overview
from testctl.plan.points import MAX_POINTS, coverage, expand
from testctl.plan.registry import MetricInfo, Registry
from testctl.plan.schema import schema
from testctl.plan.topology import topology_dir, topology_names
from testctl.plan.written_bounds import Written, written_bounds

__all__ = [
    "CLAIM_PLANS",
    "CLAIM_VERDICTS",
    "MAX_POINTS",
    "Assignment",
    "Claim",
    "Coverage",
    "Design",
    "Expectation",
    "ExpectationVerdict",
    "FigureSpec",
    "Flow",
    "Judgement",
    "Measured",
    "MetricInfo",
    "Ours",
    "Overview",
    "Plan",
    "Point",
    "PointVerdict",
    "Registry",
    "Topology",
    "Written",
    "compared_with",
    "cost_ms",
    "coverage",
    "evaluate",
    "evaluate_claims",
    "expand",
    "figures_of",
    "load_plan",
    "load_topology",
    "overview",
    "schema",
    "topology_dir",
    "topology_names",
    "verdict_alone",
    "written_bounds",
]
