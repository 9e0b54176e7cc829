# SPDX-License-Identifier: Apache-2.0
"""Plans: reading, checks, expansion to points, and judging of results."""

from testctl.core.point import Point
from testctl.plan.claims import CLAIM_VERDICTS, Claim, Ours, evaluate_claims
from testctl.plan.cost import cost_ms
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
from testctl.plan.model import Assignment, Expectation, FigureSpec, Plan
from testctl.plan.overview import overview
from testctl.plan.points import coverage, expand
from testctl.plan.schema import schema
from testctl.plan.topology import topology_dir, topology_names
from testctl.plan.written_bounds import Written, written_bounds

__all__ = [
    "CLAIM_PLANS",
    "CLAIM_VERDICTS",
    "Assignment",
    "Claim",
    "Expectation",
    "ExpectationVerdict",
    "FigureSpec",
    "Judgement",
    "Measured",
    "Ours",
    "Plan",
    "Point",
    "PointVerdict",
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
