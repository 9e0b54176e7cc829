# SPDX-License-Identifier: Apache-2.0
"""The scorecard's figures: published numbers, published properties, and why some are not as published."""

from __future__ import annotations

from testctl.charts import Chart
from testctl.charts.scorecard import Row, numbers, properties, reasons
from testctl.charts.style import CLAIM_LOOKS
from testctl.papers.scorecard import Scorecard
from testctl.plan import Claim
from testctl.report.claims import reason, show_difference, show_metric_of, show_ours, show_published, show_want


def scorecard_charts(card: Scorecard) -> list[Chart]:
    """Those that the card has claims for, one below the other."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in card.counts.items() if count)
    about = f"{len(card.claims)} claims of {len(card.runs)} plans: {counts}"
    about += f"; every point on kernel {card.kernel}" if card.kernel else ""
    note = "measured / published; the band is the tolerance, the line through a mark the range over points"
    rows = {kind: [_row(claim) for claim in card.claims if claim.numeric is kind] for kind in (True, False)}
    others = [
        (f"{CLAIM_LOOKS[claim.verdict].sign} {claim.plan}: {claim.claim}", reason(claim))
        for claim in card.claims
        if claim.verdict not in ("reproduced", "holds")
    ]
    charts = []
    if rows[True]:
        charts.append(numbers("Published numbers", f"{about}; {note}", rows[True]))
    if rows[False]:
        charts.append(properties("Published properties", "" if rows[True] else about, rows[False]))
    if others:
        charts.append(reasons("Why not as published", others))
    return charts


def _row(claim: Claim) -> Row:
    published, ours, source = claim.published, claim.ours, f"{claim.plan} · {claim.source}"
    if not claim.numeric:
        ours_text = f"{show_ours(claim)}{show_want(claim)} · {show_metric_of(claim)}"
        return Row(claim.claim, source, show_published(claim), ours_text, claim.verdict)
    difference = show_difference(claim)
    ours_text = show_ours(claim) + (f", {difference}" if difference else "")
    ratio, lacking = None, ""
    if ours.mean is None or ours.least is None or ours.most is None:
        lacking = "not measured"
    elif isinstance(published, str) or not published:
        lacking = "no ratio: 0 was published"
    else:
        mean, least, most = (max(value / published, 0.0) for value in (ours.mean, ours.least, ours.most))
        ratio = mean, least, most
    return Row(
        claim.claim, source, show_published(claim), ours_text, claim.verdict, ratio, float(claim.within or 0), lacking
    )
