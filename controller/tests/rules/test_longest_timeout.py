# SPDX-License-Identifier: Apache-2.0
"""Timers grow up to the longest RTO, 120 s or net.ipv4.tcp_rto_max_ms; a window's probes tcp_retries2 times."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from controller.tests.rules.conversation import found
from controller.tests.rules.traced import FIRST, SENT, burst, sample, violations

SECOND: dict[str, Any] = {"net.ipv4.tcp_rto_max_ms": 1000}
FAR = "0 a > S win 64000\n900000 a < SA ack 0 win 64000\n900000 a > A ack 0\n" + burst(900_000, 0, 10)
"""A handshake with an RTT of 900 ms, of which the RTO is 2700 ms."""


def count(rule: str, text: str, host: str = "a", **settings: Any) -> int:
    result = found(rule, text, host=host, settings={host: settings})
    assert not result.undecided
    return result.count


def repeated(line: str, waits_s: tuple[int, ...]) -> str:
    return "".join(f"{time}000000 {line}\n" for time in accumulate(waits_s, initial=0))


@pytest.mark.parametrize("line", ["a > S win 64000", "b > SA ack 0 win 64000"])
def test_syns_and_syn_acks_double_up_to_the_longest_rto(line: str) -> None:
    """tcp_reqsk_timeout(); tcp_retransmit_timer()."""
    host, rule = line[0], "syn-backoff" if "SA" not in line else "synack-backoff"
    syn = "" if host == "a" else "0 b < S win 64000\n"
    more: dict[str, Any] = {"host": host, "net.ipv4.tcp_syn_linear_timeouts": 0}
    two_minutes = syn + repeated(line, (1, 2, 4, 8, 16, 32, 64, 120, 120))
    assert count(rule, two_minutes, **more) == 0
    assert count(rule, syn + repeated(line, (1, 2, 4, 8, 16, 32, 64, 119, 119)), **more) == 2
    second = syn + repeated(line, (1, 1, 1))
    assert count(rule, second, **more, **SECOND) == 0
    assert count(rule, second, **more) == 2


def test_an_rto_is_no_longer_whatever_the_rtt() -> None:
    """tcp_bound_rto()."""
    for time_ms, early in ((1900, 0), (1800, 1)):
        text = FAR + f"{time_ms}000 a > A 0:1000 ack 0\n"
        assert count("rto-by-rtt", text, **SECOND) == early
        assert count("rto-by-rtt", text) == 1
    least = {"net.ipv4.tcp_rto_min_us": 5_000_000}
    assert count("rto-minimum", FAR + "1900000 a > A 0:1000 ack 0\n", **least, **SECOND) == 0
    assert count("rto-minimum", FAR + "1900000 a > A 0:1000 ack 0\n", **least) == 1


@pytest.mark.parametrize(("rto_ms", "short"), [(1000, 0), (999, 1)])
def test_the_rto_of_tcp_info_is_no_longer(rto_ms: int, short: int) -> None:
    taken = sample(time_ns=1_900_000_000, state=1, rtt=900_000, rto=1000 * rto_ms)
    text = FAR + "1800000 a < A ack 1000\n"
    assert found("rto-of-rtt", text, samples=taken, settings={"a": SECOND}).count == short
    assert found("rto-of-rtt", text, samples=taken).count == 1


@pytest.mark.parametrize(("at_ms", "early"), [(1900, 0), (1890, 1)])
def test_a_probe_with_new_data_waits_no_longer(at_ms: int, early: int) -> None:
    """tcp_schedule_loss_probe(): since the first segment was sent."""
    text = FAR + burst(1000 * at_ms, 10, 1)
    assert count("initial-window", text, **SECOND) == early
    assert count("initial-window", text) == 1


def test_the_window_is_halved_for_each_rto_of_an_idle_time() -> None:
    """tcp_cwnd_restart()."""
    sent = SENT.replace("10000", "20000").replace("cwnd 10", "cwnd 100")
    acked = "30000 ack open una 9000 nxt 9000 cwnd 100 ssthresh 99 pipe 0 prior 9 delivered 10 srtt 900000\n"
    then = "2030000 send open una 9000 nxt 10000 cwnd {} ssthresh 99 pipe 1 prior 0 delivered 10 srtt 900000\n"
    for cwnd, settings, wrong in ((50, {}, 0), (25, {}, 1), (25, SECOND, 0), (12, SECOND, 1)):
        assert violations("window-after-idle", FIRST, trace=sent + acked + then.format(cwnd), **settings) == wrong


@pytest.mark.parametrize(("at_ms", "wrong"), [(1010, 0), (990, 1)])
def test_a_probe_beyond_the_window_waits_no_longer(at_ms: int, wrong: int) -> None:
    first = SENT.rstrip() + " srtt 900000\n"
    acked = "900000 ack open una 1000 nxt 9000 cwnd 10 ssthresh 99 pipe 10 prior 10 delivered 1 srtt 900000\n"
    sent = f"{at_ms}000 send open una 1000 nxt 11000 cwnd 10 ssthresh 99 pipe 11 prior 10 delivered 1 srtt 900000\n"
    assert violations("cwnd-respected", FIRST, trace=first + acked + sent, **SECOND) == wrong
    assert violations("cwnd-respected", FIRST, trace=first + acked + sent) == 1


def probes(*waits_ms: int) -> str:
    """Probes of a window that stays closed, each answered."""
    text = FIRST + "20000 a < A ack 1000 win 0\n"
    for at in accumulate(waits_ms, initial=220):
        text += f"{at}000 a > A 999:999 ack 0\n{at}100 a < A ack 1000 win 0\n"
    return text


def test_probes_of_a_window_are_no_further_apart_than_the_longest_rto() -> None:
    assert count("window-probe-backoff", probes(400, 800, 1000, 1000), **SECOND) == 0
    assert count("window-probe-backoff", probes(400, 800, 800, 990), **SECOND) == 2
    assert count("window-probe-backoff", probes(400, 800, 1000, 1000)) == 2


@pytest.mark.parametrize(("retries2", "wrong"), [(15, 3), (4, 2), (3, 1), (2, 0)])
def test_probes_of_a_window_back_off_tcp_retries2_times(retries2: int, wrong: int) -> None:
    """tcp_send_probe0(): and again once the window was open."""
    settings = {"net.ipv4.tcp_retries2": retries2}
    assert count("window-probe-backoff", probes(400, 800, 800, 800, 800), **settings) == wrong
    opened = probes(400, 800, 800) + "2300000 a < A ack 1000 win 5000\n2400000 a < A ack 1000 win 0\n"
    text = opened + "".join(f"{at}000 a > A 999:999 ack 0\n" for at in (2600, 3000, 3400))
    assert count("window-probe-backoff", text, **settings) == count("window-probe-backoff", opened, **settings) + 1
