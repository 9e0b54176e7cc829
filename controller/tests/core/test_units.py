# SPDX-License-Identifier: Apache-2.0
"""Values of metrics as messages compare them."""

from __future__ import annotations

import pytest
from testctl.core.units import exact_metric, show_metric


@pytest.mark.parametrize(
    ("metric", "value", "want"),
    [
        ("throughput_bps", 99_000_000, "99 Mb/s"),
        ("throughput_bps", 42_733_149, "42.7331 Mb/s"),
        ("throughput_bps", 12, "12 bit/s"),
        ("throughput_bps", 0, "0"),
        ("stall_longest_ms", 209.25, "209.25 ms"),
        ("completion_time_s", 0.0000425, "42.5 µs"),
        ("latency_p99_us", 0.25, "250 ns"),
        ("own_queue_max_bytes", 30_000, "30 kB"),
        ("own_queue_max_bytes", -999, "-999 B"),
        ("jain", 0.3016559, "0.301656"),
        ("recovery_sent_pattern", "1 0 1", "1 0 1"),
    ],
)
def test_a_value_is_shown_to_six_digits_with_its_unit(metric: str, value: float | str, want: str) -> None:
    assert exact_metric(metric, value) == want


@pytest.mark.parametrize(
    ("metric", "value", "want"),
    [
        ("switch_queue_max_bytes", 999_968, "1 MB"),
        ("switch_queue_max_bytes", 999_400, "999 kB"),
        ("throughput_bps", 999_700_000, "1 Gb/s"),
        ("latency_p99_us", 999_600, "1 s"),
    ],
)
def test_a_number_is_never_1000_of_its_unit(metric: str, value: float, want: str) -> None:
    assert show_metric(metric, value) == want
