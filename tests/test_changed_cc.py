# SPDX-License-Identifier: Apache-2.0
"""Congestion controls that a developer changed or wrote, in a kernel of their own.

One line of AReno is changed: which points and metrics moved, and which tuples does it take?  And the control of
`certify`: a congestion control without backoff is told apart by each criterion that asks for it, Reno by none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testctl.system import checkout

pytestmark = [pytest.mark.long, pytest.mark.lab, pytest.mark.timeout(3600)]

LINE = "	return areno_reduce(s, w->cwnd, rtt_us, areno_level(s, rtt_us));"
CHANGED = "	return areno_reduce(s, w->cwnd, rtt_us, areno_level(s, rtt_us)) / 8 + 2;"
NO_BACKOFF = """// SPDX-License-Identifier: GPL-2.0
#include "testctl_cc.h"

struct no_backoff_state {
	u32 unused;
};

static void no_backoff_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	w->cwnd = 200;
}

static u32 no_backoff_loss(void *state, const struct cc_event *e, const struct cc_window *w)
{
	return 200;
}

static const struct cc_growth no_backoff_growth = {
	.ack = no_backoff_ack,
	.loss = no_backoff_loss,
};

TESTCTL_CC(no_backoff, no_backoff)
"""
PLAN = """
about: AReno and CUBIC after a loss
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [areno, cubic]]
  - [hosts, tso, "off"]
  - [switch:receiver, rate, 20mbit]
  - [switch:receiver, buffer, 100kB]
  - [switch, delay, 5ms]
  - [switch, fate, "drop data 400 of bulk, first; drop data 900 of bulk, first"]
  - [bulk, duration, 1s]
expect:
  - {name: a lost packet costs little, metric: saturation, min: 0.95}
"""


def call(where: Path, *words: str, root: Path | None = None) -> tuple[int, str]:
    """testctl, with the checkout's files or those of another root; its exit code and what it printed."""
    env = os.environ | ({"TESTCTL_ROOT": str(root)} if root else {})
    argv = [sys.executable, "-m", "testctl.cli.main", *words]
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, timeout=3000, check=False, env=env)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout with one line of AReno changed and a congestion control more, and its kernel."""
    place = tmp_path_factory.mktemp("changed")
    root = place / "other"
    (root / "lab").mkdir(parents=True)
    for path in checkout.root().iterdir():
        if path.name not in ("lab", "results"):
            (root / path.name).symlink_to(path)
    for path in checkout.lab().iterdir():
        if path.name != "cc":
            (root / "lab" / path.name).symlink_to(path)
    (root / "lab" / "cc").mkdir()
    for path in (checkout.lab() / "cc").glob("*.[ch]"):
        text = path.read_text(encoding="utf-8")
        if path.name == "tcp_areno.c":
            assert text.count(LINE) == 1
            text = text.replace(LINE, CHANGED)
        (root / "lab" / "cc" / path.name).write_text(text, encoding="utf-8")
    (root / "lab" / "cc" / "tcp_no_backoff.c").write_text(NO_BACKOFF, encoding="utf-8")
    print(call(place, "lab", "build", "6.12", root=root)[1])
    return root


def found(where: Path, run: str, cc: str) -> dict[str, Any]:
    points = json.loads((where / run / "summary.json").read_text(encoding="utf-8"))["points"]
    (point,) = [point for point in points if ["hosts", "cc", cc] in point["tuples"]]
    return dict(point)


def test_compare_names_what_moved_and_shrink_the_tuples(tmp_path: Path, other: Path) -> None:
    (tmp_path / "loss.yaml").write_text(PLAN, encoding="utf-8")
    assert call(tmp_path, "run", "loss.yaml", "--out", "a")[0] == 0
    assert call(tmp_path, "run", "loss.yaml", "--out", "b", root=other)[0] == 1
    code, said = call(tmp_path, "compare", "a", "b", "--json")
    print(said)
    assert code == 1
    compared = json.loads(said)
    areno = found(tmp_path, "b", "areno")
    assert areno["verdict"] == "fail"
    assert found(tmp_path, "b", "cubic")["verdict"] == "pass"
    (moved,) = compared["differences"]
    assert moved["id"] == areno["id"]
    assert {"goodput_bps", "saturation"} <= {metric["metric"] for metric in moved["metrics"]}
    code, said = call(tmp_path, "shrink", "b", areno["id"], "--probes", "1", "--json", "--out", "s", root=other)
    print(said)
    smallest = [tuple(words) for words in json.loads(said)["smallest"]]
    assert ("hosts", "cc") in [words[:2] for words in smallest]
    assert ("hosts", "tso") not in [words[:2] for words in smallest]


def test_certify_finds_what_does_not_back_off(tmp_path: Path, other: Path) -> None:
    criteria = ("collapse", "high_loss", "harm_reno", "no_feedback")
    plans = [word for name in criteria for word in ("--plan", name)]
    code, said = call(tmp_path, "certify", "no_backoff", "--beside", "reno", "--quick", *plans, "--json", root=other)
    print(said)
    assert code == 1
    card = {row["name"]: row["results"] for row in json.loads(said)["criteria"]}
    for name in criteria:
        assert card[name]["reno"]["verdict"] == "pass", name
        assert card[name]["no_backoff"]["verdict"] == "fail", name
    (sent,) = {int(count) for line in card["collapse"]["no_backoff"]["why"]
               for count in re.findall(r"want at most 2000; got (\d+)", line)}  # fmt: skip
    assert sent > 5000, "half of its packets are lost, and after each timeout it goes on with a window of 200"
    plan = ("--plan", "high_loss", "--shrink")
    code, said = call(tmp_path, "certify", "no_backoff", "--beside", "none", "--quick", *plan, "--json", root=other)
    print(said)
    cell = json.loads(said)["criteria"][0]["results"]["no_backoff"]
    assert "tested.cc=no_backoff" in cell["smallest"].split(" ")
    assert "switches.delay" not in cell["smallest"]
    assert (tmp_path / cell["plan"]).is_file()
