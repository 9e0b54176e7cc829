# SPDX-License-Identifier: Apache-2.0
"""Expectations over the trace: how they are read, what is refused, and how they are judged."""

from __future__ import annotations

import pytest
from testctl.core.temporal import EVENTS, SIGNALS, Answers, Length, Limit, Moment, Temporal
from testctl.metrics import metric_names
from testctl.plan import Measured, Plan, evaluate, evaluate_claims, load_plan, schema
from testctl.plan.written_bounds import written_bounds
from testctl_agent.spec.errors import PlanError

from controller.tests.plan.test_evaluate import judged

HEAD = """\
topology: pair
flows: {bulk: sender -> receiver, back: sender -> receiver}
tuples:
  - [sender, tcp_events, on]
  - [hosts, cc, [reno, cubic]]
"""
LOSS = Moment("loss")


def plan_of(expect: str, more: str = "", **options: object) -> Plan:
    text = f"{HEAD}{more}expect: [{expect}]\n"
    return load_plan(text.encode(), metrics=metric_names(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expect", "want", "key"),
    [
        (
            "{eventually: cwnd, max: 0.75 before, after: first loss, within: 3 rtt}",
            Temporal("cwnd", False, most=Limit(0.75, True), after=Moment("loss", True), within=Length(3, "rtt")),
            "eventually cwnd max 0.75 before after first loss within 3 rtt",
        ),
        (
            "{always: srtt, min: 1ms, max: 50ms, after: loss + 20ms, until: timeout}",
            Temporal("srtt", True, Limit(1000), Limit(50000), after=Moment("loss", offset=Length(2e7)),
                     until=Moment("timeout")),
            "always srtt min 1000.0 max 50000.0 after loss + 20ms until timeout",
        ),
        (
            "{always: state, equals: open, after: 2s + 1.5 rtt, within: 40 acks}",
            Temporal("state", True, equals=Limit(0), after=Moment(time_ns=2 * 10**9, offset=Length(1.5, "rtt")),
                     within=Length(40, "acks")),
            "always state equals 0.0 after 2s + 1.5 rtt within 40 acks",
        ),
        (
            "{always: throughput_10ms, min: 1mbit, before: first mark, while: {cwnd: 3, state: [loss, recovery]}}",
            Temporal("throughput_10ms", True, Limit(10**6), before=Moment("mark", True),
                     during=(("cwnd", (3.0,)), ("state", (3.0, 4.0)))),
            "always throughput_10ms min 1000000.0 before first mark while cwnd 3.0 while state 3.0 4.0",
        ),
        (
            "{eventually: pacing_rate, min: 2mbit, while: {phase: [probe_bw, probe_rtt], limited_by: pacing}}",
            Temporal("pacing_rate", False, Limit(2e6), during=(("limited_by", (5.0,)), ("phase", (2.0, 3.0)))),
            "eventually pacing_rate min 2000000.0 while limited_by 5.0 while phase 2.0 3.0",
        ),
        ("{always: queue, max: 30kB}", Temporal("queue", True, most=Limit(30000)), "always queue max 30000.0"),
    ],
)  # fmt: skip
def test_what_is_read(expect: str, want: Temporal, key: str) -> None:
    plan = plan_of(expect)
    assert [e.bounds.over_time for e in plan.expectations] == [want]
    assert want.key == key
    assert all(point.conditions == (want,) for point in plan.points)


@pytest.mark.parametrize(
    ("expect", "want"),
    [
        ("{always: cwmd, max: 1}", "6:19: expect always cwmd 1: always: no signal named cwmd; did you mean cwnd?"),
        ("{always: [cwnd], max: 1}", "6:19: expect 1: always: want text; got a list"),
        ("{always: cwnd}", "6:19: expect always cwnd 1: want one of min, max, equals; got none"),
        ("{always: cwnd, min: 1, equals: 2}", "6:41: expect always cwnd 1: want min and max, or equals; got min, "
         "equals"),
        ("{always: cwnd, min: 3, max: 2}", "6:30: expect always cwnd 1: want min <= max; got 3.0 and 2.0"),
        ("{always: cwnd, min: a}", "6:30: expect always cwnd 1: min: want a number; got a"),
        ("{always: srtt, min: 2mbit}", "6:30: expect always srtt 1: min: want a number, or a time with its unit, such "
         "as 10s, 200ms, 20us or 5ns; got 2mbit"),
        ("{always: cwnd, min: 1 before}", "6:30: expect always cwnd 1: min: want after with a bound `K before`; "
         "got none"),
        ("{always: state, max: open}", "6:31: expect always state 1: want equals of state, which is a word; got max"),
        ("{always: state, equals: closed}", "6:34: expect always state 1: equals: want one of open, disorder, cwr, "
         "recovery, loss; got closed"),
        ("{always: state, equals: 1 before, after: loss}", "6:34: expect always state 1: equals: want one of open, "
         "disorder, cwr, recovery, loss; got 1 before"),
        ("{always: phase, min: drain}", "6:31: expect always phase 1: want equals of phase, which is a word; got min"),
        ("{always: cwnd, max: 4, while: {phase: probertt}}", "6:48: expect always cwnd 1: while, phase: want one of "
         "startup, drain, probe_bw, probe_rtt; got probertt"),
        ("{eventually: limited_by, equals: rwnd}", "6:43: expect eventually limited_by 1: equals: want one of nothing, "
         "application, send_buffer, receiver_window, cwnd, pacing; got rwnd"),
        ("{always: dctcp_alpha, max: a}", "6:37: expect always dctcp_alpha 1: max: want a number; got a"),
        ("{always: alpha, max: 1}", "6:19: expect always alpha 1: always: no signal named alpha; did you mean "
         "dctcp_alpha?"),
        ("{always: cwnd, eventually: cwnd, min: 1}", "6:19: expect eventually cwnd 1: want eventually without always"),
        ("{always: cwnd, min: 1, metric: jain}", "6:41: expect always cwnd 1: want always without metric"),
        ("{always: cwnd, min: 1, tolerance: 2}", "6:44: expect always cwnd 1: want always without tolerance"),
        ("{always: cwnd, min: 1, paper: {source: s, published: 2}}", "6:40: expect always cwnd 1: paper: want a "
         "property as published with always; got a number"),
        ("{metric: jain, min: 1, after: loss}", "6:40: expect jain 1: want after with eventually or always; got it "
         "with metric"),
        ("{always: cwnd, min: 1, after: los}", "6:40: expect always cwnd 1: after: no event named los; did you mean "
         "loss?"),
        ("{always: cwnd, min: 1, after: xyz}", f"6:40: expect always cwnd 1: after: no event named xyz; want one of "
         f"{', '.join(EVENTS)}, or a time such as 2s"),
        ("{always: cwnd, min: 1, after: loss + 3}", "6:40: expect always cwnd 1: after, +: want a time above 0 such as "
         "20ms, N rtt, or N acks; got 3"),
        ("{always: cwnd, min: 1, after: loss +}", "6:40: expect always cwnd 1: after, +: want a time above 0 such as "
         "20ms, N rtt, or N acks; got +"),
        ("{always: cwnd, min: 1, within: 0s}", "6:41: expect always cwnd 1: within: want a time above 0 such as 20ms, "
         "N rtt, or N acks; got 0s"),
        ("{always: cwnd, min: 1, within: 1.5 acks}", "6:41: expect always cwnd 1: within: want a time above 0 such as "
         "20ms, N rtt, or N acks; got 1.5 acks"),
        ("{always: cwnd, min: 1, within: 2 rtt}", "6:41: expect always cwnd 1: within: want after with N rtt: at its "
         "begin a connection knows none; got none"),
        ("{always: cwnd, min: 1, until: loss + 1s}", "6:40: expect always cwnd 1: until: want + with after only; got "
         "loss + 1s"),
        ("{always: cwnd, min: 1, until: first loss}", "6:40: expect always cwnd 1: until: want EVENT, the next one, or "
         "a time; got first loss"),
        ("{always: cwnd, min: 1, after: 2s, until: 1s}", "6:51: expect always cwnd 1: want an end after its begin; got "
         "after 2s until 1s"),
        ("{always: cwnd, min: 1, after: loss, before: 1s}", "6:54: expect always cwnd 1: want before without after"),
        ("{always: cwnd, min: 1, while: recovery}", "6:40: expect always cwnd 1: while: want a mapping such as {state: "
         "recovery}; got recovery"),
        ("{always: cwnd, min: 1, while: {status: open}}", "6:41: expect always cwnd 1: while: no signal named status; "
         "did you mean state?"),
        ("{always: cwnd, min: 1, while: {state: []}}", "6:48: expect always cwnd 1: while, state: want a value, or a "
         "list of values; got an empty list"),
    ],
)  # fmt: skip
def test_what_is_refused(expect: str, want: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(expect)
    assert str(caught.value).splitlines()[0] == f"<plan>:{want}"


@pytest.mark.parametrize(
    ("tuples", "expect", "want"),
    [
        ("[sender, tcp_events, off]", "{always: cwnd, max: 1}", "bulk: cwnd: want tcp_events at the sender"),
        ("[bulk, reverse, on]", "{always: cwnd, max: 1}", "bulk: cwnd: want tcp_events at the sender"),
        ("[sender, tcp_events, off]", "{always: cwnd_gain, max: 1, while: {phase: drain}}", "bulk: cwnd_gain: want "
         "tcp_events at the sender; phase: want tcp_events at the sender"),
        ("[sender, tcp_info, off]", "{always: min_rtt, max: 1}", "bulk: min_rtt: want tcp_info at the sender"),
        ("[sender, capture, off]", "{always: rtt, max: 1}", "bulk: rtt: want capture at the sender"),
        ("[receiver, capture, off]", "{always: throughput_1s, max: 1}", "bulk: throughput_1s: want capture at the "
         "receiver"),
        ("[switch, telemetry, off]", "{always: cwnd, max: 1, after: loss}", "bulk: loss: want telemetry at every "
         "switch on the way"),
        ("[switch, telemetry, off]", "{always: queue, max: 1, until: mark}", "bulk: queue: want telemetry at every "
         "switch on the way; mark: want telemetry at every switch on the way"),
    ],
)  # fmt: skip
def test_what_can_never_be_judged_is_refused(tuples: str, expect: str, want: str) -> None:
    with pytest.raises(PlanError, match=r"got it off at every point") as caught:
        plan_of(expect, overrides=[tuples[1:-1].replace(", ", ".", 1).replace(", ", "=")])
    where, _, text = str(caught.value).splitlines()[0].partition(" expect ")
    assert where == "<plan>:6:10:"
    assert text.partition(": ")[2] == f"{want}; got it off at every point"


def test_an_instrument_at_some_points_or_an_alternative_is_enough() -> None:
    assert plan_of("{always: cwnd, max: 1}", overrides=["sender.tcp_events=on,off"])
    assert plan_of("{always: rtt, max: 1, after: retransmit + 3 rtt}", overrides=["sender.tcp_events=off"])


def test_the_verdicts() -> None:
    """Of each flow: fail before invalid before pass; without any answer it is invalid."""
    plan = plan_of("{name: n, always: cwnd, max: 1, when: {hosts.cc: reno}}")
    key = "always cwnd max 1.0"
    reno, cubic = (point.id for point in plan.points)
    assert [point.conditions for point in plan.points] == [(Temporal("cwnd", True, most=Limit(1)),), ()]

    def results(**flows: dict[str, object]) -> dict[str, Measured]:
        answers: Answers = {key: flows} if flows else {}
        return {reno: Measured("pass", answers=answers), cubic: Measured("pass")}

    fails = {"verdict": "fail", "text": "cwnd of bulk: want 1; got 2", "gap": 1.0}
    unclear = {"verdict": "invalid", "text": "cwnd of back: it never came"}
    assert judged(plan, results(bulk={"verdict": "pass"}, back={"verdict": "pass"})) == ("pp", "p")
    assert judged(plan, results(bulk=fails, back=unclear)) == ("fp", "f")
    assert judged(plan, results(bulk={"verdict": "pass"}, back=unclear)) == ("ip", "i")
    points, (expectation,) = evaluate(plan, results(bulk=fails, back={"verdict": "pass"}))
    assert points[0].reason == "n: cwnd of bulk: want 1; got 2"
    assert (expectation.metric, expectation.bounds) == ("", {})
    assert "cwnd of bulk was not judged" in evaluate(plan, results())[0][0].reason


@pytest.mark.parametrize(("cubic", "want"), [("pass", "holds"), ("fail", "fails"), ("invalid", "not measured")])
def test_a_claim_of_a_property(cubic: str, want: str) -> None:
    plan = plan_of("{always: cwnd, max: 1, flow: bulk, paper: {source: s, published: one at most, why: Linux}}")
    answers: list[Answers] = [{"always cwnd max 1.0": {"bulk": {"verdict": v}}} for v in ("pass", cubic)]
    found = {p.id: Measured("pass", answers=of) for p, of in zip(plan.points, answers, strict=True)}
    (claim,) = evaluate_claims(plan, found, evaluate(plan, found)[1])
    assert (claim.verdict, claim.metric, claim.ours.mean, claim.ours.points) == (want, "cwnd over time", None, 2)


def test_some_flows_and_some_points() -> None:
    plan = plan_of("{always: cwnd, max: 1, flow: bulk, quantifier: some}")
    answers: list[Answers] = [{"always cwnd max 1.0": {"bulk": {"verdict": v}}} for v in ("fail", "pass")]
    found = {p.id: Measured("pass", answers=of) for p, of in zip(plan.points, answers, strict=True)}
    assert judged(plan, found) == ("pp", "p")


def test_the_bounds_in_words() -> None:
    text = f"""{HEAD}expect:
  - {{eventually: cwnd, max: 0.75 before, after: first loss, within: 3 rtt, while: {{state: [loss, recovery]}}}}
  - {{name: n, always: throughput_10ms, min: 1000000}}
"""
    words = {name: written.text for name, written in written_bounds(text, "p").items()}
    assert words == {
        "eventually cwnd 1": "eventually cwnd ≤ 0.75 before, after first loss, within 3 rtt, while state is loss or "
        "recovery",
        "n": "always throughput_10ms ≥ 1 Mb/s",
    }


def test_the_schema_knows_signals_and_refuses_what_the_loader_refuses() -> None:
    item = schema(metrics=metric_names())["properties"]["expect"]["items"]
    assert [choice["const"] for choice in item["properties"]["always"]["anyOf"]] == list(SIGNALS)
    assert len(item["oneOf"]) == 4
