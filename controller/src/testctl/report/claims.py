# SPDX-License-Identifier: Apache-2.0
"""Papers' claims for reading: what was published, what was measured, the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from testctl.charts.style import CLAIM_LOOKS
from testctl.core.units import show_metric
from testctl.plan import Claim

BADGES = {"reproduced": "pass", "holds": "pass", "differs": "invalid", "fails": "fail", "not measured": "skip"}
"""The page's class of each verdict."""

_MANY = 1000


def claims_of(summary: Mapping[str, Any]) -> list[Claim]:
    return [Claim.from_json(entry) for entry in summary.get("claims") or []]


def show_published(claim: Claim) -> str:
    """ "200 ms ± 10%", "10× ± 50%", or the property."""
    if isinstance(claim.published, str):
        return claim.published
    text = _number(claim, claim.published)
    return f"{text} ± {claim.within * 100:.3g}%" if claim.within else text


def show_ours(claim: Claim) -> str:
    """The mean and, where points differ, the range; the text of a metric that is one."""
    ours = claim.ours
    if ours.mean is None or ours.least is None or ours.most is None:
        return ours.text or "–"
    least, most = _number(claim, ours.least), _number(claim, ours.most)
    spread = f" ({least} to {most})" if least != most else ""
    return _number(claim, ours.mean) + spread


def show_difference(claim: Claim) -> str:
    """ "+3.1%"; nothing for a property."""
    percent = claim.difference_percent
    return "" if percent is None else f"{percent:+.{1 if abs(percent) < 9.95 else 0}f}%"


def show_metric_of(claim: Claim) -> str:
    """The metric, and what it is the ratio to."""
    return f"{claim.metric}, relative to {claim.than}" if claim.than else claim.metric


def show_want(claim: Claim) -> str:
    """ ", want at most 0.25"; nothing where the property is its own text."""
    return f", want {claim.want}" if claim.want and not claim.ours.text else ""


def claims_table(claims: Sequence[Claim]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading, ratio in (("claim", 5), ("paper", 3), ("ours", 3)):
        table.add_column(heading, overflow="fold", ratio=ratio)
    table.add_column("points", justify="right")
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for plan, group in groupby(claims, key=lambda claim: claim.plan):
        table.add_row(Text(plan, style="bold"))
        for claim in group:
            table.add_row(
                Padding(Text(claim.claim), (0, 0, 0, 2)),
                Text(show_published(claim)),
                Text(show_ours(claim)),
                Text(str(claim.ours.points)),
                Text(show_difference(claim)),
                verdict_text(claim),
            )
    return table


def verdict_text(claim: Claim) -> Text:
    look = CLAIM_LOOKS[claim.verdict]
    return Text(f"{look.sign} {claim.verdict}", style=look.rich)


def reasons(claims: Sequence[Claim]) -> list[Text]:
    """A line for each claim that is not as published: the reason, or that the plan has none."""
    return [
        Text.assemble(verdict_text(claim), "  ", (claim.claim, "bold"), f"  {reason(claim)}")
        for claim in claims
        if claim.verdict not in ("reproduced", "holds")
    ]


def reason(claim: Claim) -> str:
    """Why a claim is not as published, as the plan says, or why it has no verdict."""
    if claim.verdict == "not measured":
        return claim.found
    return claim.why or "the plan gives no reason (`why`)"


def claim_rows(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The rows of a page's table."""
    return [
        {
            "badge": BADGES[claim.verdict],
            "sign": CLAIM_LOOKS[claim.verdict].sign,
            "verdict": claim.verdict,
            "claim": claim.claim,
            "source": claim.source,
            "metric": show_metric_of(claim),
            "published": show_published(claim),
            "ours": show_ours(claim) + show_want(claim),
            "points": claim.ours.points,
            "difference": show_difference(claim),
            "why": claim.why if claim.verdict in ("reproduced", "holds") else reason(claim),
        }
        for claim in claims
    ]


def _number(claim: Claim, value: float) -> str:
    if claim.than:
        return f"{value:,.0f}×" if abs(value) >= _MANY else f"{value:.3g}×"
    return show_metric(claim.metric, value)
