# SPDX-License-Identifier: Apache-2.0
"""`testctl bisect`, `run --source`, `--affected-by` and `compare --source` with kernels that are really built.

It takes some minutes: the first kernel of the tree is compiled as a whole.  Run by TESTCTL_BISECT=1 pytest
tests/test_bisect_kernel.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from testctl.lab.source import tarball_of

from controller.tests.bisect import trees
from tests.cli_commands import call

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.environ.get("TESTCTL_BISECT") != "1", reason="takes minutes: TESTCTL_BISECT=1 runs it"),
]

LEFT_OUT = ("drivers/gpu", "drivers/net/ethernet", "drivers/net/wireless", "drivers/media", "drivers/staging", "sound")
"""Directories of which the lab needs only Kconfig and Makefile."""
CUBIC = "net/ipv4/tcp_cubic.c"
BETA = "static int beta __read_mostly = 717;"
LIMITED = "if (!tcp_is_cwnd_limited(sk))"
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 20ms]
  - [switch, fate, "drop data 200 of bulk, first"]
  - [bulk, duration, 1s]
expect:
  - {name: fast after a loss, metric: throughput_bps, min: 35000000}
"""
AFFECTED = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [all, mtu, [1500, 9000]]
  - [switch:receiver, rate, 100mbit]
  - [bulk, bytes, 50kB]
"""


def edit(tree: Path, title: str, name: str, old: str, new: str) -> str:
    text = (tree / name).read_text()
    assert old in text
    (tree / name).write_text(text.replace(old, new, 1))
    return trees.commit(tree, title)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A git tree of Debian's package, and its nine commits."""
    tarball = tarball_of("6.12")
    if tarball is None:
        pytest.skip("linux-source-6.12 is not installed")
    tree = tmp_path_factory.mktemp("bisect") / "linux"
    tree.mkdir()
    excluded = [f"--exclude=*/{name}/*.[ch]" for name in LEFT_OUT]
    argv = ["tar", "xf", str(tarball), "--strip-components=1", "--wildcards", *excluded, "-C", str(tree)]
    subprocess.run(argv, check=True)
    trees.git(tree, "init", "-q", "-b", "main")
    trees.git(tree, "config", "gc.auto", "0")
    trees.git(tree, "add", "-A", "-f")
    first = trees.commit(tree, "Linux of Debian")
    (tree / "MAINTAINERS").write_text("nobody\n")
    return tree, [
        first,
        trees.commit(tree, "MAINTAINERS: nobody"),
        edit(tree, "dctcp: a comment", "net/ipv4/tcp_dctcp.c", "/*", "/* a comment */\n/*"),
        edit(tree, "cubic: does not build", CUBIC, BETA, BETA.rstrip(";")),
        edit(tree, "cubic: builds again", CUBIC, BETA.rstrip(";"), BETA),
        edit(tree, "cubic: less is left after a loss", CUBIC, BETA, BETA.replace("717", "410")),
        edit(tree, "sctp: a comment", "net/sctp/socket.c", "/*", "/* a comment */\n/*"),
        edit(tree, "vegas: a comment", "net/ipv4/tcp_vegas.c", "/*", "/* a comment */\n/*"),
        edit(tree, "cubic: what never holds", CUBIC, LIMITED, LIMITED.replace("))", ") && tp->snd_cwnd)")),
    ]


def command_in(where: Path, *words: str) -> tuple[int, str]:
    done = call(where, *words, code=None, timeout_s=3600)
    return done.returncode, done.stdout + done.stderr


def test_the_commit_that_slows_cubic_down(tree: tuple[Path, list[str]], tmp_path: Path) -> None:
    where, commits = tree
    (tmp_path / "plan.yaml").write_text(PLAN)
    status = trees.git(where, "status", "--porcelain"), trees.git(where, "for-each-ref")
    code, said = command_in(
        tmp_path, "bisect", "plan.yaml", "--source", str(where), "--good", commits[0], "--bad", "main", "--out", "found"
    )
    assert code == 0, said
    found = json.loads((tmp_path / "found" / "bisect.json").read_text())
    assert found["culprit"]["id"] == commits[5], said
    assert found["culprit"]["title"] == "cubic: less is left after a loss"
    assert found["values"] == ["pass", "fail"]
    assert "error:" in next(step["words"] for step in found["steps"] if step["verdict"] == "skip")
    assert found["changes"][0]["first"]["what"] == "packet"
    assert found["builds"] < len(commits)
    assert (trees.git(where, "status", "--porcelain"), trees.git(where, "for-each-ref")) == status

    code, said = command_in(tmp_path, "run", "plan.yaml", "--source", f"{where}@{commits[4]}", "--out", "run")
    assert code == 0, said
    sources = ["--source", f"{where}@{commits[4]}", "--source", f"{where}@{commits[5]}"]
    code, said = command_in(tmp_path, "compare", "plan.yaml", *sources, "--jobs", "2", "--set", "bulk.duration=900ms")
    assert code == 1, said
    assert "throughput_bps" in said
    code, said = command_in(tmp_path, "compare", "plan.yaml", *sources[:2], *sources[:2])
    assert code == 2, said
    assert "are the same" in said


def test_only_the_points_that_a_change_concerns_are_run(tree: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Those of CUBIC; of which the one comes first whose counters are missing: what it executes is not known."""
    where, commits = tree
    (tmp_path / "plan.yaml").write_text(AFFECTED)
    change = ("--source", f"{where}@{commits[8]}", "--affected-by", commits[7])

    def values(point: Any) -> dict[str, str]:
        return {parameter: value for _, parameter, value in point["tuples"]}

    def ran(*words: str) -> list[dict[str, str]]:
        code, said = command_in(tmp_path, "run", "plan.yaml", *change, *words)
        assert code == 0, said
        points = json.loads((tmp_path / words[-1] / "summary.json").read_text())["points"]
        return [values(point) for point in points]

    (tmp_path / "reno.yaml").write_text(AFFECTED.replace("cubic, ", ""))
    code, said = command_in(tmp_path, "nightly", "reno.yaml", "plan.yaml", *change, "--budget", "1m")
    assert code == 0, said
    assert [path.name[-5:] for path in (tmp_path / "results").glob("*Z-*")] == ["-plan"], "nothing of reno is concerned"
    every = ran("--out", "every")
    assert {(point["cc"], point["mtu"]) for point in every} == {("cubic", "1500"), ("cubic", "9000")}
    for lost in ("1500", "9000"):
        for file in (tmp_path / "results" / "coverage").rglob("point.json"):
            kept, away = file.with_name("kernel.coverage"), file.with_name("away")
            if away.exists():
                away.rename(kept)
            if (point := values(json.loads(file.read_text())))["cc"] == "cubic" and point["mtu"] == lost:
                kept.rename(away)
        (point,) = ran("--affected-most", "1", "--out", f"one-{lost}")
        assert (point["cc"], point["mtu"]) == ("cubic", lost)
