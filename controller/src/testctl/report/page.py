# SPDX-License-Identifier: Apache-2.0
"""Makes report.html: the page of `testctl serve` as one file, with its answers about one run.

All that a plan or a result says is inside packed script elements, which static/export.js reads: it is never markup.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl.charts import cached, vega_script
from testctl.report import packed as packing
from testctl.report.embedded import embedded
from testctl.report.looks import looks, own_file, script
from testctl.report.packed import deflated, packed
from testctl.report.point_page import point_page
from testctl.report.run_page import Found, run_figures, run_page
from testctl.results import Run, RunPoint

TOGETHER = 20
"""Points whose details share a script element: they repeat most of it."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""Nothing is loaded, from no other server and from no file."""

_STYLE = '<link rel="stylesheet" href="/static/app.css">'
_SCRIPT = '<script type="module" src="/static/main.js"></script>'


def render_report(run: Run, data: Mapping[str, str | None] | None = None) -> str:
    """The page of a run.  `data`: point_data by point id, where the caller has it; others have no figures then."""
    blocks = data if data is not None else {point.id: point_data(point) for point in run.points}
    stored, first = Found(run.path, run.summary, run.points), _first_with(blocks)
    page = run_page(stored, run.plan_text)
    if run.summary:  # a complete run is renamed once its report is written
        page |= {"name": run.name, "state": "complete"}
    answers = {
        "looks": looks(),
        "run": page,
        "sweeps": run_figures(stored, run.plan_text, RunPoint.records),
        "together": TOGETHER,
        "not_drawn": [point.id for point in run.points if point.has_records and not blocks.get(point.id)],
    }
    elements = [_element("e-run", packed(answers), run=page["name"])]
    elements += [_element(f"m-{n}", packed(group)) for n, group in enumerate(_in_groups(run.points))]
    for point, block in blocks.items():
        if block:
            other = first[point]
            same = {} if other == point else {"same": other}
            elements.append(_element(f"d-{point}", "" if same else block, **same))
    return _page(run, [*elements, _element("e-vega", _vega())])


def point_data(point: RunPoint) -> str | None:
    """The text of the script element with a point's figures and lists; None without records."""
    data = embedded(point)
    return None if data is None else packed(data)


def _page(run: Run, elements: Sequence[str]) -> str:
    """serve's page with its style sheet and scripts in place of links to them."""
    page = own_file("serve/static/index.html")
    style = f"<style>\n{own_file('serve/static/app.css')}</style>"
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    title = html.escape(str(run.summary.get("plan") or run.name))
    scripts = "\n".join([*elements, f"<script>\n{script('export.js', 'main.js')}\n</script>"])
    for old, new in (
        (_STYLE, style),
        (_SCRIPT, ""),
        ("<title>testctl</title>", f"{policy}<title>{title} – testctl</title>"),
        ("</body>", f"{scripts}\n</body>"),
    ):
        assert page.count(old) == 1, f"index.html: want {old} once"
        page = page.replace(old, new)
    return page


def _element(name: str, text: str, **data: str) -> str:
    """A script element that is not run, with its data- attributes."""
    more = "".join(f' data-{key}="{html.escape(value)}"' for key, value in data.items())
    return f'<script type="text/plain" id="{html.escape(name)}"{more}>{text}</script>'


def _first_with(blocks: Mapping[str, str | None]) -> dict[str, str]:
    """Point -> the first one with the same packets: settings that made no difference."""
    first: dict[str, str] = {}
    return {point: first.setdefault(data, point) for point, data in blocks.items() if data}


def _in_groups(points: Sequence[RunPoint]) -> list[dict[str, Any]]:
    groups = [points[at : at + TOGETHER] for at in range(0, len(points), TOGETHER)]
    return [{point.id: point_page(point) for point in group} for group in groups]


def _vega() -> str:
    """Vega, packed and kept: packing takes longer than a small report."""
    content = vega_script()
    packer = Path(packing.__file__).read_bytes()
    return cached(packer + content, "packed", lambda: deflated(content).encode("ascii")).decode("ascii")
