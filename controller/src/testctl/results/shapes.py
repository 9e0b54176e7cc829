# SPDX-License-Identifier: Apache-2.0
"""Shapes of a run's JSON files, as far as they are read: a run may be foreign."""

from __future__ import annotations

from testctl_agent.spec.untrusted import Named
from testctl_agent.wire.results import P4_STATE_FILE

TEXT = (str, None)
NUMBER = (float, None)
VALUES = Named(Named((float, str, bool, None)))
"""{flow: {metric: value}}"""
TUPLES = [[object, object, object]]

ANSWERS = Named(Named({"verdict": str, "text?": str, "gap?": float, "time_ns?": int, "conn?": int}))
"""{condition: {flow: answer}}"""

FATES = {
    "fates": [
        {
            "switch": str,
            "rule": str,
            "flow": str,
            "conn": int,
            "asked": int,
            "happened": int,
            "which": str,
            "note": str,
            "fault": str,
        }
    ]
}
VIOLATIONS = {
    "violations": [
        {
            "rule": str,
            "flow": str,
            "host": str,
            "count": int,
            "first": [{"conn": int, "time_ns": int, "packets": [int], "text": str}],
        }
    ]
}
RECORDS = {"counters": Named({"program?": P4_STATE_FILE})}
POINT = {"id?": str, "tuples?": TUPLES, "repeat?": int}
VERDICT = {
    "format": int,
    "id": str,
    "verdict": str,
    "reason": str,
    "measured": {"verdict": str, "reason": str},
    "digest": str,
    "code_key": str,
    "analysis": Named(str),
    "kernel": str,
    "files": Named({"size": int, "sha256": str}),
    "wall_s": float,
    "virtual_s": float,
    "reused_from?": str,
}
CERTIFY = {
    "cc": str,
    "kernel": TEXT,
    "started": str,
    "criteria": [{"level": str, "results": Named({"verdict": str})}],
}
"""scorecard.json of `testctl certify`."""
PAPERS = {"kernel?": TEXT, "started": str, "counts": Named(int), "plans": [object]}
"""scorecard.json of `testctl papers`."""
ENTRY = {
    "id": str,
    "verdict": str,
    "reason?": str,
    "digest?": str,
    "tuples": TUPLES,
    "metrics?": (VALUES, None),
    "wall_s?": NUMBER,
    "virtual_s?": NUMBER,
    "reused_from?": str,
}
"""A point in summary.json."""
NOISE = {
    "machine": object,
    "testbed": str,
    "plan": str,
    "started": str,
    "repeat": int,
    "alone": Named({"cv": float, "cv_95": [float, float]}),
    "most_at_once": int,
}
"""noise.json, which the A/A test of a testbed writes."""
CLAIM = {
    "plan": str,
    "claim": str,
    "source": str,
    "metric": str,
    "than": str,
    "want": str,
    "published": (float, str),
    "within": NUMBER,
    "ours": {"mean": NUMBER, "least": NUMBER, "most": NUMBER, "text": str, "points": int, "selected": int},
    "difference_percent": NUMBER,
    "verdict": str,
    "why": str,
    "found": str,
}
HEAD = {
    "run?": str,
    "plan?": TEXT,
    "about?": TEXT,
    "reproduce?": TEXT,
    "digest?": TEXT,
    "started?": TEXT,
    "testbed?": TEXT,
    "wall_s?": NUMBER,
    "jobs?": int,
    "noise?": (NOISE, None),
    "fail_fast?": {"not_run": [object]},
    "counts?": (Named(int), None),
    "expectations?": (
        [
            {
                "name": str,
                "verdict": str,
                "detail?": str,
                "metric?": str,
                "points?": [str],
                "at?": str,
                "alone?": bool,
                "bounds?": Named(float),
            }
        ],
        None,
    ),
    "claims?": ([CLAIM], None),
    "overrides?": [str],
    "left_out?": TUPLES,
    "dropped?": [str],
    "resumed?": {"reused": Named(int), "computed_again": [str], "run_again": [{"point": str, "run": str, "why": str}]},
    "versions?": (Named((str, Named((str, None)), None)), None),
}
SUMMARY = HEAD | {"points?": [{"id": str}]}
