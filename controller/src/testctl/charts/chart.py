# SPDX-License-Identifier: Apache-2.0
"""A figure: a Vega-Lite specification and its data as columns; written to SVG, PNG and PDF by vl-convert.

The browser draws the same specification (serve/static/chart.js).  See https://vega.github.io/vega-lite/docs/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from testctl_agent.system import durable

from testctl.core.units import UNITS, Unit
from testctl.results.atomic import naming_path
from testctl.system import checkout

Columns = Mapping[str, Sequence[Any]]
"""Columns of the same length by name."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK, SOFT, GRID, LINE = "#1b1f24", "#5b6470", "#e3e6ea", "#8a8f98"
"""Colours of texts, notes, the grid and the axes in files; in the browser they are the page's."""

FONT = "system-ui, 'DejaVu Sans', sans-serif"
EXTENT = 40
"""Of a y axis at least: the times of figures above each other are above each other."""

WIDTH, HEIGHT = 560, 250
"""Of a panel of a file, in CSS pixels."""

_TITLE, _NOTE = 72, 96
"""Characters of a line above such a panel."""

KINDS: Mapping[str, Sequence[Unit]] = {
    "rate": (*UNITS["rate"], Unit("b/s", 1)),
    "size": (*UNITS["bytes"], Unit("B", 1)),
    "time": (*UNITS["time"], Unit("ns", 1)),
    "share": (Unit("%", 1e4),),
    "count": (Unit("packets", 1),),
}
"""Units of a quantity, the largest first; values are in the last one, shares in millionths."""


@dataclass(frozen=True)
class Chart:
    """A figure without data values in its specification.

    spec     Vega-Lite; its data sets are {"name": …}, and its y axis over time is completed by `ranged`
    data     the columns of each data set
    title    what the page has as a heading above the figure, and a file in it
    note     what one value stands for, and the omissions
    spoken   the figure in words, for who can't see it
    kind     a name of KINDS if y has to fit `range`; "" where the specification says it all
    range    least and greatest y in the base unit; figures side by side share the union
    """

    spec: Mapping[str, Any]
    data: Mapping[str, Columns]
    title: str = ""
    note: str = ""
    spoken: str = ""
    kind: str = ""
    range: tuple[float, float] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What the browser gets."""
        return {
            "spec": self.spec, "data": self.data, "title": self.title, "note": self.note, "spoken": self.spoken,
            "kind": self.kind, "range": self.range, **self.more,
        }  # fmt: skip

    def ranged(self) -> dict[str, Any]:
        """The specification with its y axis, as serve/static/chart.js completes it."""
        if not self.kind or self.range is None:
            return dict(self.spec)
        low, high = self.range
        unit = unit_of(self.kind, max(abs(low), abs(high)))
        axis = {"title": unit.name, "labelExpr": f"format(datum.value / {unit.size:g}, '~g')"}
        return {**self.spec, "encoding": {**self.spec["encoding"], "y": {**self.spec["encoding"]["y"], "axis": axis,
            "scale": {**self.spec["encoding"]["y"].get("scale", {}), "domain": [low, high]}}}}  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Write it as .svg, .png or .pdf."""
        return save(drawing([self], 1), Path(path))

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return drawing([self], 1)

    def whole(self) -> dict[str, Any]:
        """A specification with its data, for a file."""
        return {**self.ranged(), "datasets": {name: rows(columns) for name, columns in self.data.items()}}


def unit_of(kind: str, most: float) -> Unit:
    """The unit in which `most` is at least 1, else the smallest."""
    return next((unit for unit in KINDS[kind] if most >= unit.size), KINDS[kind][-1])


def rows(columns: Columns) -> list[dict[str, Any]]:
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def config() -> dict[str, Any]:
    """How all figures of files look: quiet axes and grid, titles on the left, legends above the data."""
    axis = {"gridColor": GRID, "domainColor": LINE, "tickColor": LINE, "labelColor": INK, "titleColor": INK,
            "titleFontWeight": "normal", "labelFont": FONT, "titleFont": FONT}  # fmt: skip
    return {
        "font": FONT, "background": "white", "axis": axis, "axisY": {"minExtent": EXTENT, "tickCount": 6},
        "view": {"stroke": None},
        "legend": {"orient": "top", "title": None, "labelLimit": 400, "symbolStrokeWidth": 2, "labelFont": FONT},
        "title": {"anchor": "start", "fontSize": 14, "subtitleColor": SOFT, "subtitleFontSize": 11, "offset": 8},
        "facet": {"spacing": 24}, "concat": {"spacing": 36}, "header": {"labelFont": FONT, "titleFont": FONT},
        "style": {"note": {"color": SOFT}, "bound": {"color": SOFT, "strokeDash": [5, 4]}, "ink": {"color": INK}},
    }  # fmt: skip


def drawing(charts: Sequence[Chart], columns: int = 2) -> str:
    """Figures side by side, `columns` in a line, as SVG, in which no date is."""
    import vl_convert  # can be loaded only once in a process, and is needed by files alone

    numbers: dict[str, str] = {}  # Vega numbers its clip paths on from figure to figure
    svg = vl_convert.vegalite_to_svg(_sheet(charts, columns))
    return re.sub(r"\bclip\d+\b", lambda match: numbers.setdefault(match[0], f"clip{len(numbers)}"), svg)


def save(svg: str, path: Path) -> Path:
    """Write a drawing as .svg, .png or .pdf, at once.

    Raises TestbedError where the file can't be written, ValueError for another suffix.
    """
    import vl_convert

    convert: dict[str, Callable[[str], bytes]] = {
        ".svg": str.encode, ".png": partial(vl_convert.svg_to_png, scale=2.0), ".pdf": vl_convert.svg_to_pdf,
    }  # fmt: skip
    if path.suffix not in convert:
        raise ValueError(f"{path}: want a name that ends in {', '.join(convert)}")
    with naming_path(path, "the figure was not written; the results are kept"):
        durable.write(path, convert[path.suffix](svg))
    return path


def _sheet(charts: Sequence[Chart], columns: int) -> dict[str, Any]:
    """Figures side by side as one specification."""
    panels = [_panel(chart, number) for number, chart in enumerate(charts)]
    datasets = {name: values for panel in panels for name, values in panel.pop("datasets").items()}
    own = {"scale": dict.fromkeys(("color", "strokeDash", "shape", "xOffset"), "independent")}
    return {"$schema": SCHEMA, "config": config(), "columns": columns, "concat": panels, "datasets": datasets,
             "resolve": own}  # fmt: skip


def _panel(chart: Chart, number: int) -> dict[str, Any]:
    """A figure of a file, with its title; its data sets have names of their own."""
    text = {"text": wrap(chart.title, _TITLE), **({"subtitle": wrap(chart.note, _NOTE)} if chart.note else {})}
    spec, size = chart.whole(), {"width": WIDTH, "height": HEIGHT}
    if "facet" in spec:
        columns = min(spec["columns"], len(spec["facet"]["sort"]))
        inner = {"width": (WIDTH - 30 * (columns - 1)) // columns, "height": HEIGHT * 3 // 4}
        spec, size = {**spec, "columns": columns, "spec": {**inner, **spec["spec"]}}, {}
    names = {name: f"{name} {number}" for name in chart.data}
    renamed: dict[str, Any] = _renamed({**size, **spec, "title": text}, names)
    sized: dict[str, Any] = _sized(renamed, {"width": WIDTH, "height": spec.get("height", HEIGHT)})
    return sized


def _sized(spec: Any, sizes: Mapping[str, Any]) -> Any:
    """Expressions with numbers for the panel's width and height: of panels side by side Vega knows neither."""
    if isinstance(spec, Mapping):
        if set(spec) == {"expr"}:
            return {"expr": re.sub(r"\b(width|height)\b", lambda match: str(sizes[match[0]]), spec["expr"])}
        return {key: value if key == "datasets" else _sized(value, sizes) for key, value in spec.items()}
    return [_sized(item, sizes) for item in spec] if isinstance(spec, list | tuple) else spec


def _renamed(spec: Any, names: Mapping[str, str]) -> Any:
    if isinstance(spec, Mapping):
        renamed = {key: _renamed(value, names) for key, value in spec.items() if key not in ("data", "datasets")}
        if "data" in spec:
            renamed["data"] = {"name": names[spec["data"]["name"]]}
        if "datasets" in spec:
            renamed["datasets"] = {names[name]: values for name, values in spec["datasets"].items()}
        return renamed
    return [_renamed(item, names) for item in spec] if isinstance(spec, list | tuple) else spec


def vega_script() -> bytes:
    """Vega-Embed with Vega and Vega-Lite (BSD licence) as one script that defines `vegaEmbed`; kept in the cache.

    vl-convert takes seconds to put it together.
    """
    import vl_convert

    bundle = "window.vegaEmbed = vegaEmbed;"
    return cached(
        vl_convert.get_vega_embed_version().encode(),
        "js",
        lambda: f"(() => {{ {vl_convert.javascript_bundle(bundle)} }})();".encode(),
    )


def cached(of: bytes, kind: str, make: Callable[[], bytes]) -> bytes:
    """The file made of these bytes, from the cache; it is kept there, if anything can be."""
    file = checkout.cache_dir() / "vega" / f"{hashlib.sha256(of).hexdigest()[:16]}.{kind}"
    with suppress(OSError):
        return file.read_bytes()
    made = make()
    with suppress(OSError):
        durable.make_directory(file.parent)
        durable.write(file, made)
    return made
