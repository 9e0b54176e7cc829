# SPDX-License-Identifier: Apache-2.0
"""How long plans take on this machine, from the runs made here; `testctl plan` scales its estimate by that.

The estimate of a plan (testctl.plan.cost) is for a reference machine.  The file pace.json in the cache keeps
how long the last run of each plan took, and its estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from testctl_agent.spec import untrusted
from testctl_agent.spec.untrusted import Named, misfit
from testctl_agent.system import durable

from testctl.core.testbed_kind import kind_of
from testctl.plan import Plan
from testctl.plan.cost import cost_ms
from testctl.results import Run
from testctl.system import checkout

FILE = "pace.json"
PLANS = 300
"""Plans that are kept: those run last."""
OTHERS = 20
"""Other plans of a testbed whose times are used for a plan that was never run here."""

_SHAPE = Named({"testbed": str, "took_s": float, "estimate_s": float})
"""Plan and testbed -> the time of its last run here, and its estimate."""


def learn(plan: Plan, run: Run) -> None:
    """Keep the time of the computed points of a run, if there is one and the cache can be written."""
    estimates = {point.id: cost_ms(point, plan.testbed) / 1000 for point in plan.points}
    computed = [
        point for point in run.points
        if point.id in estimates and point.verdict not in ("skip", "broken") and not point.verdict_file.reused_from
    ]  # fmt: skip
    took, estimate = sum(point.wall_s for point in computed), sum(estimates[point.id] for point in computed)
    if not took or not estimate:
        return
    known = dict(_read())
    known.pop(_key(plan), None)  # the newest is the last
    known[_key(plan)] = {"testbed": _kind(plan), "took_s": round(took, 3), "estimate_s": round(estimate, 3)}
    with suppress(OSError):
        path = _path()
        durable.make_directory(path.parent)
        durable.write(path, json.dumps(dict(list(known.items())[-PLANS:]), indent=1).encode())


def pace(plan: Plan) -> tuple[float, str]:
    """(factor of the estimate, its source); (1, "") where nothing was run here."""
    known = _read()
    if (own := known.get(_key(plan))) is not None:
        return own["took_s"] / own["estimate_s"], "by its last run here"
    others = [entry for entry in known.values() if entry["testbed"] == _kind(plan)][-OTHERS:]
    if not others:
        return 1.0, ""
    took, estimate = (sum(entry[name] for entry in others) for name in ("took_s", "estimate_s"))
    return took / estimate, "by the last runs here"


def _read() -> Mapping[str, Any]:
    try:
        content = untrusted.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(content, dict) and not misfit(content, _SHAPE)
    return {key: entry for key, entry in content.items() if entry["estimate_s"] > 0} if whole else {}


def _path() -> Path:
    return checkout.cache_dir() / FILE


def _kind(plan: Plan) -> str:
    return kind_of(plan.testbed).name


def _key(plan: Plan) -> str:
    """Its name, not its digest: an edited plan takes about as long for its estimate as it did before."""
    return f"{plan.name} {_kind(plan)}"
