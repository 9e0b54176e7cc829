# SPDX-License-Identifier: Apache-2.0
"""Reads lab/topologies/NAME.yaml and fills in its parameters.

    about: one line
    parameters: {senders: {default: 1, least: 1, most: 100}}
    nodes:
      sender: {kind: host, count: senders, group: senders}     # sender1, sender2, …; alone: sender, or sender1
      left: {kind: switch}
    links:
      - each: [sender, left]     # every one of a node to one other
      - mesh: [leaf, spine]      # every one to every one
      - divide: [h, leaf]        # as many to each: the first ones to the first, and so on
      - zip: [h, s]              # the first to the first, the second to the second, …
      - chain: s                 # each to the next
      - link: [left, right]      # two that there is one of

A count is a number, a parameter, or a parameter + a number.  With `ecmp: true` there may be several ways between two
switches; each switch spreads the connections over those of equal cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.core.topology import Topology
from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.fields import LONGEST_NAME, Fields, name_of, words_of
from testctl.plan.flows import BUILTIN
from testctl.plan.named_files import read_named
from testctl.plan.topology_links import check_links
from testctl.plan.tutorial_topology import TutorialTopology, read_tutorial
from testctl.plan.yaml_reader import MAX_BYTES, Node, Scalar, parse, what
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Sequence as SequenceNode

MAX_NODES = 250
_COUNT = re.compile(r"([a-z][a-z0-9_]*)(?: *\+ *([0-9]{1,3}))?")


@dataclass(frozen=True)
class Parameter:
    """A number that a plan may set."""

    name: str
    default: int
    least: int
    most: int


@dataclass(frozen=True)
class TopologyFile:
    """A topology before its parameters have values."""

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    nodes: Node
    links: Node
    ecmp: bool = False

    def parameter(self, word: str) -> tuple[str, int]:
        """(name, value) of a word such as hosts=8.  Raises PlanError."""
        name, _, number = word.partition("=")
        known = next((p for p in self.parameters if p.name == name), None)
        if known is None:
            there = ", ".join(f"{p.name}=N" for p in self.parameters) or "none"
            raise PlanError(f"topology {self.name}: want its parameters, {there}; got {show(word)}")
        if not re.fullmatch("[0-9]{1,9}", number) or not known.least <= int(number) <= known.most:
            raise PlanError(f"topology {self.name}: want {name} from {known.least} to {known.most}; got {show(word)}")
        return name, int(number)

    def resolve(self, values: Mapping[str, int]) -> Topology:
        """The topology for these parameters; others have their defaults.  Raises PlanError with places of the file."""
        problems = Problems()
        filled = {p.name: values.get(p.name, p.default) for p in self.parameters}
        names, kinds, groups = _nodes(self.nodes, filled, problems)
        problems.check()
        links = _links(self.links, names, problems)
        problems.check()
        hosts = [n for node, members in names.items() if kinds[node] == "host" for n in members]
        switches = [n for node, members in names.items() if kinds[node] == "switch" for n in members]
        addresses = {host: f"10.0.0.{index}" for index, host in enumerate(hosts, start=1)}
        # sender1 -> sender where a node with a count is alone, so that a plan need not change with the count.
        taken = {name for members in names.values() for name in members}
        counted = {key.text for key, value in _entries(self.nodes, "nodes", Problems())
                   if isinstance(value, MappingNode) and value.get("count") is not None}  # fmt: skip
        aliases = {f"{node}1": node for node in counted if names[node] == (node,) and f"{node}1" not in taken}
        topology = Topology(
            self.name, filled, addresses, tuple(switches), tuple(links), groups, aliases, ecmp=self.ecmp
        )
        try:
            check_links(topology)
        except ValueError as error:
            raise PlanError(f"{self.links.place}: {error}") from error
        return topology


@dataclass
class OwnTopology:
    """A topology file that a plan names by its path, which begins at the plan.

    directory  of the plan; None: the plan is not in a file
    kept       the text to use instead of the file; "" if it was lost
    read       the text, once it has been read
    """

    directory: Path | None
    kept: str | None
    read: str = ""

    def file(self, name: Scalar, problems: Problems) -> TopologyFile | TutorialTopology | None:
        """The parsed file; None after adding a problem."""
        if not name.text.endswith((".yaml", ".json")):
            why = "want a path of a .yaml file that begins at the plan, such as ./mine.yaml"
        elif self.kept == "":
            why = "want the text that the run used; it has no topology.yaml"
        else:
            try:
                read = read_named(self.directory, name.text, MAX_BYTES).decode() if self.kept is None else self.kept
                self.read = read
                if name.text.endswith(".json"):
                    return read_tutorial((self.directory or Path()) / name.text, read)
                return read_topology((self.directory or Path()) / name.text, self.read)
            except ValueError as error:
                why = f"{error}".removeprefix(f"{name.text}: ")
        problems.add(name.place, f"topology {show(name.text)}: {why}")
        return None


def read_topology(path: Path, text: str | None = None) -> TopologyFile:
    """The topology of a file, or of `text` in its place.  Raises PlanError with places."""
    try:
        data = path.read_bytes() if text is None else text.encode()
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}") from error
    problems = Problems()
    fields = Fields(
        parse(data, str(path)),
        "",
        ("about", "parameters", "nodes", "links", "ecmp"),
        problems,
        needed=("nodes", "links"),
    )
    parameters = _parameters(fields.nodes.get("parameters"), problems)
    problems.check()
    ecmp = fields.nodes.get("ecmp")
    if ecmp is not None and not (isinstance(ecmp, Scalar) and isinstance(ecmp.value, bool)):
        problems.add(ecmp.place, f"ecmp: want true or false; got {what(ecmp)}")
        problems.check()
    return TopologyFile(
        path.stem, fields.text("about"), parameters, fields.nodes["nodes"], fields.nodes["links"],
        isinstance(ecmp, Scalar) and bool(ecmp.value),
    )  # fmt: skip


def _parameters(node: Node | None, problems: Problems) -> tuple[Parameter, ...]:
    parameters = []
    for key, value in _entries(node, "parameters", problems):
        fields = Fields(value, key.text, ("default", "least", "most"), problems, needed=("default",))
        if fields.ok and name_of(key, "parameter", problems, 31):
            least = fields.integer("least", 1, 0, MAX_NODES)
            most = fields.integer("most", MAX_NODES, least, MAX_NODES)
            parameters.append(Parameter(key.text, fields.integer("default", least, least, most), least, most))
    return tuple(parameters)


def _entries(node: Node | None, name: str, problems: Problems) -> tuple[tuple[Scalar, Node], ...]:
    if node is None:
        return ()
    if not isinstance(node, MappingNode):
        problems.add(node.place, f"{name}: want a mapping; got {what(node)}")
        return ()
    return node.entries


Nodes = tuple[dict[str, tuple[str, ...]], dict[str, str], dict[str, tuple[str, ...]]]


def _nodes(node: Node, filled: Mapping[str, int], problems: Problems) -> Nodes:
    """(node → its names, node → its kind, group → names)."""
    names: dict[str, tuple[str, ...]] = {}
    kinds: dict[str, str] = {}
    groups: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for key, value in _entries(node, "nodes", problems):
        fields = Fields(value, key.text, ("kind", "count", "group"), problems, needed=("kind",))
        if not fields.ok or name_of(key, "node", problems) is None:
            continue
        count = _count(fields.nodes.get("count"), key.text, filled, problems)
        members = (key.text,) if count == 1 else tuple(f"{key.text}{i}" for i in range(1, count + 1))
        for name in members:
            fault = f"has more than {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else ""
            fault = fault or ("is that of a group of every plan" if name in BUILTIN else "")
            fault = fault or ("is there twice" if name in taken else "")
            if fault:
                problems.add(key.place, f"{key.text}: the name {name} {fault}")
        taken.update(members)
        names[key.text] = members
        kinds[key.text] = fields.choice("kind", "host", ("host", "switch"))
        group = fields.nodes.get("group")
        if group is not None and name_of(group, "group", problems, 31):
            if fields.text("group") in BUILTIN:
                problems.add(
                    group.place, f"{key.text}: the name {fields.text('group')} is that of a group of every plan"
                )
            groups[fields.text("group")] = groups.get(fields.text("group"), ()) + members
    if len(taken) > MAX_NODES:
        problems.add(node.place, f"nodes: want at most {MAX_NODES}; got {len(taken)}")
    return names, kinds, groups


def _count(node: Node | None, who: str, filled: Mapping[str, int], problems: Problems) -> int:
    if node is None:
        return 1
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NODES:
        return value
    match = _COUNT.fullmatch(value) if isinstance(value, str) else None
    if match and match[1] in filled:
        return filled[match[1]] + int(match[2] or 0)
    problems.add(node.place, f"{who}, count: want a number, a parameter, or a parameter + a number; got {what(node)}")
    return 1


def _links(node: Node, names: Mapping[str, tuple[str, ...]], problems: Problems) -> list[tuple[str, str]]:
    """The links.  Raises PlanError at the first duplicate or loop."""
    links: dict[tuple[str, str], None] = {}
    if not isinstance(node, SequenceNode):
        problems.add(node.place, f"links: want a list; got {what(node)}")
        return []
    for item in node.items:
        if not isinstance(item, MappingNode) or len(item.entries) != 1:
            problems.add(item.place, f"links: want one of link, each, mesh, divide, zip or chain; got {what(item)}")
            continue
        how, value = item.entries[0]
        ends: list[tuple[str, ...]] = []
        for word in words_of(value, how.text, problems):
            if word.text in names:
                ends.append(names[word.text])
            else:
                problems.add(word.place, f"{how.text}: no node named {show(word.text)}{suggest(word.text, names)}")
        match (how.text, [len(end) for end in ends]):
            case ("link", [1, 1]) | ("each", [_, 1]):
                pairs: Iterable[tuple[str, str]] = ((name, ends[1][0]) for name in ends[0])
            case ("mesh", [_, _]):
                pairs = ((left, other) for left in ends[0] for other in ends[1])
            case ("divide", [m, n]) if m >= n > 0:
                pairs = ((name, ends[1][place * n // m]) for place, name in enumerate(ends[0]))
            case ("zip", [m, n]) if m == n:
                pairs = zip(ends[0], ends[1], strict=True)
            case ("chain", [_]):
                pairs = pairwise(ends[0])
            case (text, counts):
                want = (
                    "link: [one, one], each: [some, one], mesh: [some, some], divide: [some, as many or fewer], "
                    "zip: [some, as many] or chain: some"
                )
                problems.add(how.place, f"want {want}; got {show(text)} of {', '.join(map(str, counts)) or 'nothing'}")
                continue
        for a, b in pairs:
            if a == b:
                raise PlanError(f"{how.place}: want links between two nodes; got one from {a} to itself")
            if (a, b) in links or (b, a) in links:
                raise PlanError(f"{how.place}: want one link between {a} and {b}; got another")
            links[a, b] = None
    return list(links)
