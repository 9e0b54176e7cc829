# SPDX-License-Identifier: Apache-2.0
"""What a run states of itself, in sentences: testbed, what was left out and skipped, and the noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from testctl.core.testbed_kind import DEFAULT, NETNS, kind_of
from testctl.core.words import counted


def lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(what it is about, a sentence) for each; none for a lab's run that left nothing out."""
    return [
        *_testbed(summary),
        *_left_out(summary),
        *_dropped(summary),
        *_skipped(summary),
        *_not_begun(summary),
        *_resumed(summary),
        *_noise(summary),
        *_repeats(summary),
    ]


def _testbed(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    testbed = summary.get("testbed")
    kind = kind_of(str(testbed or DEFAULT))
    if not kind.deterministic and kind.local:
        yield (
            "testbed",
            "network namespaces of the running kernel, by the wall clock: what else the machine does is in the "
            f"numbers, and digests differ from run to run; {summary.get('jobs', 1)} at once",
        )
    elif testbed:
        yield "testbed", f"the rack of {testbed}, by its hosts' clocks: digests differ from run to run; 1 at once"


def _left_out(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for entity, parameter, value in summary.get("left_out", []):
        yield "left out", f"{entity}, {parameter}, {value}: by --without {entity}.{parameter}, so it was not set"


def _dropped(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in summary.get("dropped", []):
        yield "dropped", f"expectation {name!r}: it is about what --set or --without took away"


def _skipped(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    reasons = Counter(str(p.get("reason", "")) for p in summary.get("points", []) if p.get("verdict") == "skip")
    for reason, count in reasons.most_common():
        yield "skipped", f"{count} {'point' if count == 1 else 'points'}: {reason}"


def _not_begun(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """After --fail-fast (execution/first_failure.py)."""
    if left := len(summary.get("fail_fast", {}).get("not_run", ())):
        points = f"{left} point{'s were' if left > 1 else ' was'}"
        yield "stopped", f"{points} not begun after the first failure; to run the rest, give --resume"


def _noise(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "noise" not in summary:
        return
    noise = summary["noise"]
    if noise is None:
        testbed = str(summary.get("testbed", NETNS.name))
        where, alone = ("on this machine", "") if kind_of(testbed).local else ("from here", " --jobs 1")
        yield "noise", f"not measured {where}: testctl aa PLAN --testbed {testbed}{alone}"
        return
    when = f"{noise['plan']}, {noise['started']}, {noise['repeat']} times alone"
    for metric, alone_entry in noise["alone"].items():
        low, high = alone_entry["cv_95"]
        spread = f"varies by {alone_entry['cv']:.2%} of its mean (95 %: {low:.2%} to {high:.2%})"
        yield "noise", f"{metric} {spread} where nothing was changed ({when})"
    most, jobs = int(noise["most_at_once"]), int(summary.get("jobs", 1))
    yield "noise", f"at most {most} at once without more of it" + (f"; this run had {jobs}" if jobs > most else "")


def _repeats(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    points = [(str(p.get("tuples")), str(p.get("digest") or "")) for p in summary.get("points", [])]
    again = sum(count - 1 for (_, digest), count in Counter(points).items() if digest)
    if again:
        these = f"{again} of {counted(len(points), 'point')} {'has' if again == 1 else 'have'}"
        yield "repeats", f"{these} the records of another repeat, as nothing there is random: sweep a start or a delay"


def _resumed(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which points are from earlier runs (execution/resume.py); nothing for a run that was not resumed."""
    if (entry := summary.get("resumed")) is None:
        return
    reused, total = entry.get("reused") or {}, len(summary.get("points", []))
    runs = ", ".join(f"{count} of {run}" for run, count in sorted(reused.items()))
    some = f"{sum(reused.values())} of {total} points are from earlier runs, checked: {runs}"
    yield "resumed", some if reused else f"none of {total} points is from an earlier run"
    if computed := entry.get("computed_again"):
        words = f"metrics of {len(computed)} of them were computed again from their records, by the code of now"
        yield "resumed", words
    reasons = Counter(f"{one['why']} ({one['run']})" for one in entry.get("run_again") or [])
    for why, count in reasons.most_common():
        yield "resumed", f"{count} run again: {why}"
