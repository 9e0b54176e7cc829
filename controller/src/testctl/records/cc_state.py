# SPDX-License-Identifier: Apache-2.0
"""What a congestion control says of itself, as columns of TCP_EVENTS: union tcp_cc_info of linux/inet_diag.h."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testctl.records.schema import BBR_PHASES, CC_COLUMNS, Array, Bools

VEGAS, DCTCP, BBR = 3, 9, 16
"""INET_DIAG_VEGASINFO, INET_DIAG_DCTCPINFO, INET_DIAG_BBRINFO."""

_GAIN_UNIT = 1 << 8
_ALPHA_UNIT = 1 << 10
_UNKNOWN_RTTS_US = (0, 2**31 - 1, 2**32 - 1)
"""Before the first sample: 0, Vegas' 0x7fffffff, BBR's ~0."""
MOST_RATE = (2**63 - 1) // 8
"""The largest rate in bytes/s that a column can have in bit/s."""


def cc_columns(kind: Array, info: Array) -> Mapping[str, Array]:
    """CC_COLUMNS of the events' cc_kind and cc (n x 5 words of 32 bits); -1 where a congestion control has no such
    state."""
    first, second, third, fourth, fifth = (column.astype(np.int64) for column in info.T)
    bbr, dctcp, vegas = kind == BBR, kind == DCTCP, kind == VEGAS
    bbr &= fourth > 0  # its gains are set with the first ACK
    dctcp &= (first & 0xFFFF) == 1  # else ECN was not negotiated, and it is Reno
    vegas &= first > 0
    bandwidth = np.minimum(info[:, 1].astype(np.uint64) << np.uint64(32) | info[:, 0], MOST_RATE).astype(np.int64)
    pacing_gain, cwnd_gain = fourth / _GAIN_UNIT, fifth / _GAIN_UNIT
    columns: dict[str, Array] = {
        "phase": np.where(bbr, _phase(pacing_gain, cwnd_gain), -1).astype(np.int8),
        "pacing_gain": np.where(bbr, pacing_gain, -1.0),
        "cwnd_gain": np.where(bbr, cwnd_gain, -1.0),
        "cc_bw_bps": np.where(bbr, bandwidth * 8, -1),
        "cc_rtt_us": _rtt_us(third, vegas),
        "cc_min_rtt_us": np.where(bbr, _rtt_us(third, bbr), _rtt_us(fourth, vegas)),
        "dctcp_alpha": np.where(dctcp, second / _ALPHA_UNIT, -1.0),
        "dctcp_ce": np.where(dctcp, first >> 16, -1).astype(np.int8),
    }
    return {name: columns[name] for name in CC_COLUMNS}


def _phase(pacing_gain: Array, cwnd_gain: Array) -> Array:
    """Index of BBR_PHASES: by the gains of BBR 1 (2.89 and 2.89; 0.34 and 2.89; 0.75 to 1.25 and 2; 1 and 1), with
    bounds that BBR 3's gains keep too."""
    phases = {
        "startup": pacing_gain > 2,
        "drain": pacing_gain < 0.7,
        "probe_rtt": cwnd_gain <= 1,
    }
    return np.select(list(phases.values()), list(map(BBR_PHASES.index, phases)), BBR_PHASES.index("probe_bw"))


def _rtt_us(value: Array, there: Bools) -> Array:
    return np.where(there & ~np.isin(value, _UNKNOWN_RTTS_US), value, -1)
