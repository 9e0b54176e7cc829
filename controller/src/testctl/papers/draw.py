# SPDX-License-Identifier: Apache-2.0
"""Draws the scorecard: the ratio of our value to the published one for a number, a tick for a property."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten, wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from testctl.charts.style import CLAIM_LOOKS
from testctl.papers.scorecard import Scorecard
from testctl.plan import Claim
from testctl.report.claims import reason, show_difference, show_metric_of, show_ours, show_published, show_want
from testctl.report.draw import SOFT

_WIDTH = 14.0
_ROW = 0.5
_HEAD, _TITLE, _AXIS, _FOOT = 0.6, 0.5, 0.5, 0.35
_LABEL = 0.2
_LINE = 0.2
_LEFT, _RIGHT = 0.4, 0.66
"""Start and end of the axis of ratios, as a share of the width; the heights above are in inches."""
_WIDEST = 10.0
"""Ratios farther from 1 are drawn at the edge, as an arrow."""
_BAND, _INK = "#dfe8ee", "#1b1f24"
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def draw_scorecard(card: Scorecard) -> Figure:
    """Published numbers on a logarithmic axis with their tolerance, published properties, reasons for differences."""
    numbers = [claim for claim in card.claims if claim.numeric]
    properties = [claim for claim in card.claims if not claim.numeric]
    # (line, whether it names a claim).
    lines = []
    for claim in card.claims:
        if claim.verdict in ("reproduced", "holds"):
            continue
        lines.append((f"{CLAIM_LOOKS[claim.verdict].sign} {claim.plan}: {claim.claim}", True))
        lines += [(part, False) for part in wrap(reason(claim), 190)]
    parts = ((len(numbers), _ROW, _LABEL + _AXIS), (len(properties), _ROW, 0.1), (len(lines), _LINE, 0.1))
    height = _HEAD + _FOOT + sum(_TITLE + count * row + below for count, row, below in parts if count)
    figure = Figure(figsize=(_WIDTH, height), dpi=110)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in card.counts.items() if count)
    _line(figure, 0.012, height - 0.3, "Papers as oracles", fontsize=15, fontweight="bold", color=_INK)
    _line(figure, 0.185, height - 0.3, f"{len(card.claims)} claims of {len(card.runs)} plans: {counts}", fontsize=11)
    top = height - _HEAD
    if numbers:
        note = "ours ÷ published; the band is the tolerance; the line through a mark, the range over points"
        axes, top = _part(figure, top, height, "Published numbers", note, len(numbers), _ROW, _LABEL)
        _words(axes, numbers, True)
        box = axes.get_position()
        _ratios(figure.add_axes((_LEFT, box.y0, _RIGHT - _LEFT, box.height)), numbers)
        top -= _AXIS
    if properties:
        note = "whether our measurement shows what the paper says"
        axes, top = _part(figure, top, height, "Published properties", note, len(properties), _ROW)
        _words(axes, properties, False)
        top -= 0.1
    if lines:
        axes, top = _part(figure, top, height, "Why not as published", "", len(lines), _LINE)
        for row, (text, bold) in enumerate(lines):
            weight = "bold" if bold else "normal"
            axes.text(0.012 if bold else 0.025, row, text, fontsize=9, va="center", color=_INK, fontweight=weight)
    kernel = f"   every point on kernel {card.kernel}" if card.kernel else ""
    _line(figure, 0.012, 0.15, f"digest {card.digest[:16]}…{kernel}", fontsize=8)
    return figure


def _line(figure: Figure, x: float, inches: float, text: str, **how: Any) -> None:
    """Text at a height in inches."""
    figure.text(x, inches / figure.get_figheight(), text, **{"va": "center", "color": SOFT, **how})


def _part(
    figure: Figure, top: float, height: float, title: str, note: str, rows: int, row: float, label: float = 0
) -> tuple[Axes, float]:
    """A heading, and below it axes of the whole width with one unit per row; returns their lower edge in inches."""
    _line(figure, 0.012, top - 0.25, title, fontsize=12, fontweight="bold", color=_INK)
    _line(figure, 0.185, top - 0.25, note, fontsize=9.5)
    bottom = top - _TITLE - label - rows * row
    axes = figure.add_axes((0.0, bottom / height, 1.0, rows * row / height))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(rows - 0.5, -0.5)
    return axes, bottom


def _words(axes: Axes, claims: Sequence[Claim], numeric: bool) -> None:
    """The claim and its source to the left; paper, ours and verdict to the right."""
    right = _RIGHT + 0.012 if numeric else _LEFT + 0.012
    for row, claim in enumerate(claims):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f6f7f9", linewidth=0)
        axes.text(0.012, row - 0.17, shorten(claim.claim, 78, placeholder="…"), fontsize=10, va="center", color=_INK)
        source = f"{claim.plan} · {claim.source}"
        axes.text(0.012, row + 0.22, shorten(source, 92, placeholder="…"), fontsize=8, va="center", color=SOFT)
        look = CLAIM_LOOKS[claim.verdict]
        word = f"{look.sign} {claim.verdict}"
        axes.text(0.905, row, word, fontsize=10, va="center", color=look.colour, fontweight="bold")
        difference = show_difference(claim)
        if numeric:
            axes.text(right, row - 0.17, f"paper {show_published(claim)}", fontsize=9.5, va="center", color=_INK)
            ours = f"ours {show_ours(claim)}" + (f", {difference}" if difference else "")
            axes.text(right, row + 0.2, shorten(ours, 44, placeholder="…"), fontsize=9, va="center", color=SOFT)
        else:
            wrapped = wrap(show_published(claim), 78)[:1]
            axes.text(
                right, row - 0.17, f"paper: {wrapped[0] if wrapped else ''}", fontsize=9.5, va="center", color=_INK
            )
            ours = shorten(f"ours: {show_ours(claim)}{show_want(claim)} · {show_metric_of(claim)}", 92, placeholder="…")
            axes.text(right, row + 0.2, ours, fontsize=9, va="center", color=SOFT)


def _ratios(axes: Axes, claims: Sequence[Claim]) -> None:
    """Each claim's ratio in its row."""
    axes.patch.set_alpha(0)
    axes.set_xscale("log")
    span = _span(claims)
    axes.set_xlim(1 / span, span)
    axes.set_ylim(len(claims) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#8a8f98")
    ticks = [tick for tick in _TICKS if 1 / span <= tick <= span]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    axes.tick_params(color="#8a8f98", labelsize=8.5)
    axes.axvline(1, color="#8a8f98", linewidth=1, zorder=1)
    axes.annotate("as published", (1, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
                  ha="center", fontsize=8.5, color=SOFT)  # fmt: skip
    for row, claim in enumerate(claims):
        _ratio(axes, row, claim, span)


def _ratio(axes: Axes, row: int, claim: Claim, span: float) -> None:
    published, ours = claim.published, claim.ours
    look = CLAIM_LOOKS[claim.verdict]
    if isinstance(published, str) or not published or ours.mean is None or ours.least is None or ours.most is None:
        text = "not measured" if ours.mean is None else "no ratio: 0 was published"
        axes.text(1, row, text, fontsize=8.5, color=SOFT, ha="center", va="center", backgroundcolor="white")
        return
    within = float(claim.within or 0)
    low = max(1 - within, 1 / span)
    axes.fill_betweenx([row - 0.3, row + 0.3], low, min(1 + within, span), color=_BAND, linewidth=0, zorder=0)
    mean, *ends = (float(np.clip(v / published, 0, None)) for v in (ours.mean, ours.least, ours.most))
    axes.plot(np.clip(ends, 1 / span, span), [row, row], color=look.colour, linewidth=2, zorder=2)
    shape = "<" if mean < 1 / span else ">" if mean > span else "o" if claim.verdict == "reproduced" else "D"
    at = float(np.clip(mean, 1 / span, span))
    axes.plot([at], [row], shape, color=look.colour, markersize=9, zorder=3, clip_on=False)


def _span(claims: Sequence[Claim]) -> float:
    """The largest ratio, or its inverse, on the axis: at least 2."""
    far = [2.0]
    for claim in claims:
        if not isinstance(claim.published, str) and claim.published and claim.ours.mean is not None:
            ratio = claim.ours.mean / claim.published
            far += [max(ratio, 1 / ratio) if ratio > 0 else _WIDEST]
            far += [1 + float(claim.within or 0)]
    return min(max(far) * 1.15, _WIDEST)
