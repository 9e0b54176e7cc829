# SPDX-License-Identifier: Apache-2.0
"""The search over commits that were measured before; git is real."""

from __future__ import annotations

from pathlib import Path

from testctl.bisect import repository
from testctl.bisect.criterion import Criterion
from testctl.bisect.measure import Bench, Measurement
from testctl.bisect.search import _all
from testctl.plan import load_plan

from controller.tests.bisect import trees

PLAN = b"{topology: pair, flows: {bulk: sender -> receiver}, tuples: [[bulk, bytes, 1kB]]}"


def test_a_commit_at_which_the_metric_has_no_value_is_skipped(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    commits = [trees.new_tree(tree), *(trees.commit(tree, f"{n}", net__tcp_c=f"{n}") for n in range(1, 5))]
    bench = Bench(tree, "source", load_plan(PLAN), tmp_path, "", lambda *_: None, 1)
    for commit, speed in zip(commits, (1.0, 1.0, None, 9.0, 9.0), strict=True):
        bench.known[commit] = Measurement(commit, metrics={"point": {"bulk": {"throughput_bps": speed}}})
    ends = bench.known[commits[0]], bench.known[commits[-1]]
    said: dict[str, tuple[str, str]] = {}
    with repository.bisection(tree, commits[0], commits[-1], tmp_path / "home") as git:
        _all(git, bench, ends, Criterion(metric="throughput_bps"),
             lambda commit, verdict, measured: said.update({commit.id: (verdict, measured.untestable)}))  # fmt: skip
        assert set(git.undecided) == set(commits[2:4])
    assert said[commits[2]][0] == "skip"
    assert "want a number at commit" in said[commits[2]][1]
