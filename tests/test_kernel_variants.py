# SPDX-License-Identifier: Apache-2.0
"""Kernels with tracepoints, with checks of themselves, with counters; skipped where a variant is not built.

A build takes long, so no test makes one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from testctl.coverage.table import coverage_of
from testctl.lab.built import built
from testctl.lab.coverage import SOURCES
from testctl.results import Run

from controller.tests.report.reading import text_of
from tests import test_kernel_faults
from tests.cli_commands import output
from tests.plan_runs import run_of
from tests.test_gdb import PLAN, entered_recovery

pytestmark = [pytest.mark.long, pytest.mark.lab]
VERSION = "6.12"


def variant(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        built(f"{VERSION}-{name}") is None,
        reason=f"kernel {VERSION}-{name} is not built: testctl lab build {VERSION} --{name}",
    )


@variant("trace")
def test_a_trace_has_the_times_of_the_records_and_changes_none(tmp_path: Path) -> None:
    run = run_of(tmp_path, PLAN.format(kernel=VERSION))
    point = run.points[0].id
    said = output(tmp_path, "replay", "run", point, "--trace", "tcp:*", "--out", "again")
    assert "the same: " in said
    trace = (tmp_path / "again" / "points" / point / "kernel.trace").read_text()
    first = next(line for line in trace.splitlines() if " tcp_retransmit_skb: " in line)
    found = re.search(r" ([0-9]+\.[0-9]{3}) ms: ", first)
    assert found
    assert float(found[1]) == pytest.approx(entered_recovery(run.path, point), abs=0.002)
    wrong = output(tmp_path, "replay", "run", point, "--trace", "none:*", "--out", "wrong", code=3)
    assert "trace none:*: this kernel has no such event; its groups are " in wrong


FAULTS = {
    "overwrite": ("BUG: KASAN: slab-out-of-bounds in overwrite", "Write of size 1 at addr"),
    "shift": ("UBSAN: shift-out-of-bounds in ", "shift exponent 40 is too large for 32-bit type 'int'"),
    "order": ("WARNING: possible circular locking dependency detected", "second", "Possible unsafe locking scenario"),
    "sleep": ("BUG: sleeping function called from invalid context at ", "debug_fault.c"),
    "list": ("list_add corruption", "__list_add_valid"),
    "object": ("ODEBUG: free active (active state 0) object: ", "object type: timer_list hint: expired"),
}
"""A fault of lab/kernel/variants/debug_fault.c: what the kernel reports of it."""


@variant("debug")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_each_kind_fails_its_point(tmp_path: Path, fault: str) -> None:
    code, out, said = test_kernel_faults.run(tmp_path, f"{VERSION}-debug", f"testctl_fault.{fault}=1")
    assert code == 1, said
    (point,) = json.loads((out / "summary.json").read_text(encoding="utf-8"))["points"]
    assert point["verdict"] == "fail"
    assert point["reason"].startswith("the lab's kernel reports a fault of its own: ")
    for words in FAULTS[fault]:
        assert words in point["reason"]
    assert FAULTS[fault][0].split(": ")[0] in text_of(out / "report.html")


@variant("debug")
def test_a_point_without_a_fault_passes_and_repeats(tmp_path: Path) -> None:
    """Over both families, with what the switch does to packets, all records and a recovery."""
    plan = PLAN.format(kernel=f"{VERSION}-debug") + "  - [bulk, family, [4, 6]]\n"
    one, other = (run_of(tmp_path, plan, out=name) for name in ("one", "other"))
    assert [point.verdict for point in (*one.points, *other.points)] == ["pass"] * 4
    assert [point.digest for point in one.points] == [point.digest for point in other.points]


@variant("coverage")
def test_what_a_point_executes_is_counted_and_no_packet_is_another(tmp_path: Path) -> None:
    runs = {}
    for name, kernel in (("plain", VERSION), ("first", f"{VERSION}-coverage"), ("second", f"{VERSION}-coverage")):
        runs[name] = run_of(tmp_path, PLAN.format(kernel=kernel), out=name)
    assert len({point.digest for run in runs.values() for point in run.points}) == 1
    # What the kernel executed before the traffic depends on how fast the machine sets the point up.
    assert executions(runs["first"]) == executions(runs["second"])
    files = json.loads(output(tmp_path, "coverage", "first", "--json"))["files"]
    assert files["net/ipv4/tcp_input.c"]["lines"]["reached"] > 800
    assert files["net/ipv4/tcp_vegas.c"]["functions"]["reached"] == 0
    assert output(tmp_path, "coverage", "first", "second", "--alone").startswith("0 of ")
    (line,) = [
        number
        for number, text in enumerate((kernel_sources() / "net/ipv4/tcp_input.c").read_text().splitlines(), 1)
        if text.startswith("void tcp_enter_recovery(")
    ]
    said = output(tmp_path, "coverage", "first", "--line", f"net/ipv4/tcp_input.c:{line}")
    assert "1 of 1 points reach it" in said
    wrong = output(tmp_path, "coverage", "plain", code=2)
    assert "want points on a kernel that counts what it executes" in wrong


def executions(run: Run) -> dict[str, dict[object, list[int]]]:
    """Of each source file the executions of its lines and branches, by each point's traffic."""
    return {
        name: {place: counts.tolist() for place, counts in (*file.lines.items(), *file.branches.items())}
        for name, file in coverage_of(run).files.items()
    }


def kernel_sources() -> Path:
    kernel = built(f"{VERSION}-coverage")
    assert kernel is not None
    return kernel.directory / SOURCES


PARTS = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [sender, kernel, "{}"]
  - [receiver, kernel, "{}"]
  - [all, partition, {}]
  - [switch, delay, 2ms]
  - [switch, rate, 100mbit]
  - [switch, fate, drop data 30 of bulk]
  - [bulk, duration, 100ms]
"""


@variant("coverage")
def test_several_kernels_count_each_what_it_executes(tmp_path: Path) -> None:
    """The same code as one kernel for all, and of one side what that side alone executes."""
    counts = f"{VERSION}-coverage"
    functions, digests = {}, {}
    for name, sender, receiver, partition in (
        ("one", counts, counts, "shared"),
        ("each", counts, counts, "own"),
        ("sender's", counts, VERSION, "own"),
        ("none", VERSION, VERSION, "own"),
    ):
        run = run_of(tmp_path, PARTS.format(sender, receiver, partition), out=name)
        digests[name] = run.points[0].digest
        if name != "none":
            file = coverage_of(run).files["net/ipv4/tcp_input.c"]
            functions[name] = {function for (function, _), executed in file.functions.items() if executed.any()}
    assert digests["each"] == digests["sender's"] == digests["none"]
    assert functions["one"] == functions["each"]
    assert functions["sender's"] < functions["each"]
    assert "tcp_enter_recovery" in functions["sender's"]
    assert "tcp_data_queue_ofo" in functions["each"] - functions["sender's"]
    wrong = output(tmp_path, "coverage", "each", "--kernel", "6.1-coverage", code=2)
    assert "got none on 6.1-coverage" in wrong


@variant("trace")
def test_a_trace_has_the_events_of_each_of_several_kernels(tmp_path: Path) -> None:
    (point,) = run_of(tmp_path, PARTS.format(VERSION, VERSION, "own")).points
    said = output(tmp_path, "replay", "run", point.id, "--trace", "tcp:*", "--out", "again")
    assert "the same: " in said
    (trace,) = (tmp_path / "again").glob("points/*/kernel.trace")
    sender, receiver = re.split("^# receiver$", trace.read_text(), flags=re.MULTILINE)
    assert sender.startswith("# sender\n")
    assert " tcp_retransmit_skb: " in sender
    assert " tcp_rcvbuf_grow: " in receiver or " tcp_rcv_space_adjust: " in receiver
    assert " tcp_retransmit_skb: " not in receiver
