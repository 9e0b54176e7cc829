# SPDX-License-Identifier: Apache-2.0
"""pytest --plan: points as tests, with the real lab; and pytest as ever without it."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from testctl.results import load_run
from testctl.system import checkout

pytest_plugins = ["pytester"]

PLAN = """
about: two short flows
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, duration, 100ms]
expect:
  - {name: the link is used, metric: saturation, min: 0.2}
  - {name: more than there is, metric: saturation, min: 2, when: {hosts.cc: reno}}
  - {name: cubic is no slower, metric: throughput_bps, at_least: 0.5, than: {hosts.cc: reno}}
  - {name: one of them flies, metric: saturation, min: 3, quantifier: some}
"""
CACHE = checkout.cache_dir()
"""With the kernels; pytester gives its sessions another home."""
WORDS = ("-p", "testctl.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(CACHE))


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*WORDS, *words)


def here(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """A session that runs nothing, in this process."""
    return pytester.runpytest_inprocess(*WORDS, *words)


def write(pytester: pytest.Pytester, text: str = PLAN) -> Path:
    path = pytester.path / "two.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_plan_it_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_inert():
            heavy = {"testctl.execution.finish", "testctl.execution.point", "testctl.plan", "pyarrow", "numpy", "typer"}
            assert not heavy & set(sys.modules)
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_with_a_plan_alone_only_the_plan_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(): pass")
    write(pytester)
    result = here(pytester, "--plan", "two.yaml", "--collect-only", "-q")
    assert result.outlines[:3] == [
        "two.yaml::two[hosts.cc=cubic]",
        "two.yaml::two[hosts.cc=reno]",
        "two.yaml::two[expect one of them flies]",
    ]
    assert not (pytester.path / "results").exists()
    both = here(
        pytester, "--plan", "two.yaml", "--collect-only", "-q", "test_with_a_plan_alone_only_the_plan_is_collected.py"
    )
    assert any("::test_other" in line for line in both.outlines)
    assert "two.yaml::two[hosts.cc=reno]" in both.outlines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAN.replace("100mbit", "quick"), "ERROR: two.yaml:7:29: port switch:receiver, rate: want a rate such as"),
        (PLAN.replace("metric: saturation, min: 0.2", "metric: saturatoin, min: 1"), "did you mean saturation?"),
        ("", "want a document; got an empty file"),
    ],
)
def test_a_wrong_plan_is_a_usage_error(pytester: pytest.Pytester, text: str, said: str) -> None:
    write(pytester, text) if text else (pytester.path / "two.yaml").touch()
    result = here(pytester, "--plan", "two.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    assert not (pytester.path / "results").exists()


def test_a_plan_that_is_not_there_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = here(pytester, "--plan", "none.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *none.yaml: can't read the plan: No such file or directory"])


def test_a_testbed_that_is_broken_is_an_error_and_no_failure(pytester: pytest.Pytester) -> None:
    write(pytester, PLAN.replace("cc, [cubic, reno]", 'kernel, "4.99"').replace("when: {hosts.cc: reno}", "")
          .replace("than: {hosts.cc: reno}", "").replace("at_least: 0.5, ", "min: 1"))  # fmt: skip
    result = run(pytester, "--plan", "two.yaml", "--testctl-out", "out", "-k", "kernel")
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["broken: kernel 4.99: no source at *", "ERROR two.yaml::two?hosts.kernel=4.99,*"])
    assert "During handling" not in result.stdout.str()
    assert [path.name for path in pytester.path.glob("out*")] == []


def test_the_raw_files_of_a_session_that_was_killed_go_at_the_next_start(pytester: pytest.Pytester) -> None:
    write(pytester)
    pytester.makeconftest("import os\ndef pytest_runtest_setup(item): os.kill(os.getpid(), 9)")
    run(pytester, "--plan", "two.yaml", "--testctl-out", "out")
    (left,) = pytester.path.glob("out*")
    assert (left / ".work").is_dir()
    (left / "points" / "cafe").mkdir()
    again = run(pytester, "--plan", "two.yaml", "--testctl-out", "new")
    assert again.ret == -9
    assert sorted(path.name for path in pytester.path.glob("*.in-progress")) == ["new.in-progress", "out.in-progress"]
    assert not (left / ".work").exists()


@pytest.mark.root
def test_what_a_testbed_cannot_have_is_skipped(pytester: pytest.Pytester) -> None:
    """The running kernel has no congestion control of that name."""
    lines = [line for line in PLAN.replace("cubic, reno", "nowhere, reno").splitlines() if "[switch" not in line]
    write(pytester, "\n".join(lines))
    words = ("--testctl-testbed", "netns", "--testctl-out", "out", "-k", "nowhere", "-rs")
    result = run(pytester, "--plan", "two.yaml", *words)
    result.assert_outcomes(skipped=1, deselected=2)
    result.stdout.fnmatch_lines(["SKIPPED *cc: want nowhere; this kernel has *"])


@pytest.mark.lab
def test_points_are_tests(pytester: pytest.Pytester) -> None:
    """On two workers: each point once, each verdict where it belongs, and a run that the report takes."""
    write(pytester)
    result = run(pytester, "--plan", "two.yaml", "--testctl-out", "out", "-n", "2", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=2)
    properties = {one.get("name") for one in ET.parse(pytester.path / "junit.xml").iter("property")}
    assert {"hosts.cc", "verdict", "bulk.throughput_bps", "bulk.saturation"} <= properties
    result.stdout.fnmatch_lines_random(
        [
            "more than there is: saturation of bulk: want at least 2; got *",
            "  hosts.cc = reno",
            "bulk: saturation *  throughput_bps *",
            "*one of them flies: 2 of 2 points fail*",
            "FAILED two.yaml::two?hosts.cc=reno? - *",
            "*/out: 1 pass  1 fail of 2; digest *",
        ]
    )
    done = load_run(pytester.path / "out")
    assert [(point.tuples[0][2], point.verdict) for point in done.points] == [("cubic", "pass"), ("reno", "fail")]
    assert [e["verdict"] for e in done.summary["expectations"]] == ["pass", "fail", "pass", "fail"]
    assert (done.path / "report.html").exists()
    assert not (done.path / ".work").exists()


@pytest.mark.lab
def test_the_runs_of_two_plans_are_below_one_directory(pytester: pytest.Pytester) -> None:
    small = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, bytes, 10kB]]\n"
    for name in ("one", "two"):
        (pytester.path / f"{name}.yaml").write_text(small)
    result = run(pytester, "--plan", "one.yaml", "--plan", "two.yaml", "--testctl-out", "out")
    result.assert_outcomes(passed=2)
    assert [load_run(pytester.path / "out" / name).summary["plan"] for name in ("one", "two")] == ["one", "two"]


def test_plans_of_one_name_have_no_directory_below_another(pytester: pytest.Pytester) -> None:
    plan = write(pytester)
    (pytester.path / "below").mkdir()
    shutil.copy(plan, pytester.path / "below" / plan.name)
    result = here(pytester, "--plan", "two.yaml", "--plan", "below/two.yaml", "--testctl-out", "out")
    result.stderr.fnmatch_lines(["ERROR: */below/two.yaml: want plans of different names; */two.yaml is named two too"])
    assert not (pytester.path / "out").exists()


@pytest.mark.lab
def test_the_smallest_plan_from_another_directory(pytester: pytest.Pytester) -> None:
    """plans/one_flow.yaml by its path; one that can't be judged is an error; what is not selected is not run."""
    shutil.copy(checkout.root() / "plans" / "one_flow.yaml", pytester.path / "flow.yaml")
    text = (pytester.path / "flow.yaml").read_text().replace("3s", "[100ms, 101ms]").replace("0.9", "0.1")
    text += "  - {name: timeouts are long, metric: timeout_length_mean_ms, min: 1, when: {bulk.duration: 101ms}}\n"
    (pytester.path / "flow.yaml").write_text(text)
    away = pytester.mkdir("away")
    result = run(pytester, "--plan", "flow.yaml", "--rootdir", str(away), "-k", "101ms", "--junitxml", "junit.xml")
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines_random(
        [
            "ERROR *flow.yaml::flow?bulk.duration=101ms? - *",
            "*invalid: timeouts are long: timeout_length_mean_ms of bulk has no value*",
        ]
    )
    (done,) = (pytester.path / "results").glob("*-flow")
    assert [point.verdict for point in load_run(done).points] == ["invalid"]
    assert 'name="hosts.cc" value="cubic"' in (pytester.path / "junit.xml").read_text()
