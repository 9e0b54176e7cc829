# SPDX-License-Identifier: Apache-2.0
"""Reads `expect`: what metrics have to be, at which points, for which flows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from testctl_agent.spec.failures import FAILURES

from testctl.plan.bound_values import NUMBER, number_of
from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import show, suggest
from testctl.plan.field_tables import BOUNDS, EXPECT, PAPER, RATIOS, WITH_FAILS_WITH
from testctl.plan.fields import Fields, words_of
from testctl.plan.model import FAILURE, Bounds, Expectation, Number, Paper
from testctl.plan.registry import MetricInfo
from testctl.plan.sweep_figures import FLOW
from testctl.plan.temporal import MODES, WINDOW, TemporalReader
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, Sequence, what


@dataclass(frozen=True)
class ExpectReader:
    """Turns items of `expect` into Expectations; problems go where the conditions' do."""

    reader: Reader
    metrics: Mapping[str, MetricInfo] | None

    def read(self, node: Node | None, whole: Node | None = None) -> tuple[Expectation, ...]:
        """whole: the list as the plan has it, where --without left out some of its items; it numbers them."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.reader.problems.add(node.place, f"expect: want a list; got {what(node)}")
            return ()
        numbers = {id(item): number for number, item in enumerate(getattr(whole or node, "items", ()), start=1)}
        expectations = [self._one(item, numbers[id(item)]) for item in node.items]
        return tuple(e for e in expectations if e is not None)

    def _one(self, node: Node, number: int) -> Expectation | None:
        problems = self.reader.problems
        fields = Fields(node, f"expect {number}", EXPECT, problems)
        if not fields.ok:
            return None
        failing = "fails_with" in fields.nodes
        mode = next((mode for mode in MODES if mode in fields.nodes), "")
        if not failing and not mode and "metric" not in fields.nodes:
            problems.add(node.place, f"{fields.who}want a field metric, fails_with, eventually or always; got none")
            return None
        metric = FAILURE if failing else "" if mode else fields.text("metric")
        default = (
            f"fails with {fields.text('fails_with')}" if failing else f"{mode} {fields.text(mode)}".strip() or metric
        )
        name = fields.text("name", default=f"{default} {number}")
        fields.who = f"expect {show(name)}: "
        before = len(problems.lines) + problems.more
        if self.metrics is not None and not failing and not mode and metric not in self.metrics:
            hint = suggest(metric, self.metrics)
            problems.add(fields.nodes["metric"].place, f"{fields.who}no metric named {show(metric)}{hint}")
            return None
        info = self.metrics[metric] if self.metrics and metric and not failing else None
        unit, null = (info.unit, info.null) if info else (None, "")
        paper = self._paper(fields, unit)
        if failing:
            bounds = self._failure(fields)
        elif mode:
            bounds = Bounds(over_time=TemporalReader(fields).read())
            if paper and not isinstance(paper.published, str):
                place = fields.nodes["paper"].place
                problems.add(place, f"{fields.who}paper: want a property as published with {mode}; got a number")
        else:
            bounds = self._bounds(fields, unit, paper, info.text if info else None)
        when = {}
        if "when" in fields.nodes:
            when = dict(self.reader.condition(fields.nodes["when"], f"{fields.who}when") or {})
        flows = tuple(flow for flow in self._flows(fields) if flow != bounds.beside)
        if not flows and len(problems.lines) + problems.more == before:
            want = f"want a flow other than {bounds.beside}" if bounds.beside else "flow: want at least one"
            problems.add(fields.nodes.get("flow", node).place, f"{fields.who}{want}; got none")
        quantifier: Literal["every", "some"] = "every"
        if fields.choice("quantifier", "every") == "some":
            quantifier = "some"
        if len(problems.lines) + problems.more > before:
            return None
        return Expectation(name, metric, flows, bounds, when, quantifier, node.place, paper, null)

    def _failure(self, fields: Fields) -> Bounds:
        """The bounds of fails_with, which excludes all others."""
        node, problems = fields.nodes["fails_with"], self.reader.problems
        if others := [name for name in fields.nodes if name not in WITH_FAILS_WITH]:
            problems.add(node.place, f"{fields.who}want fails_with without {', '.join(others)}")
        word = node.text if isinstance(node, Scalar) else ""
        if word not in FAILURES:
            hint = suggest(word, FAILURES) or f"; want one of {', '.join(FAILURES)}"
            problems.add(node.place, f"{fields.who}fails_with: no failure named {show(word)}{hint}")
        return Bounds(equals=word)

    def _flows(self, fields: Fields) -> tuple[str, ...]:
        """The named flows; default: all."""
        names = self.reader.names
        node = fields.nodes.get("flow")
        if node is None:
            return names.groups["flows"]
        chosen: list[str] = []
        for word in words_of(node, f"{fields.who}flow", self.reader.problems):
            members = names.members(word.text)
            if names.kind(word.text) and all(names.kind(member) == "flow" for member in members):
                chosen += [member for member in members if member not in chosen]
            else:
                hint = suggest(word.text, names.groups["flows"])
                self.reader.problems.add(word.place, f"{fields.who}no flow named {show(word.text)}{hint}")
        return tuple(chosen)

    def _paper(self, fields: Fields, unit: str | None) -> Paper | None:
        node = fields.nodes.get("paper")
        if node is None:
            return None
        problems = self.reader.problems
        inner = Fields(node, f"{fields.who}paper", PAPER, problems)
        if not inner.ok:
            return None
        year = inner.nodes["published"]
        if not isinstance(year, Scalar) or year.empty:
            inner.refuse(year, "published", "a number or text")
            return None
        published = self._equals(inner, "published", "" if "than" in fields.nodes else unit)
        within = self._number(inner, "within", "")
        if isinstance(published, str) and "within" in inner.nodes:
            problems.add(inner.nodes["within"].place, f"{inner.who}want within with a published number; got text")
        elif within is not None and within < 0:
            problems.add(inner.nodes["within"].place, f"{inner.who}within: want 0 or more; got {show(str(within))}")
        if published is None:
            return None
        return Paper(inner.text("source"), published, within or 0, inner.text("why"))

    def _bounds(self, fields: Fields, unit: str | None, paper: Paper | None, text: bool | None) -> Bounds:
        """text: whether the metric is text; None: unknown."""
        problems = self.reader.problems
        if over_time := [name for name in WINDOW if name in fields.nodes]:
            node = fields.nodes[over_time[0]]
            problems.add(node.place, f"{fields.who}want {over_time[0]} with eventually or always; got it with metric")
        given = [name for name in BOUNDS if name in fields.nodes]
        ratios = [name for name in given if name in RATIOS]
        assert fields.node is not None, "Fields is ok"
        free = not given and paper is not None and not isinstance(paper.published, str)
        if not given and not free:
            problems.add(fields.node.place, f"{fields.who}want one of {', '.join(BOUNDS)}; got none")
        if len(ratios) not in (0, len(given)) or ("equals" in given and len(given) > 1):
            problems.add(
                fields.node.place,
                f"{fields.who}want min and max, or equals, or at_least and at_most with than; got {', '.join(given)}",
            )
        if bool(ratios) != ("than" in fields.nodes) and not free:
            got = f"{ratios[0]} without than" if ratios else "than without at_least or at_most"
            problems.add(fields.node.place, f"{fields.who}want at_least or at_most together with than; got {got}")
        if "tolerance" in fields.nodes and "equals" not in given:
            problems.add(fields.nodes["tolerance"].place, f"{fields.who}want tolerance with equals only")
        if text and (numeric := [name for name in given if name != "equals"]):
            node = fields.nodes[numeric[0]]
            problems.add(node.place, f"{fields.who}want equals of a metric that is text; got {numeric[0]}")
        tolerance, relative = self._tolerance(fields, unit)
        than, beside = self._than(fields)
        bounds = Bounds(
            least=self._number(fields, "min", unit),
            most=self._number(fields, "max", unit),
            equals=fields.text("equals") if text and "equals" in given else self._equals(fields, "equals", unit, text),
            tolerance=tolerance,
            relative=relative,
            at_least=self._number(fields, "at_least", ""),
            at_most=self._number(fields, "at_most", ""),
            than=than,
            beside=beside,
        )
        if bounds.least is not None and bounds.most is not None and bounds.least > bounds.most:
            problems.add(fields.node.place, f"{fields.who}want min <= max; got {bounds.least} and {bounds.most}")
        if isinstance(bounds.equals, str) and "tolerance" in fields.nodes:
            problems.add(fields.nodes["tolerance"].place, f"{fields.who}want tolerance with a number; got text")
        return bounds

    def _than(self, fields: Fields) -> tuple[Mapping[int, int], str]:
        """(values, flow) that `than` names."""
        node = fields.nodes.get("than")
        entries = node.entries if isinstance(node, MappingNode) else ()
        beside = ""
        for key, value in entries:
            if key.text == FLOW:
                names = self.reader.names.groups["flows"]
                if not isinstance(value, Scalar):
                    self.reader.problems.add(
                        value.place, f"{fields.who}than: want the name of a flow; got {what(value)}"
                    )
                elif (beside := value.text) not in names:
                    hint = suggest(beside, names)
                    self.reader.problems.add(value.place, f"{fields.who}than: no flow named {show(beside)}{hint}")
        rest = tuple((key, value) for key, value in entries if key.text != FLOW)
        if node is None or (beside and not rest):
            return {}, beside
        values = replace(node, entries=rest) if isinstance(node, MappingNode) else node
        return self.reader.replacement(values, f"{fields.who}than") or {}, beside

    def _number(self, fields: Fields, name: str, unit: str | None) -> Number | None:
        node = fields.nodes.get(name)
        if node is None:
            return None
        try:
            return number_of(node, unit)
        except ValueError as error:
            self.reader.problems.add(node.place, f"{fields.who}{name}: {error}")
            return None

    def _equals(self, fields: Fields, name: str, unit: str | None, text: bool | None = None) -> Number | str | None:
        """A number if it parses as one, else text, which is refused where `text` is False."""
        node = fields.nodes.get(name)
        if text is False or not isinstance(node, Scalar) or node.empty or NUMBER.fullmatch(node.text):
            return self._number(fields, name, unit)
        try:
            return number_of(node, unit)
        except ValueError:
            return node.text

    def _tolerance(self, fields: Fields, unit: str | None) -> tuple[Number, bool]:
        node = fields.nodes.get("tolerance")
        value: Number | None
        relative = False
        if isinstance(node, Scalar) and node.text.endswith("%") and NUMBER.fullmatch(node.text[:-1]):
            value, relative = float(node.text[:-1]) / 100, True
        else:
            value = self._number(fields, "tolerance", unit)
        if value is not None and not 0 <= value < math.inf and node is not None:
            self.reader.problems.add(node.place, f"{fields.who}tolerance: want 0 or more; got {what(node)}")
        return value or 0, relative
