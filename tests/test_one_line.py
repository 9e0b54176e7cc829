# SPDX-License-Identifier: Apache-2.0
"""One line of a congestion control is changed: which points and metrics moved, and which tuples does it take?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testctl.system import checkout

pytestmark = [pytest.mark.long, pytest.mark.lab, pytest.mark.timeout(3600)]

LINE = "	return areno_reduce(s, w->cwnd, rtt_us, areno_level(s, rtt_us));"
CHANGED = "	return areno_reduce(s, w->cwnd, rtt_us, areno_level(s, rtt_us)) / 8 + 2;"
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


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Path]:
    """The checkout with one line of AReno changed; the kernel that it gave is removed afterwards."""
    root = tmp_path / "other"
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
    _, said = call(tmp_path, "lab", "build", "6.12", root=root)
    yield root
    print(said)


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
