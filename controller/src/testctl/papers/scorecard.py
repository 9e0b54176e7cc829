# SPDX-License-Identifier: Apache-2.0
"""The scorecard: the claims of several finished runs, and which of them lack an explanation.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl.plan import CLAIM_VERDICTS, Claim
from testctl.report.claims import claims_of
from testctl.results import Run, run_digest

_BROKEN = frozenset({"broken", "invalid"})


@dataclass(frozen=True)
class Scorecard:
    """The results of the papers' claims.

    started   UTC, as in summary.json
    kernel    the kernel that every point ran on; "": the plans' own kernels
    """

    runs: Sequence[Run]
    started: str
    wall_s: float
    versions: Mapping[str, Any]
    kernel: str = ""

    @property
    def claims(self) -> list[Claim]:
        return [claim for run in self.runs for claim in claims_of(run.summary)]

    @property
    def digest(self) -> str:
        """sha256 over sorted lines `<plan> <digest of its run>`, one per plan."""
        return run_digest((str(run.summary["plan"]), run.digest) for run in self.runs)

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(claim.verdict for claim in self.claims)
        return {verdict: counted[verdict] for verdict in CLAIM_VERDICTS}

    @property
    def broken(self) -> list[str]:
        """Points that are broken or invalid, and expectations that can't be judged."""
        lines = []
        for run in self.runs:
            plan = run.summary["plan"]
            points = [f"{plan}: point {p.id} is {p.verdict}: {p.reason}" for p in run.points if p.verdict in _BROKEN]
            lines += points or [
                f"{plan}: {e['name']}: {e['detail']}"
                for e in run.summary.get("expectations", [])
                if e["verdict"] in _BROKEN
            ]
        return lines

    @property
    def open(self) -> list[str]:
        """Claims without a verdict or a reason, and failed expectations of the plans."""
        lines = [f"{claim.plan}: {claim.claim}: {claim.open}" for claim in self.claims if claim.open]
        for run in self.runs:
            properties = {claim.claim for claim in claims_of(run.summary) if not claim.numeric}
            lines += [
                f"{run.summary['plan']}: {e['name']}: {e['detail']}"
                for e in run.summary.get("expectations", [])
                if e["verdict"] == "fail" and e["name"] not in properties
            ]
        return lines

    @property
    def exit_code(self) -> int:
        """0: every claim has a verdict and every difference a reason; 1: some do not; 3: broken or invalid points."""
        return 3 if self.broken else 1 if self.open else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "started": self.started,
            "wall_s": round(self.wall_s, 3),
            "kernel": self.kernel,
            "exit_code": self.exit_code,
            "counts": self.counts,
            "broken": self.broken,
            "open": self.open,
            "claims": [claim.to_json() for claim in self.claims],
            "plans": [
                {
                    "plan": run.summary["plan"],
                    "about": run.summary.get("about", ""),
                    "run": str(run.path),
                    "digest": run.digest,
                    "wall_s": run.summary.get("wall_s"),
                    "points": run.summary.get("counts", {}),
                }
                for run in self.runs
            ],
            "versions": dict(self.versions),
        }
