# SPDX-License-Identifier: Apache-2.0
"""What is not as it was."""

from testctl.testbeds.point_runner import drift


def test_drift_names_who_what_was_and_is() -> None:
    before = {"h1": {"sysctl net.ipv4.tcp_sack": "1", "link eth0 mtu": "1500", "gone": "x"}, "h2": {"a": "b"}}
    after = {"h1": {"sysctl net.ipv4.tcp_sack": "0", "link eth0 mtu": "1500", "new": "y"}, "h2": {"a": "b"}}
    assert drift(before, after) == [
        "h1: gone was x, is not there after the point",
        "h1: new was not there, is y after the point",
        "h1: sysctl net.ipv4.tcp_sack was 1, is 0 after the point",
    ]


def test_nobody_attested_nothing_drifted() -> None:
    assert drift({}, {}) == []
