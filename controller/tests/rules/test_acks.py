# SPDX-License-Identifier: Apache-2.0
"""Acknowledgements."""

from __future__ import annotations

from controller.tests.rules.conversation import HELLO, HELLO_B, found


def test_the_acknowledgment_number_is_the_next_octet_that_is_expected() -> None:
    """RFC 9293, 3.4."""
    gap = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b < A 2000:3000 ack 0
        20000 b > A ack {} sack 2000:3000
    """
    )
    assert found("ack-of-unsent", gap.format(1000), host="b").count == 0
    result = found("ack-of-unsent", gap.format(3000), host="b")
    assert result.count == 1
    assert result.first[0].text == "acknowledges 3000, but only up to 1000 had arrived"


def test_data_that_fills_a_gap_is_acknowledged_with_what_lies_behind_it() -> None:
    filled = (
        HELLO_B
        + """
        20000 b < A 1000:2000 ack 0
        20000 b < A 0:1000 ack 0
        20000 b > A ack {}
    """
    )
    assert found("ack-of-unsent", filled.format(2000), host="b").count == 0
    assert found("ack-of-unsent", filled.format(2001), host="b").count == 1


def test_rcv_nxt_is_advanced_never_back() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        21000 b > A ack {}
    """
    )
    assert found("ack-moves-back", talk.format(1000), host="b").count == 0
    assert found("ack-moves-back", talk.format(999), host="b").count == 1


def test_segments_fit_the_current_window() -> None:
    """RFC 9293, 3.8.6: a probe of one byte is let pass."""
    full = (
        HELLO.replace("64000", "1500")
        + """
        20000 a > A 0:1000 ack 0
        30000 a < A ack 1000 win 500
        30000 a > A {} ack 0
    """
    )
    assert found("beyond-window", full.format("1000:1500")).count == 0
    assert found("beyond-window", full.format("1500:1501")).count == 0
    assert found("beyond-window", full.format("1000:1502")).count == 1
