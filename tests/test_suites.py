# SPDX-License-Identifier: Apache-2.0
"""tools/suites.py runs all tests of a suite, and knows the files that they depend on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import suites

ROOT = Path(__file__).parents[1]


def test_a_failure_hides_no_other_test(tmp_path: Path) -> None:
    for name, mark, body in (("alone", "@pytest.mark.alone\n", "assert False"), ("other", "", "assert True")):
        test = f"import pytest\n{mark}def test_{name}(request): request.path.with_suffix('.ran').touch(); {body}\n"
        (tmp_path / f"test_{name}.py").write_text(test)
    suite = suites.Suite((str(tmp_path),), "not long", arguments=("-c", str(ROOT / "pyproject.toml")))
    assert not suite.passes("0")
    assert sorted(path.name for path in tmp_path.glob("*.ran")) == ["test_alone.ran", "test_other.ran"]
    (tmp_path / "test_alone.py").unlink()
    assert suite.passes("0")


@pytest.mark.parametrize(("limits", "order"), [({}, ["alone", "other"]), ({suites.UNTIL: "inf"}, ["other", "alone"])])
def test_tests_that_want_the_machine_leave_the_others_their_time(
    tmp_path: Path, limits: dict[str, str], order: list[str]
) -> None:
    for name, mark in (("alone", "@pytest.mark.alone\n"), ("other", "")):
        body = f"(request.path.parent / 'ran').open('a').write('{name}\\n')"
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n{mark}def test_{name}(request): {body}\n")
    config = ("-c", str(ROOT / "pyproject.toml"), "-W", "ignore::ResourceWarning")
    assert suites.Suite((str(tmp_path),), "not long", arguments=config, environment=limits).passes("0")
    assert (tmp_path / "ran").read_text().split() == order


@pytest.mark.parametrize(
    ("suite", "file"),
    [
        ("rack", "plugins/rack/tests/rack/bed.py"),  # its own
        ("machines", "agents/tests/daemon/daemons.py"),  # a module of other tests
        ("rack", "controller/src/testctl/records/rows.py"),  # a package, through others
        ("influx", "controller/tests/support/synthetic.py"),
        ("core", "plugins/rack/tests/rack/test_smoke.py"),
    ],
)
def test_what_a_suite_depends_on(suite: str, file: str) -> None:
    assert (ROOT / file).is_file()
    assert file in suites.suites()[suite].files()


def test_a_file_that_is_not_committed_yet_is_one_of_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for name in ("tést a.py", "made.pyc"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    assert sorted(suites.tracked(".")) == [".gitignore", "tést a.py"]


def test_what_a_suite_does_not_depend_on() -> None:
    files = suites.suites()["p4c_ebpf"].files()
    assert not [file for file in files if file.startswith(("controller/", "plugins/rack/"))]


def test_suites_that_passed_longest_ago_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suites, "PASSED", tmp_path)
    monkeypatch.setattr(suites.Suite, "digest", lambda suite: "digest")
    monkeypatch.setattr(suites.Suite, "passes", lambda suite, testers: True)
    for minutes, ended in (("0", ": not run, 0 minutes are over"), ("1", "")):
        for name, passed_s in (("6.1", 1000), ("long", 2000)):
            (tmp_path / name).write_text("another digest")
            os.utime(tmp_path / name, (passed_s, passed_s))
        monkeypatch.setattr("sys.argv", ["suites.py", "--minutes", minutes, "core", "long", "6.1"])
        suites.main()
        assert capsys.readouterr().out.splitlines() == [f"suite {name}{ended}" for name in ("core", "6.1", "long")]


def test_a_suite_that_the_time_cuts_is_of_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "PASSED", tmp_path)
    monkeypatch.setattr(suites.Suite, "digest", lambda suite: "digest")
    for late, written in ((False, "digest"), (True, suites.IN_PART)):

        def passes(suite: suites.Suite, testers: str, late: bool = late) -> bool:
            until = float(suite.environment["TESTCTL_TESTS_UNTIL"])
            monkeypatch.setattr("time.time", lambda: until + late)
            return True

        monkeypatch.setattr(suites.Suite, "passes", passes)
        monkeypatch.setattr("sys.argv", ["suites.py", "--minutes", "1", "long"])
        suites.main()
        assert (tmp_path / "long").read_text() == written
    assert "TESTCTL_TESTS_UNTIL" not in os.environ, "other tests of this process would be skipped"


def test_no_test_begins_after_the_time_and_files_change_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcdefgh":
        test = (
            f"def test_{name}(request):\n    with (request.path.parent / 'ran').open('a') as ran: ran.write('{name}')"
        )
        (tmp_path / f"test_{name}.py").write_text(test)
    suite = suites.Suite((str(tmp_path),), "not long", arguments=("-c", str(ROOT / "pyproject.toml"), "-p", "conftest"))
    orders = []
    for seed in ("", "1", "2", "2"):
        monkeypatch.setenv("TESTCTL_TESTS_ORDER", seed)
        assert suite.passes("0")
        orders.append((tmp_path / "ran").read_text())
        (tmp_path / "ran").unlink()
    assert orders[0] == "abcdefgh"
    assert [sorted(order) for order in orders] == [sorted("abcdefgh")] * 4
    assert orders[1] not in orders[::2]
    assert orders[2] == orders[3] != orders[0]
    monkeypatch.setenv("TESTCTL_TESTS_UNTIL", "0")
    assert suite.passes("0")
    assert not (tmp_path / "ran").exists()


def test_a_rack_of_machines_is_torn_down_last_in_any_order_of_files() -> None:
    argv = [sys.executable, "-m", "pytest", suites.MACHINES, "-m", "machines", "--collect-only", "-q"]
    for seed in ("1", "2"):
        environment = os.environ | {"TESTCTL_TESTS_ORDER": seed, "TESTCTL_MACHINES": "ci"}
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        tests = [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]
        assert "test_a_killed_agent_is_started_again_and_restores" in tests
        assert [test for test in tests if "teardown" in test] == tests[-1:]
