# SPDX-License-Identifier: Apache-2.0
"""Verdict files have the format of their readers: parsed again, counted, and compared with the shape of each format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.compare import compare_runs, judge_runs, of_run, uri_of, verdicts_of, write_verdicts
from testctl.compare.junit import junit
from testctl.compare.markdown import MAX, markdown
from testctl.compare.sarif import sarif
from testctl.compare.verdicts import Change, JudgedCase, Verdicts
from testctl_agent.spec.errors import PlanError

from controller.tests.compare.written import TUPLES, Given, write_run

POINT = Given()
TEXT: Mapping[str, Any] = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
SARIF: Mapping[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/run"}},
    },
    "additionalProperties": False,
    "$defs": {
        "run": {
            "required": ["tool"],
            "properties": {
                "tool": {
                    "required": ["driver"],
                    "properties": {"driver": {"required": ["name"], "properties": {"rules": {
                        "type": "array", "uniqueItems": True,
                        "items": {"required": ["id"], "properties": {"shortDescription": TEXT}},
                    }}}},
                },
                "automationDetails": {"required": ["id"]},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                "properties": {"type": "object"},
            },
            "additionalProperties": False,
        },
        "result": {
            "required": ["message"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": TEXT,
                "locations": {"type": "array", "items": {"properties": {
                    "physicalLocation": {"required": ["artifactLocation"], "properties": {
                        "artifactLocation": {"required": ["uri"], "properties": {"uri": {"minLength": 1}}},
                        "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
                    }},
                    "logicalLocations": {"type": "array", "items": {"properties": {
                        "fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}}}},
                }, "additionalProperties": False}},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                "properties": {"type": "object"},
            },
            "additionalProperties": False,
        },
    },
}  # fmt: skip
"""The parts of the OASIS schema of SARIF 2.1.0 that are used here."""


def checked_sarif(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    jsonschema.validate(found, SARIF)
    (run,) = found["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run  # type: ignore[no-any-return]


JUNIT_TAGS = ("failure", "error", "skipped", "system-out")


def checked_junit(text: str) -> ET.Element:
    root = ET.fromstring(text.encode())
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert {case.tag for case in suite} <= {"testcase"}
    assert all(case.get("name") and case.get("classname") is not None for case in suite)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[name]) == int(root.attrib[name]) == len(suite.findall(f"testcase/{tag}"))
    assert int(suite.attrib["tests"]) == len(suite)
    for case in suite:  # the order of the schema that Jenkins publishes
        tags = [child.tag for child in case]
        assert [tag for tag in tags if tag != "properties"] in ([], *([tag] for tag in JUNIT_TAGS))
        assert tags.index("properties") == 0 if "properties" in tags else True
    return suite


@pytest.fixture
def compared(tmp_path: Path) -> Verdicts:
    other = (("hosts", "cc", "bbr"), TUPLES[1])
    points = [
        POINT,
        replace(POINT, id="a1", tuples=other),
        replace(POINT, id="a2", repeat=2),
        replace(POINT, id="a3", repeat=3),
    ]
    a = write_run(tmp_path / "a", points)
    slower = replace(points[1], metrics={"throughput_bps": 9e8, "wire_bytes": 1000}, packets=[{"seq": 7}])
    b = write_run(tmp_path / "b", [points[0], slower, replace(points[2], metrics={"throughput_bps": 2e9}, packets=[])])
    return verdicts_of(compare_runs(a, b), uri_of(tmp_path / "b"))


def test_a_comparison_in_all_forms(compared: Verdicts, tmp_path: Path) -> None:
    suite = checked_junit(junit(compared))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    failures = [case.find("failure") for case in suite]
    messages = [one.get("message") for one in failures if one is not None]
    assert messages == ["bulk throughput_bps: 1 Gb/s → 900 Mb/s (-10 %)", "the point is not in b"]
    run = checked_sarif(sarif(compared))
    worse = [r for r in run["results"] if r["level"] == "error"]
    assert [r["ruleId"] for r in worse] == ["throughput_bps", "missing"]
    place = worse[0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "b/plan.yaml").as_uri()
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "a1/bulk"
    page = markdown(compared).splitlines()
    assert page[2] == "**worse**: 1 point is the same, 2 differ"
    worse_row = "| worse | `a1` | hosts.cc=bbr switch.delay=5ms | bulk throughput\\_bps: 1 Gb/s → 900 Mb/s"
    assert page[6].startswith(worse_row)
    assert sum(line.startswith("| better ") for line in page) == 1


def test_metrics_that_decide_nothing_are_notes_behind_what_failed(tmp_path: Path) -> None:
    points = [replace(POINT, metrics={"throughput_bps": 1e9, "recovery_segments_sent": 1, "rtt_max_us": 7.0}),
              replace(POINT, id="a1", repeat=1)]  # fmt: skip
    after = [replace(points[0], metrics={"throughput_bps": 1e9, "rtt_max_us": 8.0}),
             replace(points[1], metrics={"throughput_bps": 9e8})]  # fmt: skip
    said = verdicts_of(compare_runs(write_run(tmp_path / "a", points), write_run(tmp_path / "b", after)), "plan.yaml")
    assert [(case.id, case.status) for case in said.cases] == [("a0", "pass"), ("a1", "fail")]
    levels = {result["ruleId"]: result["level"] for result in checked_sarif(sarif(said))["results"]}
    assert levels == {"rtt_max_us": "note", "throughput_bps": "error"}
    rows = [line for line in markdown(said).splitlines() if line.startswith("| worse")]
    assert ["throughput" in row for row in rows] == [True, False]


def test_a_page_with_many_findings_says_what_is_not_in_it() -> None:
    found = [Change("drops", "worse", f"worse {n}") for n in range(MAX - 1)]
    found += [Change("drops", "better", f"better {n}") for n in range(3)] + [Change("x", "other", "other")] * 4
    page = markdown(Verdicts("t", "p", "s", (JudgedCase("a0", "n", "fail", tuple(found)),))).splitlines()
    assert f"The worst {MAX} of {MAX + 6} findings:" in page
    assert sum(line.startswith("| worse ") for line in page) == MAX - 1
    assert sum(line.startswith("| better ") for line in page) == 1
    assert page[-1] == "… and 6 more that are not in this table: 2 better, 4 other"


def test_equal_runs_in_all_forms(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, [POINT]) for name in "ab")
    said = verdicts_of(compare_runs(a, b), "plan.yaml")
    assert [case.get("name") for case in checked_junit(junit(said))] == ["same 1 point is the same"]
    assert checked_sarif(sarif(said))["results"] == []
    assert "**no point is worse**: no difference: 1 point is the same" in markdown(said)


def test_statistics_in_all_forms(tmp_path: Path) -> None:
    def points(mean: float) -> list[Given]:
        return [
            Given(f"a{n}", metrics={"throughput_bps": mean + n, "drops": 0}, packets=None, repeat=n) for n in range(8)
        ]

    a, b = (write_run(tmp_path / n, points(mean), testbed="netns") for n, mean in (("a", 1000), ("b", 900)))
    suite = checked_junit(junit(verdicts_of(judge_runs([a], [b]), "plan.yaml")))
    (failure,) = suite.findall("testcase/failure")
    assert "bulk throughput_bps: 1.0035 kb/s → 903.5 bit/s (-9.97 %, 95 %: " in str(failure.get("message"))
    none, some = (
        write_run(
            tmp_path / str(n),
            [replace(one, metrics={"drops": n + n * one.repeat}) for one in points(1)],
            testbed="netns",
        )
        for n in (0, 9)
    )
    (worse,) = verdicts_of(judge_runs([none], [some]), "plan.yaml").cases
    assert worse.findings[0].text.startswith("bulk drops: 0 → 40.5 (p 0.0")
    few = verdicts_of(judge_runs([write_run(tmp_path / "c", points(1)[:1], testbed="netns")], [a]), "plan.yaml")
    assert checked_junit(junit(few)).get("skipped") == "1"
    assert [r["level"] for r in checked_sarif(sarif(few))["results"]] == ["warning"]


def test_one_run_in_all_forms(tmp_path: Path) -> None:
    verdicts = ("pass", "fail", "invalid", "skip", "broken")
    run = write_run(
        tmp_path / "a", [replace(POINT, id=v, verdict=v, reason="why", repeat=i) for i, v in enumerate(verdicts)]
    )
    files = {form: tmp_path / form for form in ("junit", "sarif", "markdown")}
    write_verdicts(of_run(run, "plan.yaml"), files)
    suite = checked_junit(files["junit"].read_text())
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "2", "1"]
    assert len(checked_sarif(files["sarif"].read_text())["results"]) == 4
    assert "invalid: why" in files["markdown"].read_text()
    with pytest.raises(PlanError, match=r"--junit .*nowhere/x: can't write it"):
        write_verdicts(of_run(run, "plan.yaml"), {"junit": tmp_path / "nowhere" / "x"})


def test_a_failure_has_the_place_of_its_expectation_and_the_metrics(tmp_path: Path) -> None:
    fast, slow = POINT, replace(POINT, id="a1", tuples=(("hosts", "cc", "bbr"), TUPLES[1]), verdict="fail",
                                reason="full: saturation of bulk: want at least 0.9; got 0.2",
                                metrics={"latency_p99_us": 2500, "throughput_bps": 2e8, "saturation": 0.2, "jain": None,
                                         "wire_bytes": 7})  # fmt: skip
    expected = [
        {"name": "full", "metric": "saturation", "verdict": "fail", "detail": "1 of 2", "points": ["a1"],
         "at": "plans/my plan.yaml:12:5"},
        {"name": "one of them", "metric": "drops", "verdict": "fail", "detail": "0 of 1", "points": ["a0"],
         "at": "plans/my plan.yaml:13:5"},
    ]  # fmt: skip
    judged = of_run(write_run(tmp_path / "a", [fast, slow], expectations=expected), "plan.yaml")
    suite = checked_junit(junit(judged))
    good, bad, some = suite
    assert [one.get("name") for one in suite] == ["cc=cubic", "cc=bbr", "expect one of them"], "the same in every run"
    assert {one.get("classname") for one in suite} == {"p"}
    assert good.get("file") is None
    assert (bad.get("file"), bad.get("line")) == ("plans/my plan.yaml", "12")
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("type") == "saturation"
    assert str(failure.text).startswith("plans/my plan.yaml:12:5: fail: full: saturation of bulk: want at least 0.9")
    properties = [(one.get("name"), one.get("value")) for one in bad.iter("property")]
    assert properties == [
        ("point", "a1"), ("hosts.cc", "bbr"), ("switch.delay", "5ms"), ("bulk.saturation", "0.2"),
        ("bulk.throughput_bps", "200 Mb/s"), ("bulk.latency_p99_us", "2.5 ms"),
    ], "what is expected, then the headline metrics, as the terminal shows them"  # fmt: skip
    assert (some.get("line"), len(some.findall("failure"))) == ("13", 1)
    places = [one["locations"][0]["physicalLocation"] for one in checked_sarif(sarif(judged))["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["plans/my%20plan.yaml"] * 2
    assert [place["region"]["startLine"] for place in places] == [12, 13]
    page = markdown(judged).splitlines()
    assert "**failed**: 1 pass, 1 fail" in page
    assert "| fail | full | 1 of 2 | plans/my plan.yaml:12 |" in page
    table = page[page.index("| | point | cc | saturation | throughput | latency p99 |") :]
    assert table[2].startswith("| fail | `a1` | bbr | "), "failures first"
    assert " | 0.2 |" in table[2]


def test_no_name_breaks_a_page(tmp_path: Path) -> None:
    expected = [{"name": "~~a~~ &lt;", "metric": "jain", "verdict": "fail", "points": [], "at": "a`|b.yaml:12:5"}]
    page = markdown(of_run(write_run(tmp_path / "a", [POINT], expectations=expected), "plan.yaml"))
    assert r"| fail | \~\~a\~\~ \&lt; |  | a\`\|b.yaml:12 |" in page.splitlines()


def test_each_expectation_that_fails_at_a_point_has_its_own_text_and_those_of_some_point_a_case(tmp_path: Path) -> None:
    reason = "fast: throughput_bps of one: want at least 2; got 1; no loss: drops of one: want 0; got 35"
    bad = replace(POINT, verdict="fail", reason=reason)
    expected = [
        {"name": "a stall", "metric": "stalls", "verdict": "fail", "detail": "1 of 1", "points": [POINT.id],
         "at": "p.yaml:10:5", "alone": True},
        {"name": "fast", "metric": "throughput_bps", "verdict": "fail", "points": [POINT.id], "at": "p.yaml:11:5"},
        {"name": "no loss", "metric": "drops", "verdict": "fail", "points": [POINT.id], "at": "p.yaml:12:5"},
    ]  # fmt: skip
    judged = of_run(write_run(tmp_path / "a", [bad], expectations=expected), "plan.yaml")
    (point, alone) = judged.cases
    assert [(one.rule, one.text, one.place and one.place.line) for one in point.findings] == [
        ("throughput_bps", "fail: fast: throughput_bps of one: want at least 2; got 1", 11),
        ("drops", "fail: no loss: drops of one: want 0; got 35", 12),
    ]
    assert alone.name == "expect a stall"
    assert [(one.rule, one.place and one.place.line) for one in alone.findings] == [("stalls", 10)]


def test_a_page_for_githubs_summary_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = of_run(write_run(tmp_path / "a", [POINT]), "plan.yaml")
    page, other = tmp_path / "summary.md", tmp_path / "other.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    for file in (page, other):
        file.write_text("earlier\n", encoding="utf-8")
        write_verdicts(judged, {"markdown": file})
    assert page.read_text(encoding="utf-8").startswith("earlier\n# testctl run")
    assert other.read_text(encoding="utf-8").startswith("# testctl run")


def test_what_the_plan_expects_is_first(tmp_path: Path) -> None:
    """JUnit's message names a case's first metric: expected ones, the key metrics, then the greatest change."""
    values = {"saturation": 1.0, "throughput_bps": 1e9, "jain": 1.0, "rtt_mean_us": 10.0, "srtt_max_us": 5.0}
    other = {"saturation": 0.99, "throughput_bps": 4e8, "jain": 0.9, "rtt_mean_us": 90.0, "srtt_max_us": 6.0}
    expectations = [{"name": "fair", "metric": "jain", "verdict": "pass"}]
    a = write_run(tmp_path / "a", [replace(POINT, metrics=values)], expectations=expectations)
    b = write_run(tmp_path / "b", [replace(POINT, metrics=other)], expectations=expectations)
    (case,) = verdicts_of(compare_runs(a, b), "plan.yaml").cases
    moved = [change.rule for change in case.findings if change.flow]
    assert moved == ["jain", "throughput_bps", "saturation", "rtt_mean_us", "srtt_max_us"]


texts = st.text(max_size=20)
findings = st.builds(
    Change, st.sampled_from(["verdict", "drops", "x"]), st.sampled_from(["worse", "better", "other"]), texts
)
cases = st.builds(
    JudgedCase,
    texts,
    texts,
    st.sampled_from(["pass", "fail", "error", "skip"]),
    st.lists(findings, max_size=3).map(tuple),
)


@settings(deadline=None, max_examples=25)
@given(st.builds(Verdicts, texts, st.just("p"), texts, st.lists(cases, max_size=4).map(tuple), st.integers(0, 2)))
def test_any_text_makes_files_that_parse(said: Verdicts) -> None:
    checked_junit(junit(said))
    checked_sarif(sarif(said))
    found = sum(len(case.findings) for case in said.cases)
    rows = [line for line in markdown(said).splitlines() if line.startswith("|")]
    assert len(rows) == (found + 2 if found else 0)
