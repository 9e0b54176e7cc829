# SPDX-License-Identifier: Apache-2.0
"""Whatever is thrown at the loader, it loads or says what is wrong; it never fails otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testctl.plan import Plan
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]
VALID = """\
about: one line
topology: {dumbbell: {senders: 2, receivers: 2}}
flows: {bulk: sender1 -> receiver1, back: receiver2 -> sender2}
groups: {ends: [sender1, receiver1], both: [bulk, back]}
tuples:
  - [hosts, kernel, "6.12"]
  - [ends, cc, [dctcp_bug, dctcp]]
  - [all, mtu, 1500]
  - [sender1, htb_rate, left.rate / 5 + 1mbit]
  - [left, rate, 10gbit]
  - [left:right, delay, {from: 10us, to: 1ms, steps: 2, scale: log}]
  - [right, delay, [1ms, 2 left:right.delay]]
  - [both, duration, 2s]
  - [ends, tcp_ecn, [0, 1]]
design: {cover: 2, seed: 3}
zip: [[left:right.delay, right.delay]]
repeat: 2
seed: 1
exclude:
  - {ends.cc: dctcp, left:right.delay: [1ms]}
expect:
  - name: steady
    metric: stability_cv_10ms
    flow: bulk
    max: 0.05
    when: {ends.cc: [dctcp]}
  - {metric: throughput_bps, equals: 1gbit, tolerance: 5%, quantifier: some}
  - metric: jain
    when: {ends.cc: dctcp_bug}
    paper: {source: "A paper, Figure 5", published: 2, within: 0.25, why: "it differs"}
  - {metric: rtt_p99_us, max: 1ms, paper: {source: s, published: "it is short"}}
"""
WORDS = [
    *sorted(set(re.findall(r"[^\s\[\]{},]+", VALID))),
    "~", "null", "true", "{}", "[]", "[[]]", "-1", "0", "1e400", "9e99999999", "-", ":", "&a", "*a", "!!str", "<<",
    "'", '"', "\\", '"\\UFFFFFFFF"', "|", ">", "%YAML 99", "---", "\t", "\u2028", "\ud7ff", "{? a: b}", "#", "@", "=",
    "all", "*", "x" * 300, "1" * 5000, "a:b", "a.b", "switch:", "[1, 2", "no",
    "than:", "at_least:", "zip:", "sample:", "{from: 1ms, to: 9ms}", "0.5 bdp", "rate / 0", "rtt + rtt", "bdp / (mtu",
]  # fmt: skip
FUZZ = settings(derandomize=True, deadline=None, max_examples=400)


def survives(load: Load, data: bytes) -> None:
    said = outcome(load, data)
    assert len(said.splitlines()) <= 21
    assert all(line.isprintable() for line in said.splitlines())


def outcome(load: Load, data: bytes | str, *overrides: str) -> str:
    """The error of a bad plan; "" of a good one."""
    try:
        plan = load(data, overrides, max_points=200)
    except PlanError as error:
        return str(error) or "?\0"
    assert plan.points
    return ""


def test_the_plan_that_is_mutated_is_valid(load: Load) -> None:
    assert len(load(VALID).points) >= 8


@FUZZ
@given(st.text())
@example("\ud800")
@example("%YAML " + "9" * 5000 + ".1\n---\na")
@example('"\\UFFFFFFFF"')
@example("? " * 200)
@example("- " * 200)
@example("{" * 5000)
@example("a: " * 100)
def test_text(load: Load, text: str) -> None:
    survives(load, text.encode("utf-8", "surrogatepass"))


@FUZZ
@given(st.binary(max_size=200))
def test_bytes(load: Load, data: bytes) -> None:
    survives(load, data)


@pytest.mark.long
@FUZZ
@given(st.data())
def test_words_exchanged(load: Load, data: st.DataObject) -> None:
    parts = re.split(r"([^\s\[\]{},]+)", VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(range(1, len(parts), 2)))
        parts[at] = data.draw(st.sampled_from(WORDS))
    survives(load, "".join(parts).encode())


@FUZZ
@given(st.data())
def test_lines_dropped_doubled_and_moved(load: Load, data: st.DataObject) -> None:
    lines = VALID.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        line = lines.pop(at)
        for _ in range(data.draw(st.integers(0, 2))):
            lines.insert(data.draw(st.integers(0, len(lines))), line)
        if not lines:
            break
    survives(load, "".join(lines).encode())


@pytest.mark.long
@FUZZ
@given(st.data())
def test_bytes_changed(load: Load, data: st.DataObject) -> None:
    raw = bytearray(VALID.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    survives(load, bytes(raw))


@FUZZ
@given(st.text(max_size=40), st.sampled_from(["", "ends.cc=", "sender1.tcp_ecn=", "left.delay=[", "hosts."]))
def test_set_words(load: Load, text: str, head: str) -> None:
    assert all(line.isprintable() for line in outcome(load, VALID, head + text).splitlines())
