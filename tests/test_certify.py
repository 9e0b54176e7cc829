# SPDX-License-Identifier: Apache-2.0
"""`testctl certify` in the lab: BBR loses more than CUBIC where the buffer is small, and the scorecard has it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from testctl.lab.built import built
from testctl.system import checkout

from tests.cli_commands import call

pytestmark = pytest.mark.lab

CRITERIA = ("high_loss", "harm_reno")


def certify(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call(where, "certify", *words, code=None)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two criteria of fewer and shorter points."""
    if built("6.12") is None:
        pytest.skip("the lab's kernel 6.12 is not built")
    place = tmp_path_factory.mktemp("certify")
    for name in CRITERIA:
        text = (checkout.root() / "plans" / "certify" / f"{name}.yaml").read_text(encoding="utf-8")
        for old, new in (
            ("[0.25 bdp, 0.5 bdp, 1 bdp, 1.4 bdp]", "0.25 bdp"), ("10s]", "4s]"), ("20s]", "8s]"),
            ("[0.5 bdp, 1 bdp, 2 bdp]", "0.5 bdp"), ("[10mbit, 50mbit]", "10mbit"),
        ):  # fmt: skip
            text = text.replace(old, new)
        (place / f"{name}.yaml").write_text(text, encoding="utf-8")
    return place


def test_bbr_beside_cubic(where: Path) -> None:
    plans = [word for name in CRITERIA for word in ("--plan", f"{name}.yaml")]
    first = certify(where, "bbr", "--beside", " cubic", *plans, "--out", "card")
    assert first.returncode == 1, first.stdout + first.stderr
    assert max(len(line) for line in first.stdout.splitlines() if "testctl show" not in line) <= 80
    again = certify(where, "bbr", "--beside", "cubic", *plans, "--json")
    assert again.returncode == 1, again.stdout + again.stderr
    card = json.loads((where / "card" / "scorecard.json").read_text(encoding="utf-8"))
    found = json.loads(again.stdout)
    assert found["digest"] == card["digest"]
    loss, harm, rules = card["criteria"]
    assert (loss["source"], loss["level"]) == ("RFC 9743, 5.1.3", "should")
    assert {cc: cell["verdict"] for cc, cell in loss["results"].items()} == {"bbr": "fail", "cubic": "pass"}
    assert {cc: cell["verdict"] for cc, cell in harm["results"].items()} == {"bbr": "fail", "cubic": "pass"}
    assert rules["results"]["bbr"]["verdict"] == "pass"
    assert "loss_rate of tested" in loss["results"]["bbr"]["why"][0]
    page = (where / "card" / "scorecard.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 2, "a figure of each point that fails"
    runs = sorted(path for path in (where / "results").glob("2*") if path.is_dir() and not path.is_symlink())
    assert len([run for run in runs if "certify" not in run.name]) == 4, "the second time nothing was run"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("bbr", "--quick", "--full"), "--quick, --full: want one of the two"),
        (("nothing",), "nothing"),
        (("greedy,reno",), "want the name of a congestion control, such as cubic; got 'greedy,reno'"),
        (("bbr", "--beside", "reno, "), "want the name of a congestion control, such as cubic; got ''"),
        (("bbr", "--beside", "nothing"), "nothing"),
        (("bbr", "--out", "."), "want a new directory, or one with a scorecard alone"),
        (("bbr", "--kernel", "6.0"), "6.0"),
    ],
)
def test_wrong_words(where: Path, words: tuple[str, ...], error: str) -> None:
    ended = certify(where, *words)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert error in ended.stderr
    assert "a bug" not in ended.stderr
