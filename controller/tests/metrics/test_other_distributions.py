# SPDX-License-Identifier: Apache-2.0
"""Metrics and curves of other distributions: computed, shown, compared; results opened without them; broken ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from testctl.system import checkout

pytestmark = pytest.mark.long

EXAMPLE = checkout.root() / "examples" / "own_metric"
FIXTURE = Path(__file__).parent / "fixtures" / "loss"

PROGRAM = """
import json, sys
from pathlib import Path
from testctl.curves import series
from testctl.execution.assess import analysis_keys, assess
from testctl.records import load_raw
records = load_raw(Path(sys.argv[1]))
flow = records.flows[0]
found = dict(assess(records).metrics[flow])
rows = series(records, flow, "gaps", 0).num_rows if "longest_gap_s" in found else 0
print(json.dumps([found.get("longest_gap_s"), found["payload_bytes"], rows, analysis_keys()["metrics"]]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where installed packages are: those of this Python, without those of other distributions."""
    place = tmp_path / "site-packages"
    place.mkdir()
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if found.suffix != ".pth":
            (place / found.name).symlink_to(found)
    return place


def install(place: Path) -> Path:
    """The example, as pip installs it from a directory; the package's directory."""
    copy = place.parent / "copy"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
            "--disable-pip-version-check", "--target", str(place), str(copy)]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "own_metric"


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with the packages of `place` and no others (-S: no site-packages, no .pth)."""
    sources = [str(checkout.root() / name / "src") for name in ("agents", "controller")]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), *sources]), "COLUMNS": "200"}
    return subprocess.run([sys.executable, "-S", *words], capture_output=True, text=True, check=False, env=environ)


def command(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call(place, "-m", "testctl.cli.main", *words)


def test_a_metric_and_a_curve_are_computed(path: Path) -> None:
    without = json.loads(call(path, "-c", PROGRAM, str(FIXTURE)).stdout)
    install(path)
    done = call(path, "-c", PROGRAM, str(FIXTURE))
    assert done.returncode == 0, done.stderr
    gap, payload, rows, key = json.loads(done.stdout)
    assert 0 < gap < 10
    assert rows > 0
    assert (without[0], without[1]) == (None, payload), "the other metrics are as before"
    assert key != without[3], "--resume computes a point again"


def test_a_plan_expects_it_and_is_refused_without_it(path: Path) -> None:
    plan = path.parent / "plan.yaml"
    plan.write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 100ms]\n"
        "expect:\n  - {name: no gap, metric: longest_gap_s, max: 10ms}\n"
    )
    done = command(path, "plan", str(plan), "--json")
    assert done.returncode == 2
    assert "no metric named longest_gap_s" in done.stderr
    install(path)
    done = command(path, "plan", str(plan), "--json")
    assert "no metric named" not in done.stderr
    assert "longest_gap_s" in command(path, "metrics", "--json").stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("def compute(records, flow): pass", "want SPEC, a MetricSpec; got NoneType"),
        ("SPEC = 1", "want a function compute"),
    ],
)
def test_a_broken_metric_names_its_distribution(path: Path, text: str, why: str) -> None:
    (install(path) / "longest_gap.py").write_text(text)
    done = command(path, "metrics")
    assert done.returncode == 3
    (sentence,) = done.stderr.splitlines()
    assert "distribution own-metric" in sentence
    assert why in sentence


def test_a_metric_that_raises_names_its_distribution(path: Path) -> None:
    file = install(path) / "longest_gap.py"
    file.write_text(file.read_text().replace("    times = view", "    1 / 0\n    times = view"))
    done = call(path, "-c", PROGRAM, str(FIXTURE))
    assert "TestbedError: metric 'longest_gap' of the distribution own-metric: ZeroDivisionError" in done.stderr


def test_a_metric_does_not_replace_another(path: Path) -> None:
    file = install(path) / "longest_gap.py"
    file.write_text(file.read_text().replace("longest_gap_s", "throughput_bps"))
    assert "own-metric: throughput_bps exists already" in command(path, "metrics").stderr


@pytest.mark.lab
def test_a_run_is_shown_compared_and_opened_without_it(path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 100ms]\n"
        "  - [switch:receiver, rate, 100mbit]\n"
        "expect:\n  - {name: no gap, metric: longest_gap_s, max: 1s}\n"
    )
    install(path)
    runs = [str(tmp_path / name) for name in ("a", "b")]
    for run, more in zip(runs, ([], ["--set", "switch.delay=3ms"]), strict=True):
        done = command(path, "run", str(plan), "--out", run, *more)
        assert done.returncode == 0, done.stdout + done.stderr
    wanted = ("show", runs[0], "--json"), ("compare", *runs, "--all")
    with_it = [command(path, *words) for words in wanted]
    assert all("longest_gap_s" in one.stdout for one in with_it[1:]), with_it[1].stdout
    shutil.rmtree(path / "own_metric")
    shutil.rmtree(next(path.glob("own_metric-*.dist-info")))
    for words, before in zip(wanted, with_it, strict=True):
        done = command(path, *words)
        assert (done.returncode, done.stderr) == (before.returncode, before.stderr)
    assert "longest_gap_s" in command(path, *wanted[1]).stdout
    assert command(path, "report", runs[0]).returncode == 0
    (point,) = (Path(runs[0]) / "points").iterdir()
    for words in (("replay", runs[0], point.name), ("shrink", runs[0], point.name, "--out", str(tmp_path / "shrunk"))):
        done = command(path, *words)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.splitlines()[-1] == (
            f"{runs[0]}: its plan names the metric longest_gap_s, which is not installed here; the run was made with "
            "own-metric 1.0: install that (docs/extensions.md); show and compare work without it"
        )


def test_the_help_of_series_and_its_errors_name_curves_of_others(path: Path, tmp_path: Path) -> None:
    assert "gaps" not in command(path, "series", "--help").stdout
    package = install(path)
    done = command(path, "series", "--help")
    assert done.returncode == 0, done.stderr
    assert "gaps" in done.stdout
    program = "from testctl.curves import curves; print(list(curves()))"
    assert "'gaps'" in call(path, "-c", program).stdout, "the error of a wrong name lists these"
    (package / "gaps.py").write_text("import nothing_of_that_name")
    done = command(path, "series", "--help")
    assert (done.returncode, "gaps" in done.stdout) == (0, True), "it is not imported for the help"
    done = call(path, "-c", program)
    assert (
        "curve 'gaps' of the distribution own-metric: want the module own_metric.gaps; got ModuleNotFound"
        in done.stderr
    )
