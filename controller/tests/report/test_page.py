# SPDX-License-Identifier: Apache-2.0
"""report.html stands alone, has all answers about its run, and can't be injected into."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest
from testctl.charts import vega_script
from testctl.report import write as writing
from testctl.report import write_report
from testctl.report.embedded import embedded
from testctl.report.page import POLICY, render_report
from testctl.report.stalls import read_stalls
from testctl.results import Run, load_run

from controller.tests.report.reading import drawn_points, element, inflated, run_of, unpacked


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_nothing_is_loaded_from_elsewhere(html: str) -> None:
    tags = Page(html).tags
    for tag, attributes in tags:
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or value == "data:,", f"<{tag} {name}={value!r}>"
        assert tag not in ("iframe", "object", "base", "img")
    (policy,) = (a["content"] for tag, a in tags if tag == "meta" and "http-equiv" in a)
    assert policy == POLICY == (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    )  # fmt: skip
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_a_plan_can_not_inject(run: Run, html: str) -> None:
    scripts = [tag for tag, _ in Page(html).tags if tag == "script"]
    assert html.count("<script") == html.count("</script>") == len(scripts)
    assert 'alert("x")' not in html
    assert run_of(html)["run"]["about"] == '<script>alert("x")</script> DCTCP & a rate limiter'
    named = Run(run.path, {**run.summary, "plan": "</title><script>alert(1)</script>"}, run.points)
    assert "<title>&lt;/title&gt;&lt;script&gt;" in render_report(named, {})


def test_a_name_of_a_directory_can_not_inject(run: Run) -> None:
    """A run of somebody else has any names."""
    name = 'x" tabindex="0" autofocus onfocus="alert(1)'
    odd = Run(run.path, run.summary, [replace(run.points[0], id=name)])
    (script,) = (of for _, of in Page(render_report(odd, {name: "packed"})).tags if name in (of.get("id") or ""))
    assert script == {"type": "text/plain", "id": f"d-{name}"}


def test_the_number_of_stalls_is_that_of_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the longest are listed."""
    table = run.points[0].stalls()
    assert table is not None
    monkeypatch.setattr("testctl.report.embedded.read_stalls", partial(read_stalls, most=1))
    answers = embedded(run.points[0])
    assert answers is not None
    assert (len(answers["page"]["stalls"]["rows"]), answers["page"]["stalls"]["in_all"]) == (1, table.num_rows)
    assert table.num_rows > 1


def test_its_scripts_are_those_of_serve_in_the_order_of_their_imports(html: str) -> None:
    names = re.findall(r'^modules\["([\w.]+)"\] = ', html, re.MULTILINE)
    assert names[0] == "dom.js"
    assert names.index("export.js") < names.index("main.js") == len(names) - 1
    assert {"run.js", "point.js", "board.js", "chart.js"} <= set(names)
    for script in re.findall(r"<script>\n(.*?)</script>", html, re.DOTALL):
        assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_vega_is_there_once_and_its_packed_text_is_kept_where_that_is_possible(
    run: Run, html: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vega = element(html, "e-vega")
    assert inflated(vega) == vega_script()
    assert len(vega) < 450_000
    cache = tmp_path / "cache"
    monkeypatch.setattr("testctl.report.page.vega_script", lambda: b"a library")
    monkeypatch.setenv("TESTCTL_CACHE", str(cache))
    assert inflated(element(render_report(run, {}), "e-vega")) == b"a library"
    (kept,) = (cache / "vega").iterdir()
    kept.write_text("from the cache", encoding="ascii")
    assert element(render_report(run, {}), "e-vega") == "from the cache"
    shutil.rmtree(cache)
    cache.write_text("no directory", encoding="ascii")
    assert inflated(element(render_report(run, {}), "e-vega")) == b"a library"


def test_it_has_what_serve_answers_of_the_run(run: Run, html: str) -> None:
    answers = run_of(html)
    page = answers["run"]
    assert [point["id"] for point in page["points"]] == [point.id for point in run.points]
    assert [factor["label"] for factor in page["factors"]] == ["cc", "htb_mark", "htb_ecn_threshold"]
    assert (page["digest"], page["name"], page["state"]) == (run.digest, run.name, "complete")
    assert page["counts"] == {"pass": 11, "fail": 1, "invalid": 0, "skip": 1, "broken": 1, "not judged yet": 0}
    assert ["tools tgen", "1"] in page["versions"]
    assert [one["reason"] for one in page["reasons"]] == [
        "the lab was killed <after> 0 s & printed no more", "the lab was killed <after> 1 s & printed no more",
    ]  # fmt: skip
    details = [unpacked(element(html, name)) for name in re.findall(r' id="(m-\d+)"', html)]
    assert [one for group in details for one in group] == [point.id for point in run.points]
    assert f'id="e-run" data-run="{run.name}"' in html


def test_a_run_in_progress_and_without_points_can_be_shown(run: Run) -> None:
    assert run_of(render_report(run, {}))["run"]["state"] == "complete"
    empty = Run(run.path.with_name("x.in-progress"), {}, ())
    assert run_of(render_report(empty, {}))["run"]["state"] == "in progress"
    judged = Run(run.path.with_name(f"{run.name}.in-progress"), run.summary, ())  # as its report is written
    assert run_of(render_report(judged, {}))["run"]["name"] == run.name


def test_write_report_draws_all_and_changes_no_result(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    for point in run.points[2:12]:
        shutil.rmtree(copy / "points" / point.id)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    seen: list[str] = []
    written = write_report(copy, tell=seen.append)
    assert written == copy / "report.html"
    assert seen == [point.id for point in load_run(copy).points]
    assert {path: path.read_bytes() for path in before} == before
    shown = run_of(written.read_text(encoding="utf-8"))["sweeps"]["figures"]
    assert [one["title"] for one in shown][1:3] == ["Figure 3. Marking ACKs", "Figure 7. Marking data, with the fix"]
    assert all("spec" in one for one in shown)
    again = written.read_bytes()
    write_report(copy, jobs=2)
    assert again == written.read_bytes()


def test_of_many_points_those_are_drawn_that_did_not_pass(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    monkeypatch.setattr(writing, "DRAWN", 3)
    html = write_report(copy, figures=False).read_text(encoding="utf-8")
    drawn = drawn_points(html)
    bad = [point.id for point in run.points if point.has_records and point.verdict != "pass"]
    assert len(drawn) == 3
    assert set(bad) <= set(drawn)
    assert run_of(html)["not_drawn"] == [p.id for p in run.points if p.has_records and p.id not in drawn]
