# SPDX-License-Identifier: Apache-2.0
"""The flow parameters: what they take, and that what they print they take again."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.params import registry
from testctl_agent.params.flow import pattern
from testctl_agent.spec.units import Bytes, Duration

times = st.integers(1, 10**12).map(lambda n: str(Duration(n)))
sizes = st.integers(1, 10**12).map(lambda n: str(Bytes(n)))
patterns = st.one_of(
    st.just("greedy"),
    st.tuples(times, times).map("on-off {0[0]}/{0[1]}".format),
    st.tuples(st.one_of(times, sizes), times).map("stall at {0[0]} for {0[1]}".format),
    st.lists(st.tuples(st.integers(0, 10**12), sizes), min_size=1, max_size=9).map(
        lambda writes: "schedule " + ",".join(f"{Duration(at)}:{size}" for at, size in sorted(writes))
    ),
)


@given(patterns)
def test_a_pattern_has_one_form(text: str) -> None:
    once = pattern.SPEC.type.parse(text)
    assert pattern.SPEC.type.parse(once) == once
    assert re.fullmatch(r"[a-z -]*[0-9:/,B]*( for [0-9]+)?", pattern.base_units(str(once)))


@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert pattern.base_units(str(pattern.SPEC.type.parse(text)))


@pytest.mark.parametrize(
    ("text", "base"),
    [
        (" greedy ", "greedy"),
        ("on-off 100ms/50ms", "on-off 100000000/50000000"),
        ("stall at 20000B for 500ms", "stall at 20000B for 500000000"),
        ("stall at 1s  for 500ms", "stall at 1000000000 for 500000000"),
        ("schedule 0s:20000B, 300ms:10kB", "schedule 0:20000B,300000000:10000B"),
    ],
)
def test_patterns_in_base_units(text: str, base: str) -> None:
    assert pattern.base_units(text) == pattern.base_units(str(pattern.SPEC.type.parse(text))) == base


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("on-off 1s", "want '/' in it; got '1s'"),
        ("on-off 0s/1s", "want a time from 1ns to 1000000s; got '0s'"),
        ("stall at 1s", "want 'for' in it; got '1s'"),
        ("stall at 0B for 1s", "want a size from 1B to 2**48B; got '0B'"),
        ("schedule 1s:1B,0s:1B", "want the writes in the order of their times"),
        ("schedule " + ",".join(["0s:1B"] * 1025), "want at most 1024 writes; got 1025"),
    ],
)
def test_patterns_that_are_refused(raw: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"({why})")):
        pattern.SPEC.type.parse(raw)


@pytest.mark.parametrize("raw", ["", "greedy 1", "schedule", 5, None, True, "schedule 0s:1B," * 9000])
def test_what_is_no_pattern(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^want greedy"):
        pattern.SPEC.type.parse(raw)


@pytest.mark.parametrize(
    ("name", "raw", "error"),
    [
        ("keepalive", "1500ms", "in steps of 1s; got '1500ms'"),
        ("user_timeout", "1500us", "in steps of 1ms; got '1500us'"),
        ("parallel", 65, "want a whole number from 1 to 64; got 65"),
        ("duration", "5", "want a time with its unit"),
        ("generator", "netperf", "; got 'netperf'"),
        ("cc", "a" * 16, "want the name of a congestion control, such as cubic; got"),
    ],
)
def test_values_that_are_refused(name: str, raw: object, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        registry.specs()["flow"][name].type.parse(raw)


def test_every_default_is_a_value() -> None:
    for kind in ("flow", "host"):
        for name, spec in registry.specs()[kind].items():
            if spec.role != "state" and spec.default is not None:
                assert spec.type.parse(str(spec.default) if not isinstance(spec.default, bool) else spec.default) == (
                    spec.default
                ), name


@pytest.mark.parametrize(
    ("text", "want"), [("4000B  at 2000ms", "4kB at 2s"), ("none", "none"), ("4kB", None), ("1B at 1s", None)]
)
def test_a_receive_buffer_that_is_set_later(text: str, want: str | None) -> None:
    kind = registry.specs()["flow"]["receive_buffer_later"].type
    if want is None:
        with pytest.raises(ValueError, match=r"^want a size"):
            kind.parse(text)
    else:
        assert kind.parse(text) == want
