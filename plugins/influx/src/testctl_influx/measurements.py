# SPDX-License-Identifier: Apache-2.0
"""What a run is in InfluxDB: its measurements, their tags and fields.  docs/reference/influxdb.md is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

RUN_TAGS = ("plan", "run", "testbed", "options")
"""testbed: lab, netns or an inventory; options: --set and --without of the run, such as hosts.kernel='6.1'."""
SERIES_OF_RUNS = ("plan", "testbed", "options")
"""What runs have in common of which each is compared with the one before, as nightly runs are."""
POINT_TAGS = (*RUN_TAGS, "point", "verdict", "kernel", "cc")
SERIES_TAGS = (*RUN_TAGS, "point", "flow", "kernel", "cc")


@dataclass(frozen=True)
class Measurement:
    """One measurement.

    tags        besides which `parameters` adds one a tuple, "<entity>.<parameter>"
    fields      {name: what it is}; numbers are floats, the names in `texts` are text
    of_metrics  its fields are the values of the metrics, text where the metric is
    Its time is the run's start; of series and stalls that plus the virtual time.
    """

    name: str
    help: str
    tags: tuple[str, ...]
    fields: dict[str, str] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    parameters: bool = False
    of_metrics: bool = False


MEASUREMENTS = {
    made.name: made
    for made in (
        Measurement(
            "runs",
            "one a run",
            RUN_TAGS,
            {
                "points": "how many points it has",
                **{name: f"of these, how many are {name}" for name in ("pass", "fail", "invalid", "skip", "broken")},
                "wall_s": "how long it took",
                "digest": "over the points' digests",
                "commit": "of the checkout",
                "reproduce": "the command that does it again",
            },
            frozenset({"digest", "commit", "reproduce"}),
        ),
        Measurement(
            "expectations",
            "one an expectation of the plan",
            (*RUN_TAGS, "expectation", "verdict"),
            {
                "points": "how many points it was compared with",
                "failed": "1 when its verdict is fail, else 0",
                "detail": "why",
            },
            frozenset({"detail"}),
        ),
        Measurement(
            "points",
            "one a point",
            POINT_TAGS,
            {
                "wall_s": "how long it took",
                "virtual_s": "how long it took by the testbed's clock",
                "digest": "over its records",
                "reason": "of its verdict",
                "tuples": "what was set, as JSON",
            },
            frozenset({"digest", "reason", "tuples"}),
            parameters=True,
        ),
        Measurement(
            "metrics",
            'one a point and flow; flow "*" is the point as a whole',
            (*POINT_TAGS, "flow"),
            parameters=True,
            of_metrics=True,
        ),
        Measurement(
            "series_throughput",
            "the data direction at the receiver",
            (*SERIES_TAGS, "bin"),
            {"bps": "rate in the bin", "wire_bytes": "bytes in the bin"},
        ),
        Measurement(
            "series_cwnd",
            "the last sample of tcp_info in a bin",
            (*SERIES_TAGS, "bin", "conn"),
            {
                "cwnd": "packets",
                "ssthresh": "packets; 2147483647 is infinite",
                "srtt_us": "smoothed round trip",
                "unacked": "packets in flight",
            },
        ),
        Measurement(
            "series_rtt",
            "round trips of data and ACK, by the ACK's time",
            (*SERIES_TAGS, "bin"),
            {"rtt_us": "mean of the bin", "rtt_us_max": "largest of the bin"},
        ),
        Measurement(
            "series_latency",
            "one-way latency of data, by the time of departure",
            (*SERIES_TAGS, "bin"),
            {"latency_us": "mean of the bin", "latency_us_max": "largest of the bin"},
        ),
        Measurement(
            "series_fct",
            "completion times of requests, by their end",
            (*SERIES_TAGS, "bin"),
            {"fct_us": "mean of the bin", "fct_us_max": "largest of the bin"},
        ),
        Measurement(
            "series_fairness",
            "Jain's index of all connections over time",
            (*SERIES_TAGS, "bin"),
            {"jain": "0 to 1", "connections": "those that last"},
        ),
        Measurement(
            "series_marks",
            "data that arrives with CE",
            (*SERIES_TAGS, "bin"),
            {"ce_share": "share of the packets, 0 to 1", "packets": "of data that arrived"},
        ),
        Measurement(
            "series_queue",
            "queues that data found; place: own (the sender's), network, or a switch port",
            (*SERIES_TAGS, "bin", "place"),
            {"bytes": "longest of the bin"},
        ),
        Measurement(
            "stalls",
            "one a stall, at its start",
            (*SERIES_TAGS, "conn", "cause", "ended_by"),
            {"length_ms": "how long it was", "proof": "the packets that show it"},
            frozenset({"proof"}),
        ),
    )
}
