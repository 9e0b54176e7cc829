# SPDX-License-Identifier: Apache-2.0
"""What bash and zsh offer after TAB, by the scripts that `--show-completion` prints."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.system.subprocesses import run

from controller.tests.serve.conftest import make_run
from tests.cli_commands import call

Offer = Callable[[str], list[str]]
TESTCTL = Path(sys.executable).parent / "testctl"
PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, cubic], [bulk, duration, 1s]]\n"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("complete")
    (where / "plans" / "deep").mkdir(parents=True)
    (where / "plans" / "mine.yaml").write_text(PLAN)
    (where / "plans" / "deep" / "other.yaml").write_text(PLAN)
    (where / "plans" / "topology.yaml").write_text("nodes: {}\n")
    (where / "results").mkdir()
    make_run(where / "results", 1)
    return where


@pytest.fixture
def offered(there: Path) -> Offer:
    """The words that are offered for the last word of a line."""

    def of(line: str) -> list[str]:
        given = {"_TESTCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": line.count(" ")}
        return call(there, **given).stdout.split()

    return of


def test_commands_and_options(offered: Offer) -> None:
    assert {"new", "plan", "run", "params"} <= set(offered("testctl "))
    assert "--resume" in offered("testctl run --res")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("testctl run pl", ["plans/deep/other.yaml", "plans/mine.yaml"]),
        ("testctl run plans/m", ["plans/mine.yaml"]),
        ("testctl run plans/mine.yaml --set ", ["bulk.duration=", "hosts.cc="]),
        ("testctl plan plans/mine.yaml --without h", ["hosts.cc"]),
        ("testctl show res", ["results/20260101T120000Z-two", "results/latest"]),
        ("testctl series results/20260101T120000Z-two ", ["ack_owed", "loss"]),
        ("testctl series results/20260101T120000Z-two loss --flow ", ["bulk"]),
        ("testctl series results/20260101T120000Z-two loss --metric c", ["cwnd"]),
        ("testctl params mt", ["mtu"]),
        ("testctl metrics jai", ["jain"]),
        ("testctl topologies d", ["dumbbell"]),
        ("testctl run plans/mine.yaml --testbed n", ["netns"]),
        ("testctl series none ", []),
        ("testctl run none/", []),
        ("testctl run plans/topology.yaml --set ", []),
    ],
)
def test_words(offered: Offer, line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_the_flows_of_a_run_that_is_named_by_its_whole_path(offered: Offer, there: Path) -> None:
    assert offered(f"testctl series {there}/results/20260101T120000Z-two loss --flow ") == ["bulk"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_of_a_shell(shell: str) -> None:
    """It is one that the shell reads, where there is that shell."""
    text = run(["env", f"_TESTCTL_COMPLETE=source_{shell}", str(TESTCTL)])
    assert "_TESTCTL_COMPLETE" in text
    if shutil.which(shell):
        run([shell, "-n", "-c", text])


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_in_bash(there: Path) -> None:
    """The function that the script defines fills COMPREPLY."""
    text = run(["env", "_TESTCTL_COMPLETE=source_bash", str(TESTCTL)])
    line = f"PATH={TESTCTL.parent}:$PATH; COMP_WORDS=(testctl show res); COMP_CWORD=2; _testctl_completion testctl"
    said = run(["bash", "-c", f'{text}\n{line}\necho "${{COMPREPLY[@]}}"'], cwd=there)
    assert said.split() == ["results/20260101T120000Z-two", "results/latest"]
