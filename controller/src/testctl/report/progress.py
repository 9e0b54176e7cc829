# SPDX-License-Identifier: Apache-2.0
"""Progress of a run: steps done and time left; a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from testctl.charts.style import SHOWN_LOOKS
from testctl.core.units import show_time
from testctl.core.words import counted


class Progress:
    """Use as a context manager; `done` after every step.

    Lines read "[ 3/24] dctcp_bug … pass 2.1 s, 0:40 left".  Time left is what the steps done took
    on average, so with several jobs at once it is right as well; steps that cost nothing (re-used
    points) should be given `free`, so that they don't make it look short.
    """

    def __init__(
        self, total: int, console: Console, *, what: str = "points", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = total
        self.count = 0
        self._free = 0
        self._console = console
        self._clock = clock
        self._start = clock()
        self._bar: Bar | None = None
        if console.is_terminal:
            self._bar = Bar(
                TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"),
                console=console, transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task(what, total=total, left="")

    def __enter__(self) -> Self:
        self._start = self._clock()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, name: str, verdict: str = "", wall_s: float | None = None, *, free: bool = False) -> None:
        """A step is done: print its line and move the bar."""
        self.count += 1
        self._free += free
        look = SHOWN_LOOKS.get(verdict)
        width = len(str(self.total))
        line = Text(f"[{self.count:>{width}}/{self.total}] {name}")
        if verdict:
            line.append(" … ").append(verdict, style=look.rich if look else "")
        if wall_s is not None:
            line.append(f" {show_time(wall_s * 1e9)}")
        left = self.left_s()
        if left is not None and self._bar is None:
            line.append(f", {_clock(left)} left")
        self._console.print(line, soft_wrap=True, highlight=False)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.count, left=f"{_clock(left)} left" if left is not None else "")

    def note(self, line: str) -> None:
        """Print a line that is no step."""
        self._console.print(Text(line), soft_wrap=True, highlight=False)

    def left_s(self) -> float | None:
        """Seconds left by the average so far; None before the first step that cost something, and at the end."""
        paid = self.count - self._free
        if not paid or self.count >= self.total:
            return None
        return (self._clock() - self._start) / paid * (self.total - self.count)


class Drawing:
    """Progress of a report that is drawn: a line at the start, and a bar in a terminal."""

    def __init__(self, total: int, console: Console) -> None:
        self._bar: Bar | None = None
        if total < 1:
            return
        console.print(Text(f"drawing the report: {counted(total, 'point')}"), highlight=False)
        if console.is_terminal:
            self._bar = Bar(TextColumn("drawn"), BarColumn(), MofNCompleteColumn(), console=console, transient=True)
            self._task = self._bar.add_task("", total=total)
            self._bar.start()
            atexit.register(self._bar.stop)  # after an interrupt the terminal has its cursor again

    def drawn(self, point: str) -> None:
        """One more is drawn; the bar goes with the last."""
        if self._bar is not None:
            self._bar.advance(self._task)
            if self._bar.finished:
                self._bar.stop()


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
