# SPDX-License-Identifier: Apache-2.0
"""`testctl run --cluster` with labs on the workers: the digests of a local run, though a worker was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plugins.cluster.tests.dask import dask

PLAN = """
about: short points for workers
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [hosts, tso, [on, off]]
  - [switch:receiver, rate, 50mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, duration, 200ms]
expect:
  - {name: something arrives, metric: goodput_bps, min: 1mbit}
"""


def argv(where: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "testctl.cli.main", "run", str(where / "short.yaml"), *words]


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return found


def busy(worker: int) -> bool:
    """Whether a lab runs below this process."""
    for path in Path(f"/proc/{worker}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text(encoding="ascii").split():
                if b"init=" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


@pytest.mark.lab
def test_a_worker_killed_in_a_point_loses_nothing_and_the_digests_are_a_local_run_s(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(PLAN, encoding="utf-8")
    with dask(tmp_path, workers=2) as cluster:
        victim = cluster.running[1]
        words = argv(tmp_path, "--cluster", cluster.address, "--captures", "--out", "there")
        with subprocess.Popen(
            words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as child:
            until = time.monotonic() + 300
            # Asked once: a second answer may be about the moment between two points.
            while not (in_a_point := busy(victim.pid)) and child.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            assert in_a_point
            os.kill(victim.pid, signal.SIGKILL)
            said = child.communicate(timeout=600)[0]
        assert child.returncode == 0, said
    local = subprocess.run(
        argv(tmp_path, "--captures", "--out", "here"), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert local.returncode == 0, local.stdout + local.stderr
    there, here = summary(tmp_path / "there"), summary(tmp_path / "here")
    assert [(p["id"], p["digest"], p["verdict"], p["metrics"]) for p in there["points"]] == [
        (p["id"], p["digest"], p["verdict"], p["metrics"]) for p in here["points"]
    ]
    assert there["digest"] == here["digest"]
    captures = [sorted(path.name for path in (tmp_path / run).glob("points/*/captures/*")) for run in ("there", "here")]
    assert captures[0] == captures[1] != []


def test_it_is_for_the_lab_alone(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(PLAN, encoding="utf-8")
    words = argv(tmp_path, "--cluster", "tcp://127.0.0.1:1", "--testbed", "netns")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--cluster: want --testbed lab, the only one that every machine has; got 'netns'" in done.stderr
