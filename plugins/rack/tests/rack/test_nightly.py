# SPDX-License-Identifier: Apache-2.0
"""`testctl nightly` on a rack: a series of its own, compared with the last one, cut by the budget, gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from testctl_agent.system.toolchain import cache_dir

from plugins.rack.tests.rack.bed import PLAN, POINTS, Bed, eventually

ROOT = Path(__file__).parents[4]
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


def test_two_nights_on_a_rack(rack: Bed) -> None:
    said = rack.ends(rack.run("--budget", "1h", command="nightly"), 0)
    assert "the first nightly run of this plan here" in said
    one = rack.summary()
    assert [point["verdict"] for point in one["points"]] == ["pass"] * POINTS
    assert (one["nightly"]["jobs"], one["nightly"]["ended_by"]) == (1, "all points run")
    assert one["testbed"] == str(rack.inventory)
    again = f"testctl nightly plan.yaml --testbed {rack.inventory} --like results/{one['run']}"
    assert one["reproduce"] == again

    rack.ends(rack.run("--budget", "1h", "--without", "switch.fate", command="nightly"), 0)
    assert rack.summary()["nightly"]["since"] is None, "a plan without a tuple is another series"

    said = rack.ends(rack.run("--budget", "1h", "--wait", "10s", command="nightly"), 0)
    assert rack.summary()["nightly"]["since"] == one["run"]
    assert f"since {one['run']}" in said
    assert "too few samples" in said, "two runs in wall-clock time are compared by statistics"
    assert rack.summary()["nightly"]["first"] == []


def test_a_budget_that_holds_one_point(rack: Bed) -> None:
    """Chosen before the first is run: a rack takes points in the order of its kernels."""
    rack.ends(rack.run("--budget", "5s", command="nightly"), 0)
    entry = rack.summary()["nightly"]
    assert len(rack.summary()["points"]) == 1
    assert len(entry["not_run"]) == POINTS - 1


def test_interrupted_on_a_rack(rack: Bed) -> None:
    long = rack.where / "long.yaml"
    long.write_text(PLAN + "repeat: 3\n", encoding="utf-8")
    process = rack.run("--budget", "1h", command="nightly", plan=long)
    rack.reaches("sender Restore ended", process)
    rack.reaches("sender Apply ended", process)
    process.send_signal(signal.SIGINT)
    assert "finished points are kept" in rack.ends(process, 130)
    assert eventually(rack.is_free), "its lease ends"
    rack.ends(rack.run("--budget", "1h", "--resume", command="nightly", plan=long), 0)
    summary = rack.summary()
    assert len(summary["points"]) == 3 * POINTS
    assert any("reused_from" in point for point in summary["points"])


def test_what_is_refused(rack: Bed) -> None:
    for words, want in (
        (("--jobs", "2"), "a rack runs one point at once; want --jobs 1, got 2"),
        (("--source", "/nonexistent"), "--source: want --testbed lab"),
        (("--wait", "soon"), "--wait: want a time such as 90s, 30m or 2h; got 'soon'"),
    ):
        assert want in rack.ends(rack.run("--budget", "1h", *words, command="nightly"), 2)


def test_from_a_checkout_that_is_only_read(rack: Bed) -> None:
    """As the unit of playbooks/nightly.yml has it: results and cache can be written, the checkout can't."""
    argv = rack.command("nightly", str(rack.plan), "--testbed", str(rack.inventory), "--budget", "1h")
    argv += ["--results", str(rack.where / "results")]
    read_only = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && ! touch x && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", read_only, str(ROOT), *argv], capture_output=True, text=True, check=False,
        env=os.environ | {"TESTCTL_CACHE": str(cache_dir())},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rack.summary()["points"]) == POINTS
