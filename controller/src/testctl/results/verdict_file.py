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
    kernel       the release of the kernel that ran, "" where none did; None: not read
    files        the manifest; None: not read
    reused_from  the run that measured the point, where that was an earlier one
    format       FORMAT; the reader of runs refuses any other, and reuse does not use its points
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
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("judged", "measured")}
        given = {name: value for name, value in rest.items() if value is not None and (value or name != "reused_from")}
        return {**given, **self.judged.to_json(), "measured": self.measured.to_json()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> VerdictFile:
        """From an object of the shape shapes.VERDICT.  Raises ValueError for an unknown verdict."""
        rest = {f.name: document[f.name] for f in fields(cls) if f.name in document and f.name != "measured"}
        return cls(judged=Judgement.from_json(document), measured=Judgement.from_json(document["measured"]), **rest)
