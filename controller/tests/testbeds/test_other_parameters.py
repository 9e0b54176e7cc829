# SPDX-License-Identifier: Apache-2.0
"""Parameters of other distributions: in plans and in the lab, refused on a rack; broken ones are named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.system import checkout

pytestmark = pytest.mark.long

ROOT = checkout.root()
PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, tx_queue_len, 77]
  - [switch:receiver, rate, 100mbit]
  - [bulk, bytes, 20kB]
"""
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The package directory of a fresh environment with testctl and the example."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    purelib = venv / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.suffix != ".pth":
            (libraries / path.name).symlink_to(path)
    lines = [libraries, *(ROOT / name / "src" for name in ("agents", "controller"))]
    (purelib / "paths.pth").write_text("".join(f"{line}\n" for line in lines))
    copy = tmp_path / "copy"
    example = ROOT / "examples" / "own_parameter"
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
            "--disable-pip-version-check", "--target", str(purelib), str(copy)]  # fmt: skip
    subprocess.run(argv, check=True, cwd=tmp_path)
    return purelib


@pytest.fixture
def call(site: Path, tmp_path: Path) -> Call:
    """testctl of that environment, in a directory with a plan."""
    (tmp_path / "plan.yaml").write_text(PLAN)

    def one(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(tmp_path / "venv" / "bin" / "python"), "-m", "testctl.cli.main", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)

    return one


@pytest.mark.lab
def test_it_is_set_in_the_lab_and_part_of_the_code_key(call: Call, tmp_path: Path) -> None:
    done = call("run", "plan.yaml", "--out", "with")
    assert done.returncode == 0, done.stdout + done.stderr
    (point,) = (tmp_path / "with" / "points").iterdir()
    entities = json.loads((point / "outcome.json").read_text())["entities"]
    for host in ("sender", "receiver"):
        assert (entities[host]["before"]["tx_queue_len"], entities[host]["after"]["tx_queue_len"]) == (1000, 77)
    done = call("run", "plan.yaml", "--out", "without", "--without", "hosts.tx_queue_len")
    assert done.returncode == 0, done.stdout + done.stderr
    (other,) = (tmp_path / "without" / "points").iterdir()
    keys = {json.loads((one / "verdict.json").read_text())["code_key"] for one in (point, other)}
    assert len(keys) == 2, "a change of the distribution is other code"


def test_plans_lists_and_the_schema_know_it(call: Call, tmp_path: Path) -> None:
    done = call("plan", "plan.yaml")
    assert done.returncode == 0, done.stderr
    assert "tx_queue_len=77" in done.stdout
    done = call("plan", "plan.yaml", "--set", "hosts.tx_queue_len=7x")
    assert "hosts, tx_queue_len: want a whole number from 0 to 100000" in done.stderr
    assert "Packets that wait for the device at most" in call("params", "tx_queue_len").stdout
    assert '"tx_queue_len"' in call("schema").stdout
    script = "from testctl.plan import load_plan; load_plan('plan.yaml', metrics={}, testbed='inventory/mine')"
    argv = [str(tmp_path / "venv" / "bin" / "python"), "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "testbed inventory can't have it; these can: lab, netns" in done.stderr


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("import Path", "import Paths", "ImportError"),
        ('SPEC = ParamSpec("tx_queue_len"', 'SPEC = ParamSpec("length"', "SPEC.name is 'length'"),
        ("def unavailable(", "def available(", "has no function unavailable"),
        ('Int(0, 100_000, "packets")', "Int(0, 9), default=3", "want the role state, and neither pattern nor default"),
    ],
)
def test_a_broken_one_names_its_distribution_and_affects_no_other_plan(
    call: Call, site: Path, tmp_path: Path, before: str, after: str, why: str
) -> None:
    file = site / "own_parameter" / "tx_queue_len.py"
    file.write_text(file.read_text().replace(before, after))
    done = call("plan", "plan.yaml")
    assert done.returncode == 3, done.stdout
    (sentence,) = done.stderr.splitlines()
    assert "host.tx_queue_len" in sentence
    assert "of the distribution own-parameter: " in sentence
    assert why in sentence
    (tmp_path / "other.yaml").write_text(PLAN.replace("hosts, tx_queue_len, 77", "all, mtu, 1500"))
    assert call("plan", "other.yaml").returncode == 0


def test_it_does_not_replace_one_of_the_agents(call: Call, site: Path) -> None:
    (entries,) = site.glob("own_parameter-*.dist-info/entry_points.txt")
    entries.write_text("[testctl_agent.parameters]\nhost.mtu = own_parameter.tx_queue_len\n")
    done = call("params", "host")
    assert done.returncode == 3
    assert (
        "parameter host.mtu of the distribution own-parameter: the agents have a parameter of that name" in done.stderr
    )


def test_without_it_a_plan_is_refused(call: Call, site: Path) -> None:
    shutil.rmtree(next(site.glob("own_parameter-*.dist-info")))
    done = call("plan", "plan.yaml")
    assert done.returncode == 2
    assert "plan.yaml:4:13: group hosts: its host sender has no parameter named tx_queue_len" in done.stderr
