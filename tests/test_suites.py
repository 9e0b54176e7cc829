# SPDX-License-Identifier: Apache-2.0
"""tools/suites.py runs all tests of a suite, and knows the files that they depend on."""

from __future__ import annotations

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


def test_what_a_suite_does_not_depend_on() -> None:
    files = suites.suites()["p4c_ebpf"].files()
    assert not [file for file in files if file.startswith(("controller/", "plugins/rack/"))]
