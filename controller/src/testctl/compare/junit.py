# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, in the format that Jenkins and GitLab read: testsuites, testsuite, testcase."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from testctl.compare.verdicts import JudgedCase, Verdicts

_UNFIT = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_TAGS = {"fail": "failure", "error": "error", "skip": "skipped"}


def junit(judged: Verdicts) -> str:
    """The file's text.  Equal points are one case, so that their number is kept."""
    same = [JudgedCase("same", f"{judged.same} points are the same", "pass")] if judged.same else []
    cases = (*same, *judged.cases)
    counts = {
        "tests": str(len(cases)),
        "failures": str(judged.count("fail")),
        "errors": str(judged.count("error")),
        "skipped": str(judged.count("skip")),
        "time": f"{sum(case.wall_s for case in cases):.3f}",
    }
    root = ET.Element("testsuites", {"name": _fit(judged.title)} | counts)
    suite = ET.SubElement(root, "testsuite", {"name": _fit(judged.title)} | counts)
    for case in cases:
        _case(suite, case, judged.title)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, case: JudgedCase, title: str) -> None:
    name = _fit(f"{case.id} {case.name}")
    one = ET.SubElement(suite, "testcase", {"classname": _fit(title), "name": name, "time": f"{case.wall_s:.3f}"})
    lines = _fit("\n".join(f"{finding.direction}: {finding.text}" for finding in case.findings))
    if case.status == "pass":
        if lines:
            ET.SubElement(one, "system-out").text = lines
        return
    worst = [finding for finding in case.findings if finding.direction == "worse"] or list(case.findings)
    message = _fit(worst[0].text) if worst else case.status
    attributes = {"message": message} | ({} if case.status == "skip" else {"type": worst[0].rule if worst else "point"})
    ET.SubElement(one, _TAGS[case.status], attributes).text = lines


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
