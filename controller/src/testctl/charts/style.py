# SPDX-License-Identifier: Apache-2.0
"""Colours and signs that the page, the figures and the terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testctl.results.layout import UNJUDGED

# Okabe and Ito's palette, told apart with any colour vision ("Color Universal Design", 2008).
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, GREY, BROWN = "#cc79a7", "#8a8f98", "#8c6d31"

ON_DARK = {
    BLUE: "#4da6e0", "#a08c00": "#e0d24a", "#3a129c": "#6a6cff", "#4490fe": "#c4e4ff", "#5d5b13": "#85882a",
    "#355f6a": "#22d6d0", "#9a35b8": "#b865d6", "#352e0d": "#b5b48a",
}  # fmt: skip
"""The colours of LANES, and what they are on a dark page, where they need more light."""

LANES: Sequence[str] = tuple(ON_DARK)
"""Colours of flows and connections, and of a parameter's values, in order: yellow to violet over blue, dark and light.
None has the hue of a verdict's, and with any colour vision they differ in light or hue."""

VIRIDIS: Sequence[tuple[int, int, int]] = (
    (68, 1, 84), (68, 57, 131), (49, 104, 142), (33, 145, 140), (53, 183, 121), (144, 215, 67), (253, 231, 37),
)  # fmt: skip
"""A scale from little to much at seven places, as red, green and blue: told apart with any colour vision, and in grey
("Viridis", van der Walt and Smith, 2015)."""

OTHERS: Sequence[str] = ("#5b6470", "#7a5195", "#4c6a92", "#8d8a3a", "#3f7f8c", "#7d7d7d")
"""Colours of what is no flow: ports of switches and their queues."""

DATA, RETRANS, ACK, STALL = BLUE, VERMILION, GREEN, ORANGE
"""Colours of a time-sequence figure."""

SACK, UNA, WINDOW = PURPLE, GREEN, BROWN
RECOVERY = {True: ORANGE, False: VERMILION}
"""Colours of a time-sequence figure with SACK blocks; of a fast recovery's time and of one after a timeout."""

VIOLATION = PURPLE
"""Colour of the moment at which an expectation over time is violated."""

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
