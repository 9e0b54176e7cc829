# SPDX-License-Identifier: Apache-2.0
"""Every curve is complete, and each rule about curves is written once."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import testctl
import testctl.curves
from testctl.curves import CurveSpec, curves
from testctl.curves.core.registry import CurveError, member

SOURCE = Path(testctl.__file__).parent


def test_every_file_is_a_curve_of_its_name() -> None:
    here = Path(testctl.curves.__file__).parent
    assert set(curves()) == {path.stem for path in here.glob("*.py")} - {"__init__"}
    assert [one.spec.place for one in curves().values()] == sorted(one.spec.place for one in curves().values())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (SimpleNamespace(), "curves/x: want SPEC, a CurveSpec; got NoneType"),
        (SimpleNamespace(SPEC=CurveSpec("y", "v", "last")), "want SPEC.name 'x', the file's name; got 'y'"),
        (SimpleNamespace(SPEC=CurveSpec("x", "v", "last")), r"want a function compute\(flow\); got NoneType"),
    ],
)
def test_what_a_file_lacks_is_named(module: object, words: str) -> None:
    with pytest.raises(CurveError, match=words):
        member("x", module)


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def test_the_core_of_metrics_and_curves_imports_none_of_them() -> None:
    for package in ("metrics", "curves"):
        own = f"testctl.{package}."
        for path in (SOURCE / package / "core").glob("*.py"):
            leaves = {name for name in imported(path) if name.startswith(own) and not name.startswith(f"{own}core")}
            assert not leaves, f"{path.name} imports {leaves}"


def places(tell_tale: str) -> set[str]:
    """The files whose text has it."""
    files = [path for suffix in ("py", "js") for path in SOURCE.rglob(f"*.{suffix}")]
    return {
        str(path.relative_to(SOURCE))
        for path in files
        if re.search(tell_tale, path.read_text(encoding="utf-8"), re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("rule", "tell_tale", "home"),
    [
        ("which direction carries data", r"carried\[1\] > carried\[0\]", {"metrics/core/view.py"}),
        ("which rows are data packets", r"sent if len\(\w+\.sent\) else", {"metrics/core/view.py"}),
        ("which rows are ACKs", r"acks_in if len\(\w+\.acks_in\) else", {"metrics/core/view.py"}),
        ("what a throughput is drawn of", r"into if len\(\w+\.into\) else", {"metrics/core/view.py"}),
        ("where the axis of a point ends", r"_A_LITTLE =|ends_by_itself\(one\)", {"curves/core/window.py"}),
        ("when a flow ends", r"or OTHERWISE|_ESTIMATE_BPS|\.startswith\(.schedule", set()),
        ("how a line is thinned", r"maximum\.reduceat\(value|extreme\.reduceat|arg_min", {"curves/core/thin.py"}),
        ("a logarithmic axis", r"OUTLYING \*", {"curves/core/figure.py"}),
        ("how many lines a figure has", r"\[:MAX_LINES\]", {"curves/core/figure.py"}),
        ("all metrics of a point as a table", r"\{metric for values in point\.metrics\.values", {"report/metrics.py"}),
    ],
)
def test_a_rule_is_written_once(rule: str, tell_tale: str, home: set[str]) -> None:
    assert places(tell_tale) == home, rule


@pytest.mark.parametrize("package", ["report", "serve", "cli", "api.py"])
def test_what_draws_and_prints_asks_the_engine(package: str) -> None:
    """Packets are cut into curves in testctl/curves alone; stalls and fates list single packets."""
    root = SOURCE / package
    for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
        if path.name in ("stalls.py", "fates.py", "trace.py"):
            continue
        raw = {
            name for name in imported(path) if name.startswith(("testctl.metrics.core.", "testctl.metrics.recovery."))
        }
        assert raw <= {"testctl.metrics.recovery.measure"}, f"{path.relative_to(SOURCE)}: {raw}"
