# SPDX-License-Identifier: Apache-2.0
"""How long a retransmission timer ran."""

from __future__ import annotations

from testctl.metrics.timeouts import _lengths_ms

MS = 10**6


def test_new_data_does_not_start_the_timer_again() -> None:
    assert _lengths_ms([(0, 168 * MS, "new_data"), (168 * MS, 40 * MS, "rto")]) == [208.0]


def test_an_ack_in_between_does() -> None:
    assert _lengths_ms([(0, 168 * MS, "ack"), (168 * MS, 203 * MS, "rto")]) == [203.0]
    assert _lengths_ms([(0, 10 * MS, "new_data"), (50 * MS, 203 * MS, "rto")]) == [203.0]
