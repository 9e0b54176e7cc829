# SPDX-License-Identifier: Apache-2.0
"""report.html stands alone, says everything, and can't be injected into."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from testctl.curves.core import figure
from testctl.report import write as writing
from testctl.report import write_report
from testctl.report.page import render_report
from testctl.results import Run, load_run

from controller.tests.report.reading import drawn_points, element, inflated
from tools.bench_serve import CHROMIUM

_QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --virtual-time-budget=5000 --dump-dom"
)


class Page(HTMLParser):
    """Collects what a test asks about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts.append(data)
        elif self.cdata_elem is None:
            self.text += data


@pytest.fixture(scope="package")
def html(run: Run) -> str:
    return render_report(run)


@pytest.fixture(scope="package")
def page(html: str) -> Page:
    return Page(html)


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), f"<{tag} {name}={value!r}>"
        assert tag not in ("link", "iframe", "object", "base", "img")
    policy = next(
        a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_styles_load_nothing(html: str) -> None:
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_a_plan_can_not_inject(html: str, page: Page) -> None:
    assert '<script>alert("x")</script>' not in html
    assert '<script>alert("x")</script> DCTCP & a rate limiter' in page.text
    assert "<b>" not in html.replace("<b><", "")[: html.index("<script")]
    assert "the lab was killed <after> 0 s & printed no more" in page.text


def test_plotly_is_there_once(html: str) -> None:
    assert "plotly.js v" not in html
    assert html.count('id="plotly"') == 1
    assert re.match(rb"/\*\*\n\* plotly\.js v\d", inflated(element(html, "plotly")))


def test_packed_plotly_is_kept_where_something_can_be_kept(
    run: Run, html: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TESTCTL_CACHE", str(cache))
    assert element(render_report(run), "plotly") == element(html, "plotly")
    (kept,) = (cache / "plotly").iterdir()
    kept.write_text("from the cache", encoding="ascii")
    assert element(render_report(run), "plotly") == "from the cache"
    shutil.rmtree(cache)
    cache.write_text("no directory", encoding="ascii")
    assert element(render_report(run), "plotly") == element(html, "plotly")


def test_every_point_has_a_section_a_row_and_data(run: Run, page: Page) -> None:
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    for point in run.points:
        assert f"p-{point.id}" in ids
        assert f"#p-{point.id}" in links
        assert (f"d-{point.id}" in ids) == point.has_records
    assert len(ids) == len(set(ids))


def test_the_header_has_what_reproduces_it(run: Run, page: Page) -> None:
    for words in (run.digest, "testctl run dctcp_htb.yaml", "11 pass", "1 fail", "1 skip", "1 broken", "6.12.117"):
        assert words in page.text


def test_the_index_is_json_with_a_cell_for_each_point(run: Run, html: str) -> None:
    text = html.partition('id="index">')[2].partition("</script>")[0]
    index = json.loads(text)
    assert [point["id"] for point in index["points"]] == [point.id for point in run.points]
    assert [factor["label"] for factor in index["factors"]] == ["cc", "htb_mark", "htb_ecn_threshold"]


def test_a_run_in_progress_and_without_points_can_be_shown(run: Run) -> None:
    assert "(in progress)" not in render_report(run, {})
    empty = Run(run.path.with_name("x.in-progress"), {}, ())
    assert "(in progress)" in render_report(empty, {})


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
    figures = sorted(path.name for path in (copy / "figures").glob("*.png"))
    assert figures == sorted(["paper.png", *(f"paper-{n}.png" for n in (1, 2, 3, 4))])
    assert all((copy / "figures" / name).read_bytes().startswith(b"\x89PNG") for name in figures)
    assert {path: path.read_bytes() for path in before} == before
    again = (copy / "figures" / "paper.png").read_bytes(), written.read_bytes()
    write_report(copy, jobs=2)
    assert again == ((copy / "figures" / "paper.png").read_bytes(), written.read_bytes())


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
    assert set(drawn) <= set(bad) if len(bad) >= 3 else set(bad) <= set(drawn)
    assert html.count("Not drawn: the run has more points") == sum(p.has_records for p in run.points) - 3
    assert all(f'id="p-{point.id}"' in html for point in run.points)


def in_a_browser(html: str, run: Run, tmp_path: Path) -> tuple[str, str]:
    """The whole page and its section of the first point, opened, as Chromium has them; no error on its console."""
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    point = run.points[0].id
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    assert CHROMIUM is not None
    command = [CHROMIUM, *_QUIET.split(), "--enable-logging=stderr", profile, f"{file.as_uri()}#p-{point}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "rror" in line]
    assert errors == []
    return done.stdout, done.stdout.partition(f'id="p-{point}"')[2].partition(f'id="p-{run.points[1].id}"')[0]


def round_trips(drawn: str) -> list[str]:
    """What stands at the y axis of the round-trip times in a point's section."""
    panel = drawn.partition(">Round-trip time<")[2].partition("<h3")[0]
    return re.findall(r'class="ytick"><text [^>]*data-unformatted="([^"]*)"', panel)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_draws_the_page(html: str, run: Run, tmp_path: Path) -> None:
    shown, drawn = in_a_browser(html, run, tmp_path)
    for title in ("Throughput", "Time and sequence", "Congestion window", "Round-trip time", "Latency, one way",
                  "Distribution of latency", "Recoveries (2)", "Stalls (2)"):  # fmt: skip
        assert f">{title}" in drawn
    assert drawn.count('class="main-svg"') >= 5
    assert "ACK owed for" in drawn
    assert drawn.count("<summary>packets</summary>") == len(re.findall(r"silence of \d+ ms", drawn))
    assert "0" in round_trips(drawn)
    matrix = shown.partition('id="matrix"')[2].partition("</table>")[0]
    assert matrix.count('class="cell ') == len(run.points)
    assert 'id="alert' not in shown


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_draws_round_trip_times_far_apart_on_a_logarithmic_axis(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure, "OUTLYING", 1)  # the run's longest is 2.3 times the median
    ticks = round_trips(in_a_browser(render_report(run), run, tmp_path)[1])
    assert "100" in ticks
    assert "0" not in ticks


def test_the_plans_figures_are_in_the_page_itself(run: Run) -> None:
    path = run.path / "figures" / "paper.png"
    before = path.read_bytes() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG a figure")
    try:
        page = Page(render_report(run, {}))
    finally:
        path.unlink() if before is None else path.write_bytes(before)
    (image,) = (attributes for tag, attributes in page.tags if tag == "img")
    assert image["src"] == "data:image/png;base64,iVBORyBhIGZpZ3VyZQ=="
    assert image["alt"]
