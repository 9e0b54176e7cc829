# SPDX-License-Identifier: Apache-2.0
"""verdict.json of a point: the verdict of the measurement, that of the plan, and the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from testctl.plan import Judgement
from testctl.results.manifest import Manifest

FORMAT = 1


@dataclass(frozen=True)
class VerdictFile:
    """The content of verdict.json.

    judged       by the expectations of its run's plan; until the run is complete, that of the measurement
    measured     the measurement alone, before any expectation
    digest       of the point's records; "" if it has none
    code_key     hash of everything besides the point that determines the raw files: kernel, agents, tgen
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
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("judged", "measured")}
        given = {name: value for name, value in rest.items() if value is not None and (value or name != "reused_from")}
        return {**given, **self.judged.to_json(), "measured": self.measured.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> VerdictFile:
        """From an object of the shape shapes.VERDICT.  Raises ValueError for an unknown verdict."""
        judged = Judgement.from_json(document)
        return cls(
            id=str(document["id"]),
            judged=judged,
            measured=Judgement.from_json(document["measured"]) if "measured" in document else judged,
            digest=str(document.get("digest") or ""),
            code_key=str(document.get("code_key") or ""),
            analysis=document.get("analysis") or {},
            wall_s=float(document.get("wall_s") or 0.0),
            virtual_s=float(document.get("virtual_s") or 0.0),
            kernel=document.get("kernel"),
            files=document.get("files"),
            reused_from=str(document.get("reused_from") or ""),
            format=document.get("format"),
        )
