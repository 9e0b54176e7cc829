# SPDX-License-Identifier: Apache-2.0
"""Opens runs for a comparison, and refuses those that can't be compared, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.results import Run, layout, load_run


def open_run(path: Path) -> Run:
    """A finished run.  Raises PlanError if it does not exist, is in progress, or has no plan."""
    waiting = path.absolute().with_name(f"{path.absolute().name}{layout.IN_PROGRESS}")
    if not path.exists():
        if waiting.exists():
            raise PlanError(f"{path}: want a finished run; it is in progress ({waiting.name})")
        raise PlanError(f"{path}: want the directory of a run; there is none")
    run = load_run(path)
    if not run.complete:
        raise PlanError(f"{path}: want a finished run; it is in progress; testctl run --resume continues it")
    if not isinstance(run.summary.get("plan"), str):
        raise PlanError(f"{path}: want a run with {layout.SUMMARY} that names its plan; it has none")
    return run


def testbed_of(run: Run) -> str:
    """Where it ran: lab, netns, or an inventory."""
    return str(run.summary.get("testbed", DEFAULT))


def deterministic(run: Run) -> bool:
    """Whether any difference from this run is real."""
    return kind_of(testbed_of(run)).deterministic


def check_alike(a: Run, b: Run, across_plans: bool = False) -> None:
    """Raises PlanError unless both are of one plan and one testbed."""
    plans = [str(run.summary["plan"]) for run in (a, b)]
    if plans[0] != plans[1] and not across_plans:
        raise PlanError(
            f"{b.path}: want a run of plan {plans[0]}, as {a.path} is; got one of {plans[1]};"
            " --across-plans compares the points that they share"
        )
    beds = [testbed_of(run) for run in (a, b)]
    if beds[0] != beds[1]:
        raise PlanError(f"{b.path}: want a run on {beds[0]}, as {a.path} is; got one on {beds[1]}")


def made_with(run: Run) -> dict[str, str]:
    """Versions that a comparison lists: the code's commit and version, and kernels."""
    versions: dict[str, Any] = dict(run.summary.get("versions") or run.versions)
    kernels = versions.get("kernels")
    parts: dict[str, str] = {
        key: str(versions[key]) for key in ("commit", "testctl", "testctl_agent") if key in versions
    }
    if isinstance(kernels, dict):
        parts |= {f"kernel {name}": str(release) for name, release in kernels.items()}
    if isinstance(tree := versions.get("tree"), dict):
        parts |= {f"tree's {name}": str(tree.get(name) or "") for name in ("commit", "uncommitted", "changed", "key")}
    return parts


def versions_moved(a: Run, b: Run) -> tuple[tuple[str, str, str], ...]:
    """(name, in A, in B) of each version that differs; "" if a run has none."""
    ours, theirs = made_with(a), made_with(b)
    names = [*ours, *(name for name in theirs if name not in ours)]
    return tuple((n, ours.get(n, ""), theirs.get(n, "")) for n in names if ours.get(n) != theirs.get(n))


def doubts(a: Sequence[Run], b: Sequence[Run]) -> tuple[str, ...]:
    """Differences besides the code that may affect runs in wall-clock time, as texts."""
    reasons = []
    for what, key in (("points at once", "jobs"), ("machines", "machine")):
        sides = [sorted({_stated(run, key) for run in side}) for side in (a, b)]
        if sides[0] != sides[1]:
            reasons.append(f"other {what}: {', '.join(sides[0])} and {', '.join(sides[1])}")
    starts = [[str(run.summary.get("started", "")) for run in side] for side in (a, b)]
    if max(starts[0]) < min(starts[1]) or max(starts[1]) < min(starts[0]):
        reasons.append(
            "the runs were not interleaved: changes of the machine between them look like changes of the code"
        )
    return tuple(reasons)


def _stated(run: Run, key: str) -> str:
    return str(run.summary.get(key) or (run.summary.get("versions") or {}).get(key) or "unknown")
