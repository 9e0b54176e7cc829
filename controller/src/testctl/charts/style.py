# SPDX-License-Identifier: Apache-2.0
"""Colours and signs that the page, the figures and the terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testctl.results.layout import UNJUDGED

# Okabe and Ito's palette, told apart with any colour vision ("Color Universal Design", 2008).
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, GREY, BROWN = "#56b4e9", "#cc79a7", "#8a8f98", "#8c6d31"

ON_DARK = {BLUE: "#4da6e0"}
"""Colours that need more light on a dark page."""

LANES: Sequence[str] = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BROWN, GREY)
"""Colours of flows and connections, in order."""

OTHERS: Sequence[str] = ("#5b6470", "#a0522d", "#7a5195", "#3b7a57", "#9a8c23", "#b0617a", "#4c6a92", "#7d7d7d")
"""Colours of what is no flow: ports of switches and their queues."""

DATA, RETRANS, ACK, STALL = BLUE, VERMILION, GREEN, ORANGE
"""Colours of a time-sequence figure."""

SACK, UNA, WINDOW = PURPLE, GREEN, BROWN
RECOVERY = {True: ORANGE, False: VERMILION}
"""Colours of a time-sequence figure with SACK blocks; of a fast recovery's time and of one after a timeout."""

FATE_COLOURS = {"dropped": PURPLE, "marked CE": BROWN}
"""Colours of what a switch did, in the same figure."""


@dataclass(frozen=True)
class Look:
    """How a verdict looks: never by colour alone."""

    colour: str
    sign: str
    rich: str


VERDICT_LOOKS = {
    "pass": Look(GREEN, "✓", "green"),
    "fail": Look(VERMILION, "✗", "red"),
    "invalid": Look(ORANGE, "?", "yellow"),
    "skip": Look(GREY, "–", "bright_black"),
    "broken": Look(PURPLE, "!", "magenta"),
}
SHOWN_LOOKS = {**VERDICT_LOOKS, UNJUDGED: Look(GREY, "·", "bright_black")}
"""Of verdicts, and of a point of a run in progress that is not judged yet."""


CLAIM_LOOKS = {
    "reproduced": Look(GREEN, "✓", "green"),
    "differs": Look(ORANGE, "≠", "yellow"),
    "holds": Look(GREEN, "✓", "green"),
    "fails": Look(VERMILION, "✗", "red"),
    "not measured": Look(GREY, "?", "bright_black"),
}
"""How a paper's claim looks."""
