# SPDX-License-Identifier: Apache-2.0
"""Verdicts as SARIF 2.1.0 (OASIS): a result for each finding, at the expectation or the plan that it is about."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from testctl.compare.verdicts import Change, JudgedCase, Verdicts
from testctl.metrics import metric_names

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = {
    "verdict": "A point's verdict",
    "digest": "The first packet at which two runs of a point part ways",
    "missing": "A point that is not run any more",
    "new": "A point that was not run before",
    "asked": "A tuple that was asked with another value",
    "samples": "Too few samples to say anything",
}


def sarif(judged: Verdicts) -> str:
    findings = [(case, finding) for case in judged.cases for finding in case.findings]
    rules = sorted({finding.rule for _, finding in findings})
    run = {
        "tool": {"driver": {"name": "testctl", "rules": [_rule(name) for name in rules]}},
        "automationDetails": {"id": judged.title},
        "columnKind": "unicodeCodePoints",
        "results": [_result(judged, case, finding, rules.index(finding.rule)) for case, finding in findings],
        "properties": {"summary": judged.summary},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def uri_of_file(name: str) -> str:
    """URI of a file: relative to the directory of the command, unless the path is absolute."""
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _rule(name: str) -> dict[str, Any]:
    info = metric_names().get(name)
    text = _HELP.get(name) or (info.help if info and info.help else name)
    return {"id": name, "shortDescription": {"text": text}}


def _result(judged: Verdicts, case: JudgedCase, finding: Change, rule: int) -> dict[str, Any]:
    point = "/".join(part for part in (case.id, finding.flow) if part)
    fingerprint = f"{case.id} {finding.flow} {finding.rule}"
    failed = case.status in ("fail", "error") and finding.direction == "worse"
    file, line = (uri_of_file(finding.place.file), finding.place.line or 1) if finding.place else (judged.plan, 1)
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": "warning" if case.status == "skip" else "error" if failed else "note",
        "message": {"text": f"{case.name}: {finding.text}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}},
                "logicalLocations": [{"fullyQualifiedName": point, "kind": "object"}],
            }
        ],
        "partialFingerprints": {"testctl/v1": hashlib.sha256(fingerprint.encode()).hexdigest()},
        "properties": {"direction": finding.direction},
    }
