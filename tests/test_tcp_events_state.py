# SPDX-License-Identifier: Apache-2.0
"""What the lab's kernel traces of rates, limits and congestion control, of flows whose limit is known."""

from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
from testctl.curves import Window, figure, series
from testctl.metrics.core.view import view
from testctl.metrics.recovery.kernel_trace import traced_columns, traced_events
from testctl.records import Records, digest_of
from testctl.records.schema import BBR_PHASES, SENDER_COLUMNS, TCP_LIMITS, Array

from tests.cli_commands import call

pytestmark = pytest.mark.lab

HEAD = """
about: flows whose limit is known
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, "KERNEL"]
  - [sender, tcp_events, EVENTS]
  - [switch:receiver, rate, 20mbit]
  - [switch, delay, 10ms]
"""
CONTROLS = """
  - [hosts, cc, [bbr, dctcp, vegas, cubic]]
  - [hosts, net.ipv4.tcp_ecn, 1]
  - [switch:receiver, ecn_threshold, 15kB]
  - [bulk, duration, [11s, 4s, 4100ms, 4200ms]]
zip: [[hosts.cc, bulk.duration]]
"""
LIMITED = """
  - [hosts, cc, cubic]
  - [bulk, pattern, [on-off 100ms/200ms, greedy, stall at 9s for 1s]]
  - [bulk, receive_buffer, [none, 20kB, 9MB]]
  - [bulk, send_buffer, [none, 9MB, 20kB]]
  - [bulk, duration, 2s]
zip: [[bulk.pattern, bulk.receive_buffer, bulk.send_buffer]]
"""
BBR, DCTCP, VEGAS, CUBIC = (f"{cc} greedy none" for cc in ("bbr", "dctcp", "vegas", "cubic"))
PAUSES, READER, WRITER = ("cubic on-off 100ms/200ms none", "cubic greedy 20000", "cubic stall at 9s for 1s 9000000")
Runs = dict[str, tuple[Records, Records]]


def records_of(where: Path, text: str) -> dict[str, Records]:
    where.mkdir()
    (where / "plan.yaml").write_text(text)
    done = call(where, "run", "plan.yaml", "--out", "run", "--jobs", "1", code=None, TMPDIR=where)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [Records.load(path.parent) for path in (where / "run").glob("**/records.json")]
    return {_name(records): records for records in found}


def _name(records: Records) -> str:
    options = records.point.flows[0].options
    words = [options[name] for name in ("pattern", "receive_buffer")]
    return " ".join(map(str, [records.point.settings["sender"]["cc"], *words]))


@pytest.fixture(scope="module")
def runs(release: str, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Of each point its records without the trace and with it."""
    where = tmp_path_factory.mktemp("runs")
    two: list[dict[str, Records]] = []
    for switched in ("off", "on"):
        head = HEAD.replace("KERNEL", release).replace("EVENTS", switched).rstrip()
        one = records_of(where / f"controls_{switched}", head + CONTROLS)
        two.append(one | records_of(where / f"limited_{switched}", head + LIMITED))
    return {name: (two[0][name], two[1][name]) for name in two[0]}


def columns(runs: Runs, name: str) -> dict[str, Array]:
    return traced_columns(runs[name][1], "bulk")


def limits(events: dict[str, Array]) -> dict[str, float]:
    """Seconds for which each limit was the last one known."""
    last = np.flatnonzero(np.append(np.diff(events["time_ns"]) > 0, True))
    spans = np.diff(events["time_ns"][last]) / 1e9
    return {name: float(spans[events["limited_by"][last][:-1] == n].sum()) for n, name in enumerate(TCP_LIMITS)}


def mostly(runs: Runs, name: str, limit: str, least: float = 0.8) -> None:
    spans = limits(columns(runs, name))
    print(name, {word: round(seconds, 3) for word, seconds in spans.items()})
    assert spans[limit] >= least * sum(spans.values()), spans


def test_not_a_packet_is_another_and_the_columns_repeat(runs: Runs, release: str, tmp_path: Path) -> None:
    assert set(runs) == {BBR, DCTCP, VEGAS, CUBIC, PAUSES, READER, WRITER}
    for name, (without, traced) in runs.items():
        assert digest_of(traced.packets, traced.tcp_info) == without.digest(), name
    head = HEAD.replace("KERNEL", release).replace("EVENTS", "on").rstrip()
    repeated = records_of(tmp_path / "controls", head + CONTROLS) | records_of(tmp_path / "limited", head + LIMITED)
    assert repeated.keys() == runs.keys()
    for name, again in repeated.items():
        assert runs[name][1].digest() == again.digest(), name
        assert traced_events(runs[name][1], "bulk").equals(traced_events(again, "bulk")), name


def test_the_rates_are_those_of_tcp_info(runs: Runs) -> None:
    """A sample has what the event before it has, but those at the time of an event."""
    for name, (_, records) in runs.items():
        events, info = columns(runs, name), view(records, "bulk").info
        after = np.searchsorted(events["time_ns"], info["time_ns"], "right") - 1
        known = (after >= 0) & ~np.isin(info["time_ns"], events["time_ns"])
        assert np.count_nonzero(known) > 50, name
        for ours, theirs in (("pacing_rate_bps", "pacing_rate"), ("delivery_rate_bps", "delivery_rate")):
            want = np.where(info[theirs] > 0, info[theirs] * 8, -1)[known]
            assert (events[ours][after[known]] == want).mean() > 0.99, (name, ours)


def test_the_window_limits_where_it_is_full(runs: Runs) -> None:
    """And only there, but where TCP defers what the window allows."""
    for name in runs:
        events = columns(runs, name)
        full = events["pipe"] >= events["cwnd"]
        assert (events["limited_by"][full] == TCP_LIMITS.index("cwnd")).all(), name
        others = events["limited_by"][~full] == TCP_LIMITS.index("cwnd")
        assert (events["cwnd"] - events["pipe"])[~full][others].max(initial=0) <= 64, name


def test_what_limits(runs: Runs) -> None:
    mostly(runs, BBR, "pacing")
    mostly(runs, DCTCP, "cwnd")
    mostly(runs, CUBIC, "cwnd")
    mostly(runs, READER, "receiver_window")
    mostly(runs, WRITER, "send_buffer", 0.3)
    mostly(runs, PAUSES, "application", 0.4)


def test_the_application_limits_in_its_pauses(runs: Runs) -> None:
    """From 20 ms after the end of what it wrote last, and nothing leaves."""
    events, names = columns(runs, PAUSES), traced_events(runs[PAUSES][1], "bulk")["event"].to_pylist()
    sent = events["time_ns"][np.array([name == "send" for name in names])]
    gaps = np.flatnonzero(np.diff(sent) > 100e6)
    assert len(gaps) >= 3
    for start, end in zip(sent[gaps], sent[gaps + 1], strict=True):
        within = (events["time_ns"] > start) & (events["time_ns"] < end - 10**6)
        assert set(events["limited_by"][within].tolist()) == {TCP_LIMITS.index("application")}


def test_bbr_goes_through_its_phases(runs: Runs) -> None:
    events = columns(runs, BBR)
    phases = [BBR_PHASES[phase] for phase, _ in groupby(events["phase"].tolist())]
    assert phases == ["startup", "drain", "probe_bw", "probe_rtt", "probe_bw"]
    gains = {BBR_PHASES[phase]: set(events["pacing_gain"][events["phase"] == phase].tolist()) for phase in range(4)}
    assert gains == {"startup": {739 / 256}, "drain": {88 / 256}, "probe_bw": {0.75, 1.0, 1.25}, "probe_rtt": {1.0}}
    probes = events["phase"] == BBR_PHASES.index("probe_rtt")
    assert events["cwnd"][probes].max() == 4
    assert events["time_ns"][probes][0] > 10e9
    assert 0.2e9 < np.ptp(events["time_ns"][probes]) < 0.4e9
    late = events["time_ns"] > 2e9
    assert set((events["cc_bw_bps"][late] // 10**6).tolist()) <= {18, 19, 20}
    assert events["cc_min_rtt_us"][~probes].min() >= 20_000


def test_dctcps_alpha(runs: Runs) -> None:
    """It begins at 1; a step is alpha - alpha / 16 + F / 16 with F from 0 to 1; then it is about the share of marks."""
    events = columns(runs, DCTCP)
    alpha = events["dctcp_alpha"][events["dctcp_alpha"] >= 0]
    assert alpha[0] == 1
    assert alpha[-1] < 0.5
    steps = [value for value, _ in groupby(alpha.tolist())]
    assert len(steps) > 20
    for before, after in pairwise(steps):
        assert before * 15 / 16 - 0.002 <= after <= before * 15 / 16 + 1 / 16 + 0.002
    info = view(runs[DCTCP][1], "bulk").info
    half = len(info["delivered"]) // 2
    marked, sent = (np.ptp(info[name][half:]) for name in ("delivered_ce", "delivered"))
    late = events["dctcp_alpha"][events["time_ns"] > 1e9].mean()
    print("share of marks", marked / sent, "alpha", late)
    assert abs(late - marked / sent) < 0.1


def test_vegas_and_those_that_say_nothing(runs: Runs) -> None:
    vegas = columns(runs, VEGAS)
    least = vegas["cc_min_rtt_us"][vegas["cc_min_rtt_us"] >= 0]
    assert len(least) > 500
    assert least.min() >= 20_000
    known = (vegas["cc_rtt_us"] >= 0) & (vegas["cc_min_rtt_us"] >= 0)
    assert (vegas["cc_rtt_us"] <= vegas["cc_min_rtt_us"])[known].all(), "of all, and of the last round"
    own = {"phase", "pacing_gain", "cwnd_gain", "cc_bw_bps", "dctcp_alpha", "dctcp_ce"}
    assert all((vegas[name] == -1).all() for name in own)
    cubic = columns(runs, CUBIC)
    assert all((cubic[name] == -1).all() for name in {*own, "cc_rtt_us", "cc_min_rtt_us"})
    assert own < set(SENDER_COLUMNS)


def test_the_curve_has_the_columns(runs: Runs) -> None:
    for width_ns in (0, 10**8):
        table = series(runs[BBR][1], "bulk", "tcp", width_ns)
        assert set(SENDER_COLUMNS) <= set(table.schema.names)
        assert set(table["phase"].to_pylist()) == {0, 1, 2, 3, -1}, "-1: of the capture"
    assert figure(runs[BBR][1], "cwnd", ("bulk", 0), Window(0, 11 * 10**9, 300))
