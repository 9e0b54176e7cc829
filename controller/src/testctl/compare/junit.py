# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, in the format that Jenkins and GitLab read: testsuites, testsuite, testcase."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from testctl.compare.terminal import same_points
from testctl.compare.verdicts import Change, JudgedCase, Verdicts

_UNFIT = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_TAGS = {"fail": "failure", "error": "error", "skip": "skipped"}


def junit(judged: Verdicts) -> str:
    """The file's text.  Equal points are one case, so that their number is kept."""
    same = [JudgedCase("same", same_points(judged.same), "pass")] if judged.same else []
    cases = (*same, *judged.cases)
    counts = {
        "tests": str(len(cases)),
        "failures": str(judged.count("fail")),
        "errors": str(judged.count("error")),
        "skipped": str(judged.count("skip")),
        "time": f"{sum(case.wall_s for case in cases):.3f}",
    }
    root = ET.Element("testsuites", {"name": _fit(judged.title)} | counts)
    name = judged.suite or judged.title
    suite = ET.SubElement(root, "testsuite", {"name": _fit(name)} | counts)
    for case in cases:
        # An id changes with every value of a point; the history of a test is kept by its name.
        _case(suite, case, name, case.name if judged.suite else f"{case.id} {case.name}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, case: JudgedCase, classname: str, name: str) -> None:
    place = next((finding.place for finding in case.findings if finding.place), None)
    at = {"file": _fit(place.file), "line": str(place.line)} if place else {}
    attributes = {"classname": _fit(classname), "name": _fit(name), "time": f"{case.wall_s:.3f}"} | at
    element = ET.SubElement(suite, "testcase", attributes)
    if case.properties:
        properties = ET.SubElement(element, "properties")
        for key, value in case.properties:
            ET.SubElement(properties, "property", {"name": _fit(key), "value": _fit(value)})
    lines = _fit("\n".join(_line(finding) for finding in case.findings))
    if case.status == "pass":
        if lines:
            ET.SubElement(element, "system-out").text = lines
        return
    worst = [finding for finding in case.findings if finding.direction == "worse"] or list(case.findings)
    message = _fit(worst[0].text) if worst else case.status
    attributes = {"message": message} | ({} if case.status == "skip" else {"type": worst[0].rule if worst else "point"})
    ET.SubElement(element, _TAGS[case.status], attributes).text = lines


def _line(finding: Change) -> str:
    """A finding with its place, as compilers write theirs."""
    return f"{finding.place}: {finding.text}" if finding.place else f"{finding.direction}: {finding.text}"


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
