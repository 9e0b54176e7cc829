# SPDX-License-Identifier: Apache-2.0
"""The scorecard in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from testctl.charts.style import CLAIM_LOOKS, VERDICT_LOOKS
from testctl.core.units import show_time
from testctl.papers.scorecard import Scorecard
from testctl.report.claims import claims_table, reasons
from testctl.report.terminal import plain_console


def print_scorecard(card: Scorecard, written: Sequence[Path], console: Console) -> None:
    """Print the claims, the reasons for differences, claims without an explanation, the digest, and the files."""
    console = plain_console(console)
    console.print(claims_table(card.claims))
    for line in reasons([claim for claim in card.claims if not claim.open]):
        console.print(line, soft_wrap=True)
    for sign, texts in (("broken", card.broken), ("fail", card.open)):
        look = VERDICT_LOOKS[sign]
        for text in texts:
            name = "broken" if sign == "broken" else "to explain"
            console.print(Text.assemble((f"{look.sign} {name}", look.rich), f"  {text}"), soft_wrap=True)
    counts = Text()
    for verdict, count in card.counts.items():
        if count:
            counts.append(f"{count} {verdict}", style=CLAIM_LOOKS[verdict].rich).append("  ")
    counts.append(f"of {len(card.claims)} claims, {len(card.runs)} plans, in {show_time(card.wall_s * 1e9)}")
    console.print(counts, soft_wrap=True)
    console.print(Text(f"digest  {card.digest}"), soft_wrap=True)
    for path in written:
        console.print(Text(f"{path.suffix.removeprefix('.'):6}  {path}"), soft_wrap=True)
