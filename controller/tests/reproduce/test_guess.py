# SPDX-License-Identifier: Apache-2.0
"""Applications that write by times, guessed by the times of their packets."""

from __future__ import annotations

import pytest
from testctl.reproduce.application import Application
from testctl.reproduce.guess import guesses

MS = 1_000_000


def guessed(
    *pauses: tuple[int, int], last: int = 1_090, ended: str = "FIN", hints: tuple[tuple[int, int], ...] = ()
) -> list[str]:
    """Of a connection with data at these times (ms) after none since others, and the last data then."""
    writes = ((0, 1000), *((at * MS, 1000) for at, _ in pauses))
    quiet = (0, *(since * MS for _, since in pauses), last * MS)
    shown = tuple((at * MS, since * MS) for at, since in hints)
    app = Application("f", 0, True, False, 0, writes, ended=ended, quiet_ns=quiet, hints=shown)
    return list(guesses({"f": (app,)}))


def test_without_a_pause_it_writes_until_some_time() -> None:
    assert guessed() == ["greedy until 1s"]


def test_pauses_at_multiples_of_a_time() -> None:
    assert "on-off 100ms/50ms until 1s" in guessed((150, 108), (300, 255), (600, 557))


def test_data_at_the_end_of_a_write_too() -> None:
    assert "on-off 100ms/50ms until 1s" in guessed((250, 240), (300, 255))


def test_one_pause_is_a_stall_or_more() -> None:
    got = guessed((500, 210))
    assert "stall at 200ms for 300ms until 1s" in got
    assert "stall at 100ms for 400ms until 1s" in got
    assert "on-off 200ms/300ms until 1s" in got


def test_the_only_pause_can_be_the_second_of_a_pattern() -> None:
    assert "on-off 100ms/200ms until 1s" in guessed((600, 427))


def test_data_at_the_begin_of_the_only_pause() -> None:
    assert "stall at 200ms for 300ms until 1s" in guessed((200, 190), (500, 240))


def test_data_that_no_packet_caused_hints_at_times() -> None:
    assert "on-off 100ms/50ms until 1s" in guessed(hints=((150, 142),))
    assert "on-off 100ms/50ms until 1s" in guessed(hints=((450, 443), (850, 843)))


def test_data_at_the_end_is_no_pause() -> None:
    assert guessed((1_000, 950)) == ["greedy until 1s"]


@pytest.mark.parametrize("ended", ["RST", ""])
def test_nothing_is_guessed_of_what_has_no_end(ended: str) -> None:
    assert guessed(ended=ended) == []
