# SPDX-License-Identifier: Apache-2.0
"""verdict.json of a point: what was measured and what was judged, apart, and what the point's other files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from testctl.plan import Judgement
from testctl.results.manifest import Manifest

FORMAT = 1


@dataclass(frozen=True)
class VerdictFile:
    """What verdict.json says.

    judged       by the expectations of its run's plan; until all points are there, what was measured
    measured     the measurement alone, before any expectation
    digest       of the point's records; "" where it has none
    code_key     what, besides the point, determines the raw files: kernel, agents, tgen
    analysis     hashes of the code that made the other files: {"records": …, "metrics": …}
    kernel       the release of the kernel that ran, "" where none did; None: not known
    files        the manifest; None: there is none
    reused_from  the run that measured the point, where that was an earlier one
    format       FORMAT, or what another version of testctl wrote
    """

    id: str
    judged: Judgement
    measured: Judgement
    digest: str = ""
    code_key: str = ""
    analysis: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 0.0
    virtual_s: float = 0.0
    kernel: str | None = None
    files: Manifest | None = None
    reused_from: str = ""
    format: int | None = FORMAT

    def to_json(self) -> dict[str, Any]:
        rest = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("judged", "measured")}
        given = {name: value for name, value in rest.items() if value is not None and (value or name != "reused_from")}
        return {**given, **self.judged.to_json(), "measured": self.measured.to_json()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> VerdictFile:
        """That of an object which has the shape shapes.VERDICT.  Raises ValueError for a verdict that is none."""
        judged = Judgement.from_json(found)
        return cls(
            id=str(found["id"]),
            judged=judged,
            measured=Judgement.from_json(found["measured"]) if "measured" in found else judged,
            digest=str(found.get("digest") or ""),
            code_key=str(found.get("code_key") or ""),
            analysis=found.get("analysis") or {},
            wall_s=float(found.get("wall_s") or 0.0),
            virtual_s=float(found.get("virtual_s") or 0.0),
            kernel=found.get("kernel"),
            files=found.get("files"),
            reused_from=str(found.get("reused_from") or ""),
            format=found.get("format"),
        )
