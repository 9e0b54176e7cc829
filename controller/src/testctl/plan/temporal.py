# SPDX-License-Identifier: Apache-2.0
"""Reads the words of an expectation over the trace, and checks that its instruments are on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from testctl_agent.params.switch import telemetry
from testctl_agent.spec.units import Duration

from testctl.core import routes
from testctl.core.point import Point, PointFlow, numbered_flows
from testctl.core.temporal import EVENTS, INSTRUMENTS, SIGNALS, Length, Limit, Moment, Source, Temporal
from testctl.plan.bound_values import NUMBER, number_of
from testctl.plan.diagnostics import show, suggest
from testctl.plan.fields import Fields
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, Sequence, what

MODES = ("eventually", "always")
LIMITS = ("min", "max", "equals")
WINDOW = ("after", "within", "until", "before", "while")
WITH_MODES = ("name", *MODES, *LIMITS, *WINDOW, "flow", "when", "quantifier", "paper")
_BEFORE = re.compile(rf"({NUMBER.pattern})\s+before")
_LENGTH = re.compile(rf"({NUMBER.pattern})\s*(rtt|acks?)")
_LONGEST = 10**9
"""Greatest number of round-trip times or ACKs in a length."""
_LONGEST_NS = 2**60


class TemporalReader:
    """Reads the fields of one expectation that has one of MODES; faults go to the fields' problems."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._mode = next(mode for mode in MODES if mode in fields.nodes)

    def read(self) -> Temporal:
        """What it demands; after a fault anything."""
        nodes = self._fields.nodes
        for other in [name for name in nodes if name not in WITH_MODES or (name in MODES and name != self._mode)]:
            self._add(nodes[other], f"want {self._mode} without {other}")
        signal = self._word(nodes[self._mode], self._mode, "signal", SIGNALS)
        least, most, equals = (self._limit(name, signal) for name in LIMITS)
        temporal = Temporal(
            signal=signal,
            always=self._mode == "always",
            least=least,
            most=most,
            equals=equals,
            after=self._moment("after"),
            within=self._length(nodes["within"], "within") if "within" in nodes else None,
            until=self._moment("until"),
            before=self._moment("before"),
            during=self._during(nodes.get("while")),
        )
        self._check(temporal)
        return temporal

    def _add(self, node: Node, text: str) -> None:
        self._fields.problems.add(node.place, f"{self._fields.who}{text}")

    def _word(self, node: Node, name: str, kind: str, known: Mapping[str, Source]) -> str:
        """A word of a table; its first one after a fault."""
        word = node.text if isinstance(node, Scalar) else ""
        if word in known:
            return word
        hint = suggest(word, known) or f"; want one of {', '.join(known)}"
        self._add(node, f"{name}: no {kind} named {show(word) if word else what(node)}{hint}")
        return next(iter(known))

    def _limit(self, name: str, signal: str) -> Limit | None:
        node = self._fields.nodes.get(name)
        if node is None:
            return None
        match = _BEFORE.fullmatch(node.text) if isinstance(node, Scalar) else None
        if match and not SIGNALS[signal].names:
            return Limit(float(match[1]), before=True)
        return Limit(self._value(node, name, signal))

    def _value(self, node: Node, name: str, signal: str) -> float:
        """A value of a signal; 0 after a fault."""
        source = SIGNALS[signal]
        if source.names:
            if isinstance(node, Scalar) and node.text in source.names:
                return float(source.names.index(node.text))
            self._add(node, f"{name}: want one of {', '.join(source.names)}; got {what(node)}")
            return 0.0
        try:
            return float(number_of(node, source.unit))
        except ValueError as error:
            self._add(node, f"{name}: {error}")
            return 0.0

    def _length(self, node: Node, name: str, text: str = "") -> Length:
        """A length above 0, of a node or of a part of its text; any length after a fault."""
        text = text or (node.text if isinstance(node, Scalar) else "")
        match = _LENGTH.fullmatch(text)
        number = float(match[1]) if match else 0.0
        if match and match[2] == "rtt" and 0 < number <= _LONGEST:
            return Length(number, "rtt")
        if match and match[2] != "rtt" and 0 < number <= _LONGEST and number.is_integer():
            return Length(number, "acks")
        if (length_ns := _time_ns(text)) is not None and length_ns > 0:
            return Length(length_ns)
        got = show(text) if text else what(node)
        self._add(node, f"{name}: want a time above 0 such as 20ms, N rtt, or N acks; got {got}")
        return Length(1)

    def _moment(self, name: str) -> Moment | None:
        """EVENT, `first EVENT` or a time, of `after` also with an offset; None where the field is not there."""
        node = self._fields.nodes.get(name)
        if node is None:
            return None
        text, plus, later = (node.text if isinstance(node, Scalar) else "").partition("+")
        text = text.strip()
        offset = None
        if plus and name != "after":
            self._add(node, f"{name}: want + with after only; got {what(node)}")
        elif plus:
            offset = self._length(node, f"{name}, +", text=later.strip() or "+")
        if (time_ns := _time_ns(text)) is not None:
            return Moment(time_ns=time_ns, offset=offset)
        event = text.removeprefix("first ").strip()
        first = event != text
        if first and name == "until":
            self._add(node, f"until: want EVENT, the next one, or a time; got {what(node)}")
        if event not in EVENTS:
            hint = suggest(event, EVENTS) or f"; want one of {', '.join(EVENTS)}, or a time such as 2s"
            self._add(node, f"{name}: no event named {show(event) if event else what(node)}{hint}")
            event = "loss"
        return Moment(event, first, offset=offset)

    def _during(self, node: Node | None) -> tuple[tuple[str, tuple[float, ...]], ...]:
        if node is None:
            return ()
        if not isinstance(node, MappingNode) or not node.entries:
            self._add(node, f"while: want a mapping such as {{state: recovery}}; got {what(node)}")
            return ()
        during = []
        for key, value in node.entries:
            signal = self._word(key, "while", "signal", SIGNALS)
            items = value.items if isinstance(value, Sequence) else (value,)
            during.append((signal, tuple(sorted({self._value(item, f"while, {signal}", signal) for item in items}))))
            if not items:
                self._add(value, f"while, {signal}: want a value, or a list of values; got an empty list")
        return tuple(sorted(during))

    def _check(self, temporal: Temporal) -> None:
        """Bounds that are missing or exclude each other, and windows that can't be."""
        nodes, node = self._fields.nodes, self._fields.nodes[self._mode]
        given = [name for name in LIMITS if name in nodes]
        if not given:
            self._add(node, f"want one of {', '.join(LIMITS)}; got none")
        if "equals" in given and len(given) > 1:
            self._add(nodes["equals"], f"want min and max, or equals; got {', '.join(given)}")
        if SIGNALS[temporal.signal].names and (numeric := [name for name in given if name != "equals"]):
            self._add(nodes[numeric[0]], f"want equals of {temporal.signal}, which is a word; got {numeric[0]}")
        least, most = temporal.least, temporal.most
        if least and most and least.before == most.before and least.value > most.value:
            self._add(nodes["min"], f"want min <= max; got {least} and {most}")
        relative = [name for name, limit in temporal.limits.items() if limit.before]
        if relative and temporal.after is None:
            self._add(nodes[relative[0]], f"{relative[0]}: want after with a bound `K before`; got none")
        after, until = temporal.after, temporal.until
        if temporal.within and temporal.within.unit == "rtt" and after is None:
            self._add(nodes["within"], "within: want after with N rtt: at its begin a connection knows none; got none")
        if temporal.before and (others := [name for name in ("after", "within", "until") if name in nodes]):
            self._add(nodes["before"], f"want before without {', '.join(others)}")
        if after and until and not after.event and not until.event and after.time_ns >= until.time_ns:
            self._add(nodes["until"], f"want an end after its begin; got after {after} until {until}")


def _time_ns(text: str) -> int | None:
    """A time in ns; None for other text."""
    try:
        time_ns = int(Duration.parse(text))
    except ValueError:
        return None
    return time_ns if time_ns <= _LONGEST_NS else None


def without_instruments(temporal: Temporal, flow: str, points: Iterable[Point]) -> str:
    """Why no connection of a flow can be judged at any of these points: "want …; got …"; "" if one can."""
    lacking: dict[str, str] = {}
    for point in points:
        there = _instruments(point, next(own for own in point.flows if own.name == flow))
        missing = {word: source for word, source in temporal.sources.items() if not there & set(source.needs)}
        if not missing:
            return ""
        lacking |= {word: " or ".join(INSTRUMENTS[name] for name in source.needs) for word, source in missing.items()}
    wants = [f"{word}: want {wanted}" for word, wanted in lacking.items()]
    return f"{'; '.join(wants)}; got it off at every point" if wants else ""


def _instruments(point: Point, flow: PointFlow) -> frozenset[str]:
    """Which of INSTRUMENTS are on for a flow."""
    sender, receiver = reversed(flow.ends) if flow.reversed else flow.ends
    switches = list(routes.switches(point, flow, back=flow.reversed))
    backends = {str(point.settings.get(switch, {}).get("backend", "ebpf")) for switch in switches}
    numbered = flow.name in {known.name for known in numbered_flows(point.flows)}

    def on(entity: str, collector: str) -> bool:
        return point.settings.get(entity, {}).get(collector) not in (None, False, "off")

    there = {
        "tcp_events": on(sender, "tcp_events"),
        "tcp_info": on(sender, "tcp_info"),
        "sender": on(sender, "capture"),
        "receiver": on(receiver, "capture"),
        "telemetry": numbered and backends <= set(telemetry.BACKENDS) and all(on(s, "telemetry") for s in switches),
    }
    return frozenset(name for name, is_on in there.items() if is_on)
