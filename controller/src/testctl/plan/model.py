# SPDX-License-Identifier: Apache-2.0
"""The model of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value

from testctl.core.point import Point
from testctl.core.temporal import Temporal
from testctl.core.topology import Topology
from testctl.plan.diagnostics import Place
from testctl.plan.formula import Formula
from testctl.plan.ranges import Range

Levels = tuple[int, ...]
"""The index of the value of every assignment."""

Number = int | float

DEFAULT_BIN_NS = 10_000_000


@dataclass(frozen=True)
class Flow:
    """Traffic from one host to another."""

    name: str
    source: str
    sink: str
    place: Place


@dataclass(frozen=True)
class Target:
    """A parameter of an entity, and its value for each level of the tuple that sets it; () if unset."""

    entity: str
    kind: str
    param: str
    spec: ParamSpec
    values: tuple[Value, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        return self.entity, self.param


@dataclass(frozen=True)
class Assignment:
    """A tuple of the plan.  With more than one value it is a factor.

    texts     the values as written, one a level
    targets   parameters that it sets, without those that a more specific tuple sets
    rank      how specific it is: 0 a group, 1 a switch for its ports, 2 the entity itself; 10 more for --set
    places    place of each value
    range     where the values are drawn from it
    """

    entity: str
    param: str
    place: Place
    texts: tuple[str, ...]
    targets: tuple[Target, ...]
    rank: int
    places: tuple[Place, ...]
    range: Range | None = None

    @property
    def key(self) -> str:
        return f"{self.entity}.{self.param}"

    @property
    def constants(self) -> tuple[str, ...]:
        """The values as written that are no formulas."""
        values = zip(self.texts, self.targets[0].values, strict=True)
        return tuple(text for text, value in values if not isinstance(value, Formula))

    def place_of(self, level: int) -> Place:
        return self.places[level]


Condition = Mapping[int, frozenset[int]]
"""Assignment index -> levels; met by a point whose level is among them for every index."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of a metric, whose numbers are in its unit, or a condition on a signal over time.

    `at_least` and `at_most` are ratios to the same metric at the point where `than`
    (assignment index -> level) is replaced, of another flow if one is named.
    """

    least: Number | None = None
    most: Number | None = None
    equals: Number | str | None = None
    tolerance: Number = 0
    relative: bool = False
    at_least: Number | None = None
    at_most: Number | None = None
    than: Mapping[int, int] = field(default_factory=dict)
    beside: str = ""
    over_time: Temporal | None = None

    @property
    def given(self) -> bool:
        """Whether there is a bound."""
        bounds = (self.least, self.most, self.equals, self.at_least, self.at_most, self.over_time)
        return any(bound is not None for bound in bounds)


@dataclass(frozen=True)
class Paper:
    """The published value of an expectation's metric.

    source      who, what, which figure
    published   in the metric's unit, or as the ratio where there is a `than`; text: the property that is claimed
    within      relative difference that still counts as reproduced; 0: exactly as published
    why         why ours differs
    """

    source: str
    published: Number | str
    within: Number = 0
    why: str = ""


FAILURE, NO_FAILURE = "failure", "none"
"""The metric that says how a flow's connections failed, words between ", ", and its value where none did."""


@dataclass(frozen=True)
class Expectation:
    """A condition on a metric, over the points that meet `when` and the flows named.

    Without a bound it is only a comparison with what a paper published.

    metric  "" where the bounds are over time
    null  when the metric has no value though its instruments were there, such as "NaN when no rate is set"; "": never
    """

    name: str
    metric: str
    flows: tuple[str, ...]
    bounds: Bounds
    when: Condition
    quantifier: Literal["every", "some"]
    place: Place
    paper: Paper | None = None
    null: str = ""


@dataclass(frozen=True)
class Design:
    """Which points: the full product (strength 0), an array that covers every `strength` values together, or `sample`
    points drawn from ranges and lists of values.
    """

    strength: int = 0
    seed: int = 1
    sample: int = 0


@dataclass(frozen=True)
class FigureSpec:
    """A figure: of the first point that meets `when`; kinds response, metric, cdf and box: of all that do.

    bin_ns    width of the bins (throughput)
    flow      "" for the first flow; kinds metric, cdf and box: for all flows together
    connection  kinds sequence and time_sequence: which of the flow's, from 0
    when      "entity.parameter" -> the values it may have, as written
    from_ns, to_ns   the time shown; to_ns 0 means to the end
    metric    kinds metric, cdf and box: what is shown
    x, by, facet     the same kinds: "entity.parameter" along x, of the lines, and of the panels; or "flow"; "" for none
    place     where the plan asks for it
    condition `when` as levels; empty for the plan that a run kept
    """

    title: str
    kind: str
    bin_ns: int = DEFAULT_BIN_NS
    flow: str = ""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_ns: int = 0
    to_ns: int = 0
    metric: str = ""
    x: str = ""
    by: str = ""
    facet: str = ""
    connection: int = 0
    place: Place = field(default=Place("figures"), compare=False)
    condition: Condition = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Allowed:
    """A rule of TCP that the points that meet `when` may break."""

    rule: str
    reason: str
    when: Condition


@dataclass(frozen=True, kw_only=True)
class WrittenPlan:
    """A plan as it is written, with its overrides: all of it is read, and its points are not made yet.

    text       the file as given
    topology_text  the file that `topology` names by its path, as it was; "" where it names one of the lab's
    traces     path -> value of the files that its values name by their paths
    overrides  the --set words
    defaults   entity -> {parameter: value} where the plan says nothing
    figures    what the report draws beside the points
    left_out   (entity, parameter, values) of the tuples that --without left out
    zips       the indexes of tuples whose values belong together; in a group each has equally many
    rows       the points of a design with `sample`
    named      ENTITY.PARAM in formulas -> the index of the tuple that sets it; None: the plan has no formula
    """

    name: str
    file: str
    text: str
    about: str
    testbed: str
    overrides: tuple[str, ...]
    topology: Topology
    flows: tuple[Flow, ...]
    groups: Mapping[str, tuple[str, ...]]
    assignments: tuple[Assignment, ...]
    defaults: Mapping[str, Mapping[str, Value]]
    design: Design
    repeat: int
    seed: int
    excludes: tuple[Condition, ...]
    expectations: tuple[Expectation, ...]
    figures: tuple[FigureSpec, ...]
    left_out: tuple[tuple[str, str, str], ...]
    topology_text: str = ""
    traces: Mapping[str, str] = field(default_factory=dict)
    allowed: tuple[Allowed, ...] = ()
    zips: tuple[tuple[int, ...], ...] = ()
    rows: tuple[Levels, ...] = ()
    named: Mapping[str, int] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(a.texts) for a in self.assignments)

    @property
    def factors(self) -> tuple[Assignment, ...]:
        """The tuples that are swept."""
        return tuple(a for a in self.assignments if len(a.texts) > 1)


@dataclass(frozen=True, kw_only=True)
class Plan(WrittenPlan):
    """A plan that has passed every check, with its points.

    dropped    names of the expectations that are about what --set or --without took away; not among the others
    tree       of --source: the user's tree whose kernel its points run on (testctl.cli.source.described)
    """

    points: tuple[Point, ...]
    dropped: tuple[str, ...] = ()
    tree: Mapping[str, str] = field(default_factory=dict)
