# SPDX-License-Identifier: Apache-2.0
"""How far the closest candidate and the capture go together, and what remains unexplained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testctl.reproduce.align import WITHIN, sums_words
from testctl.reproduce.infer import Inferred
from testctl.reproduce.search import Trial


def result_text(inferred: Inferred, trials: Sequence[Trial], closest: Trial | None, plan: Path | None) -> str:
    if closest is None or closest.alignment is None:
        return f"none of {len(trials)} candidates could be run"
    lines = [f"closest of {len(trials)}: {closest.text()}"]
    for name, sums in closest.alignment.sums.items():
        apart = closest.alignment.apart.get(name)
        verdict = f"more than {WITHIN:.0%} apart: {', '.join(apart)}" if apart else f"within {WITHIN:.0%}"
        lines.append(f"{name}: {sums_words(sums)} ({verdict})")
    lines += [f"as close by data packets: {_values(trial)}" for trial in _alike(trials, closest)]
    lines += [f"not reproduced: {text}" for text in _unknown(inferred, closest)]
    lines.append("other causes of the same packets can't be excluded")
    return "\n".join([*lines, *([f"wrote {plan}"] if plan else [])])


def _alike(trials: Sequence[Trial], closest: Trial | None) -> list[Trial]:
    """Other candidates that are as close by data packets."""
    return [
        trial
        for trial in trials
        if closest and trial is not closest and trial.alignment and trial.rank[:2] == closest.rank[:2]
    ]


def _unknown(inferred: Inferred, closest: Trial | None) -> list[str]:
    """Everything that no candidate has."""
    if closest is None or closest.alignment is None or closest.alignment.whole:
        return list(inferred.unknown)
    why = "the cause of the first difference; most often a pause of the application while its socket held unsent data"
    return [*inferred.unknown, why]


def _values(trial: Trial) -> str:
    return " ".join(f"{name}={value}" for name, value in trial.values.items())


def to_json(inferred: Inferred, trials: Sequence[Trial], closest: Trial | None, plan: Path | None) -> dict[str, Any]:
    """The same as JSON, with every candidate."""
    return {
        "plan": str(plan) if plan else None,
        "closest": dict(closest.values) if closest else None,
        "as_close": [dict(trial.values) for trial in _alike(trials, closest)],
        "unknown": _unknown(inferred, closest),
        "trials": [
            {
                "values": dict(trial.values),
                "why_not": trial.why,
                "alignment": asdict(trial.alignment) | {"apart": trial.alignment.apart} if trial.alignment else None,
            }
            for trial in trials
        ],
    }
