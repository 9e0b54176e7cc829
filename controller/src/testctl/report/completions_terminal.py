# SPDX-License-Identifier: Apache-2.0
"""The table of slowdowns of a run's requests, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from testctl.core.point import POINT_WIDE
from testctl.core.units import show_time
from testctl.metrics import CLASSES, TAILS, WHICH
from testctl.report.factors import Factor, factors
from testctl.results import RunPoint

MAX_ROWS = 200


def slowdown_table(points: Sequence[RunPoint], width: int) -> Table | None:
    """A row a point, flow that makes requests and class of sizes; None where no flow makes any.

    What the point sets is left out where it takes more than half of the width, in characters.
    """
    varying = factors(points)
    if sum(max(map(len, (factor.label, *factor.values))) + 1 for factor in varying) > width / 2:
        varying = []
    rows = list(_rows(points, varying))
    if not rows or len(rows) > MAX_ROWS:
        return None
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    headings = ["point", *(factor.label for factor in varying), "flow", "requests"]
    for heading in headings:
        table.add_column(heading, overflow="fold")
    tails = [tail.replace("p999", "p99.9") for tail in TAILS]
    for heading in ("FCT p50", "FCT p99", f"slowdown\n{tails[0]}", *(f"\n{tail}" for tail in tails[1:])):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _rows(points: Sequence[RunPoint], varying: Sequence[Factor]) -> Iterator[list[str]]:
    for point in points:
        for flow, values in point.metrics.items():
            for one in CLASSES if flow != POINT_WIDE else ():
                times = [values.get(f"fct_{one}_{tail}_us") for tail in ("p50", "p99")]
                slow = [values.get(f"slowdown_{one}_{tail}") for tail in TAILS]
                if isinstance(times[0], int | float):
                    yield [
                        point.id[:8], *(factor.of[point.id] for factor in varying), flow, WHICH[one],
                        *(show_time(float(took) * 1e3) if isinstance(took, int | float) else "–" for took in times),
                        *(f"{value:.3g}" if isinstance(value, int | float) else "–" for value in slow),
                    ]  # fmt: skip
