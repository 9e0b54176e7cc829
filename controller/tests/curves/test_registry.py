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
    return {str(path.relative_to(SOURCE)) for path in files if re.search(tell_tale, path.read_text(encoding="utf-8"))}
