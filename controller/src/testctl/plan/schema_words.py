# SPDX-License-Identifier: Apache-2.0
"""What an editor shows of each key of a plan."""

from __future__ import annotations

from testctl.plan.sweep_figures import MAX_BY, MAX_FACET

PLAN = {
    "about": "What the plan is for, in one line",
    "topology": "Hosts, switches and links: one of lab/topologies, with its parameters as {dumbbell: {senders: 2}}, or "
    "a file of your own whose path begins at the plan: ./mine.yaml. `testctl topologies` lists them",
    "flows": "The traffic, NAME: HOST -> HOST. An end may be a pattern or a group (h* -> h1): a flow of each, NAME1, "
    "NAME2, …, and NAME is the group of them",
    "groups": "NAME: [MEMBER, …]: hosts, switches, ports or flows that tuples set together. There are already hosts, "
    "switches, flows and all",
    "tuples": "What is set: [entity, parameter, value], or [entity, parameter, [value, …]] to sweep. Without `design` "
    "there is a point for every combination of values. A tuple of an entity wins over one of its group",
    "design": "Which combinations of values are points: full (all of them), or {cover: 2}: few points that together "
    "have every pair of values",
    "repeat": "How often each point is run, each time with the next seed",
    "seed": "The seed of the first repetition, from which all randomness comes",
    "exclude": "Combinations of values that are no points: a point is left out that meets all keys of an entry",
    "expect": "What has to hold. Without an expectation a point passes when it was measured",
    "figures": "What the report draws beside the points' own figures",
}
DESIGN = {
    "cover": "Every combination of the values of so many tuples is in some point: 2 for pairs, 3 for triples",
    "seed": "Another seed chooses other points of the same coverage",
}
EXPECT = {
    "name": "How the report calls it; default: the metric and a number",
    "metric": "What is compared; `testctl metrics` lists them",
    "fails_with": "In place of a metric: how the flow has to fail, such as ETIMEDOUT",
    "flow": "Of which flows, or groups of flows; default: of every one",
    "min": "The least that passes, in the metric's unit or with a unit of its own, such as 90mbit",
    "max": "The most that passes, in the metric's unit or with a unit of its own, such as 10ms",
    "equals": "What it has to be, within `tolerance`; a text for a metric that is one",
    "tolerance": "How far from `equals` it may be, in the metric's unit, or a share such as 5%",
    "at_least": "At least so many times the metric of the point that `than` names",
    "at_most": "At most so many times the metric of the point that `than` names",
    "than": "The point to compare with: the same one but for these values, such as {hosts.cc: reno}",
    "when": "Only for points with these values, such as {hosts.cc: [cubic, reno]}",
    "quantifier": "every: each of these points has to meet it (the default); some: one of them is enough",
    "paper": "What a paper published of this metric; the report compares it",
}
PAPER = {
    "source": "Who, what, which figure",
    "published": "In the metric's unit, or the ratio where there is a `than`; text: a property",
    "within": "Relative difference that still counts as reproduced",
    "why": "Why ours differs",
}
FIGURE = {
    "title": "Above the figure",
    "kind": "Of the first point: throughput, connections (the throughput of each), sequence, time_sequence; of all "
    "points: response, and metric (a line or bars over a swept parameter), box, cdf",
    "bin": "Width of the bins of throughput, such as 10ms",
    "flow": "The first one when none is named; of a metric all flows together",
    "connection": "Of kinds sequence and time_sequence: which of the flow's, from 0",
    "when": "The first point with these values; of kind response all of them",
    "from": "Begin of the time that is shown, such as 100ms",
    "to": "End of the time that is shown, such as 200ms",
    "metric": "What kinds metric, cdf and box show",
    "x": "The swept parameter along x, such as switch.delay",
    "by": f"A line for each value of this one, at most {MAX_BY}",
    "facet": f"A panel for each value of this one, at most {MAX_FACET}",
}
CONDITION = "ENTITY.PARAM of a tuple: the value it has, or a list of values"
FLOW = "HOST -> HOST"
MEMBERS = "A host, switch, port (switch:receiver), flow or group above; or a list of them"
ENTITY = "host, switch, switch:neighbour (a port), flow or group"
VALUE = "A value, or a list of values to sweep"
OWN_TOPOLOGY = "A file; its path begins at the plan"
NUMBER = "A parameter of the file"
