# SPDX-License-Identifier: Apache-2.0
"""What values the well-known sysctls of net.ipv4 take; the others take any line of text.

Source: Documentation/networking/ip-sysctl.rst and net/ipv4/sysctl_net_ipv4.c of Linux 6.1, 6.12 and 7.3.
"""

from __future__ import annotations

import re

from testctl_agent.params.types import Fields, Never
from testctl_agent.spec.types import Choice, Int, Value, ValueType

_ON_OFF = Choice((0, 1))
_THREE = Fields(count=3)
_BYTE = Int(0, 255)
_INT = Int(0, 2**31 - 1)
_UINT = Int(0, 2**32 - 1)

KNOWN: dict[str, ValueType] = {
    "icmp_echo_enable_probe": _ON_OFF,
    "icmp_echo_ignore_all": _ON_OFF,
    "icmp_echo_ignore_broadcasts": _ON_OFF,
    "icmp_errors_extension_mask": _BYTE,
    "icmp_errors_use_inbound_ifaddr": _ON_OFF,
    "icmp_ignore_bogus_error_responses": _ON_OFF,
    "icmp_msgs_burst": _INT,
    "icmp_msgs_per_sec": _INT,
    "icmp_ratelimit": _INT,
    "icmp_ratemask": _INT,
    "ip_autobind_reuse": _ON_OFF,
    "ip_default_ttl": Int(1, 255),
    "ip_dynaddr": _BYTE,
    "ip_early_demux": _BYTE,
    "ip_forward_update_priority": _ON_OFF,
    "ip_forward_use_pmtu": _BYTE,
    "ip_local_port_range": Fields(count=2),
    "ip_local_port_step_width": _UINT,
    "ip_local_reserved_ports": Fields(),
    "ip_no_pmtu_disc": _BYTE,
    "ip_nonlocal_bind": _BYTE,
    "ip_unprivileged_port_start": Int(0, 65535),
    "tcp_abort_on_overflow": _ON_OFF,
    "tcp_adv_win_scale": Int(-31, 31),
    "tcp_app_win": Int(0, 31),
    "tcp_autocorking": _ON_OFF,
    "tcp_backlog_ack_defer": _ON_OFF,
    "tcp_base_mss": _INT,
    "tcp_challenge_ack_limit": _INT,
    "tcp_child_ehash_entries": Int(0, 2**24),
    "tcp_comp_sack_delay_ns": _INT,
    "tcp_comp_sack_nr": Int(0, 255),
    "tcp_comp_sack_rtt_percent": Int(1, 1000),
    "tcp_comp_sack_slack_ns": _INT,
    "tcp_dsack": _ON_OFF,
    "tcp_early_demux": _BYTE,
    "tcp_early_retrans": Choice((0, 1, 2, 3, 4)),
    "tcp_ecn": Choice((0, 1, 2, 3, 4, 5)),
    "tcp_ecn_fallback": _ON_OFF,
    "tcp_ecn_option": Choice((0, 1, 2, 3)),
    "tcp_ecn_option_beacon": Choice((0, 1, 2, 3)),
    "tcp_fack": _ON_OFF,
    "tcp_fastopen": _INT,
    "tcp_fastopen_blackhole_timeout_sec": _INT,
    "tcp_fin_timeout": Int(1, 2**31 // 1000),
    "tcp_frto": Choice((0, 1, 2)),
    "tcp_fwmark_accept": _BYTE,
    "tcp_invalid_ratelimit": _INT,
    "tcp_keepalive_intvl": Int(1, 32767),
    "tcp_keepalive_probes": Int(1, 127),
    "tcp_keepalive_time": Int(1, 32767),
    "tcp_l3mdev_accept": _ON_OFF,
    "tcp_limit_output_bytes": _INT,
    "tcp_max_reordering": _INT,
    "tcp_max_syn_backlog": _INT,
    "tcp_max_tw_buckets": _INT,
    "tcp_migrate_req": _ON_OFF,
    "tcp_min_rtt_wlen": Int(0, 86400),
    "tcp_min_snd_mss": Int(48, 65535),
    "tcp_min_tso_segs": Int(1, 65535),
    "tcp_moderate_rcvbuf": _ON_OFF,
    "tcp_mtu_probe_floor": Int(48, 65535),
    "tcp_mtu_probing": Choice((0, 1, 2)),
    "tcp_no_metrics_save": _ON_OFF,
    "tcp_no_ssthresh_metrics_save": _ON_OFF,
    "tcp_notsent_lowat": _UINT,
    "tcp_orphan_retries": _BYTE,
    "tcp_pacing_ca_ratio": Int(0, 1000),
    "tcp_pacing_ss_ratio": Int(0, 1000),
    "tcp_pingpong_thresh": Int(1, 255),
    "tcp_plb_cong_thresh": Int(0, 256),
    "tcp_plb_enabled": _ON_OFF,
    "tcp_plb_idle_rehash_rounds": Int(0, 31),
    "tcp_plb_rehash_rounds": Int(0, 31),
    "tcp_plb_suspend_rto_sec": _BYTE,
    "tcp_probe_interval": Int(0, 2**32 // 1000),
    "tcp_probe_threshold": _INT,
    "tcp_rcvbuf_low_rtt": _INT,
    "tcp_recovery": Int(0, 7),
    "tcp_reflect_tos": _ON_OFF,
    "tcp_reordering": Int(1, 2**31 - 1),
    "tcp_retrans_collapse": _ON_OFF,
    "tcp_retries1": Int(1, 255),
    "tcp_retries2": Int(1, 255),
    "tcp_rfc1337": _BYTE,
    "tcp_rmem": _THREE,
    "tcp_rto_max_ms": Int(1000, 120_000),
    "tcp_rto_min_us": Int(1, 2**31 - 1),
    "tcp_sack": _ON_OFF,
    "tcp_shrink_window": _ON_OFF,
    "tcp_slow_start_after_idle": _ON_OFF,
    "tcp_stdurg": _BYTE,
    "tcp_syn_linear_timeouts": Int(0, 127),
    "tcp_syn_retries": Int(1, 127),
    "tcp_synack_retries": Int(0, 255),
    "tcp_syncookies": Choice((0, 1, 2)),
    "tcp_thin_linear_timeouts": _ON_OFF,
    "tcp_timestamps": Choice((0, 1, 2)),
    "tcp_tso_rtt_log": Int(0, 255),
    "tcp_tso_win_divisor": _INT,
    "tcp_tw_reuse": Choice((0, 1, 2)),
    "tcp_tw_reuse_delay": Int(1, 60_000),
    "tcp_window_scaling": _ON_OFF,
    "tcp_wmem": _THREE,
    "tcp_workaround_signed_windows": _ON_OFF,
    "udp_child_hash_entries": _INT,
    "udp_early_demux": _BYTE,
    "udp_l3mdev_accept": _ON_OFF,
    "udp_rmem_min": Int(1, 2**31 - 1),
    "udp_wmem_min": Int(1, 2**31 - 1),
}
"""Name below net.ipv4 -> type: the values of the newest kernel.  These names may be written without "net.ipv4."."""

_FORWARDING = (
    "it sets other sysctls of all devices with it, such as accept_redirects, which a restore would not bring back"
)
_PER_DEVICE = "it switches off the device's LRO with it, which a restore would not bring back"
_ROUNDED = "a restore would bring back a rounded value: set {} instead"
_NEVER: tuple[tuple[str, str], ...] = (
    (r"ip_forward|conf\.all\.forwarding", _FORWARDING),
    (r"conf\.(?!default\.).*\.forwarding", _PER_DEVICE),
    (r"neigh\..*\.base_reachable_time", _ROUNDED.format("base_reachable_time_ms")),
    (r"neigh\..*\.retrans_time", _ROUNDED.format("retrans_time_ms")),
    (r"neigh\..*\.unres_qlen", _ROUNDED.format("unres_qlen_bytes")),
    (r"tcp_fastopen_key", "it is a secret, and one that is not set can't be brought back"),
    (r"tcp_congestion_control", "it may load a module for good: set cc instead"),
)


def type_of(name: str) -> ValueType:
    """The type of net.ipv4.NAME.  What a restore could not bring back takes no value."""
    for pattern, why in _NEVER:
        if re.fullmatch(pattern, name):
            return Never(why)
    return KNOWN.get(name, Fields())


def comes_with(name: str, value: Value) -> str:
    """The full name of the sysctl that every kernel has which has this value of net.ipv4.NAME; "" where all have it.

    Accurate ECN (RFC 9768) came with Linux 6.18.
    """
    return "net.ipv4.tcp_ecn_option" if name == "tcp_ecn" and value in (3, 4, 5) else ""


def device_of(name: str) -> str:
    """Whose net.ipv4.NAME is: of a device by its name; "" when it is no device's."""
    match = re.fullmatch(r"(?:conf|neigh)\.(.+)\.[^.]+", name)
    return match[1] if match and match[1] not in ("all", "default") else ""
