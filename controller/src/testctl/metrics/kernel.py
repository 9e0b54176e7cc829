# SPDX-License-Identifier: Apache-2.0
"""What the kernels at both ends of a flow counted while the point ran: /proc/net/snmp and /proc/net/netstat, after less
before.

A kernel counts by host (network namespace) and not by flow: all connections of the host, whichever end of them it is.
`kernel_loss_probes` is TcpExt.TCPLossProbes: the kernel's name in small letters and without TCP before it, of the host
that sends the flow's data, of the one that receives it, or of both, as stated with each.  A name that a kernel
lacks is NaN.
"""

from __future__ import annotations

import re

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_SENDER = {
    "Tcp.RetransSegs": "segments sent again, SYN, SYN-ACK and FIN too",
    "Tcp.AttemptFails": "connections that failed while they were opened",
    "Tcp.EstabResets": "established connections that were reset",
    "TcpExt.TCPTimeouts": "times that a retransmission timer ran out",
    "TcpExt.TCPSpuriousRTOs": "timeouts that F-RTO found to be spurious",
    "TcpExt.TCPLossProbes": "tail loss probes",
    "TcpExt.TCPLossProbeRecovery": "losses that a tail loss probe repaired",
    "TcpExt.TCPSackRecovery": "fast recoveries with SACK",
    "TcpExt.TCPRenoRecovery": "fast recoveries without SACK",
    "TcpExt.TCPSackRecoveryFail": "fast recoveries with SACK that a timeout ended",
    "TcpExt.TCPRenoRecoveryFail": "fast recoveries without SACK that a timeout ended",
    "TcpExt.TCPSackFailures": "timeouts with SACK in disorder",
    "TcpExt.TCPRenoFailures": "timeouts without SACK in disorder",
    "TcpExt.TCPLossFailures": "timeouts while an earlier one was being repaired",
    "TcpExt.TCPFastRetrans": "segments sent again in fast recovery",
    "TcpExt.TCPSlowStartRetrans": "segments sent again after a timeout, in slow start",
    "TcpExt.TCPLostRetransmit": "retransmissions that were lost",
    "TcpExt.TCPRetransFail": "retransmissions that could not be handed to IP",
    "TcpExt.TCPSynRetrans": "SYN and SYN-ACK sent again",
    "TcpExt.TCPSpuriousRtxHostQueues": "retransmissions put off, the original still in the host's queue",
    "TcpExt.TCPFullUndo": "reductions undone by time stamps when a recovery ended",
    "TcpExt.TCPPartialUndo": "reductions undone by time stamps in a recovery",
    "TcpExt.TCPDSACKUndo": "reductions undone, as DSACKs reported each retransmission",
    "TcpExt.TCPLossUndo": "reductions of timeouts undone",
    "TcpExt.TCPDSACKRecv": "DSACKs that came for what had been acknowledged",
    "TcpExt.TCPDSACKOfoRecv": "DSACKs that came for what was out of order",
    "TcpExt.TCPDSACKIgnoredOld": "DSACKs ignored as too old",
    "TcpExt.TCPDSACKIgnoredNoUndo": "DSACKs that were no reason to undo anything",
    "TcpExt.TCPSACKReneging": "times that a receiver took back what it had SACKed",
    "TcpExt.TCPSACKDiscard": "SACK blocks of nothing that is outstanding",
    "TcpExt.TCPSackShiftFallback": "times that what was SACKed could not be merged with what is before it",
    "TcpExt.TCPSACKReorder": "reordering seen by SACK",
    "TcpExt.TCPTSReorder": "reordering seen by time stamps",
    "TcpExt.TCPRenoReorder": "reordering seen by duplicate ACKs",
    "TcpExt.TCPHystartTrainDetect": "slow starts that HyStart ended by the length of an ACK train",
    "TcpExt.TCPHystartDelayDetect": "slow starts that HyStart ended by delay",
    "TcpExt.TCPDelivered": "segments delivered",
    "TcpExt.TCPDeliveredCE": "segments delivered whose ACK had ECE",
    "TcpExt.TCPOrigDataSent": "segments of data sent, retransmissions not counted",
    "TcpExt.TCPAutoCorking": "small writes that waited for what was in the host's queue",
    "TcpExt.TCPWinProbe": "probes of a closed window",
    "TcpExt.TCPKeepAlive": "keepalive probes",
    "TcpExt.TCPMTUPFail": "MTU probes that were lost",
    "TcpExt.TCPMTUPSuccess": "MTU probes that arrived",
    "TcpExt.TCPAbortOnTimeout": "connections ended because a timer gave up",
    "TcpExt.TcpTimeoutRehash": "times that a timeout chose another path (flow label)",
}
_RECEIVER = {
    "TcpExt.DelayedACKs": "ACKs that the delayed-ACK timer sent",
    "TcpExt.DelayedACKLost": "delayed ACKs that were lost, as the same data came again",
    "TcpExt.TCPAckCompressed": "ACKs that SACK compression held back",
    "TcpExt.TCPDSACKOldSent": "DSACKs sent for what had been acknowledged",
    "TcpExt.TCPDSACKOfoSent": "DSACKs sent for what was out of order",
    "TcpExt.TCPOFOQueue": "segments that came out of order",
    "TcpExt.TCPOFODrop": "out of order segments dropped for want of memory",
    "TcpExt.TCPRcvCoalesce": "segments merged in the receive queue",
    "TcpExt.TCPRcvCollapsed": "buffers copied together for want of memory",
    "TcpExt.PruneCalled": "times that the receive buffer was full",
    "TcpExt.TCPRcvQDrop": "segments dropped as the receive buffer was full",
    "TcpExt.TCPZeroWindowDrop": "segments dropped as the window was closed",
    "TcpExt.TCPToZeroWindowAdv": "times that the window was closed",
    "TcpExt.TCPFromZeroWindowAdv": "times that the window was opened again",
    "TcpExt.TCPBacklogDrop": "segments dropped as the socket's backlog was full",
    "TcpExt.ListenDrops": "connections dropped at the listening socket",
    "TcpExt.ListenOverflows": "of these, because its accept queue was full",
    "TcpExt.OfoPruned": "times that segments behind a gap were dropped for want of memory",
    "TcpExt.RcvPruned": "times that this did not free enough memory, and segments were dropped",
    "TcpExt.TCPWantZeroWindowAdv": "times that the window would have been closed, had it not been offered",
    "TcpExt.TcpDuplicateDataRehash": "times that data that came again on another path chose another one (flow label)",
    "Tcp.OutSegs": "segments sent, ACKs and SYNs too, but not what was sent before",
}
_BOTH = {
    "TcpExt.TCPChallengeACK": "challenge ACKs (RFC 5961)",
    "TcpExt.TCPSYNChallenge": "challenge ACKs that answer a SYN",
    "Tcp.InErrs": "segments that were wrong: of their checksum, or a SYN in a connection",
    "TcpExt.PAWSEstab": "segments dropped for an old time stamp (PAWS)",
}
"""What either end may count as often: the sum of both."""


def _name(counter: str) -> str:
    """The metric of a counter: kernel_loss_probes of TcpExt.TCPLossProbes."""
    name = re.sub(r"^T(?:CP|cp)", "", counter.partition(".")[2]).replace("ACKs", "Acks").replace("RTOs", "Rtos")
    return "kernel_" + re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_NAMES = {counter: _name(counter) for counter in (*_SENDER, *_RECEIVER, *_BOTH)}

SPEC = MetricSpec(
    name="kernel",
    help="the kernels' own counters of the hosts at both ends, of all their connections",
    needs="counters",
    values=tuple(
        MetricInfo(_NAMES[counter], "", f"{counter} of the {end}: {what}")
        for end, counters in (("sender", _SENDER), ("receiver", _RECEIVER), ("two ends", _BOTH))
        for counter, what in counters.items()
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    sender, receiver = records.snmp(seen.sender), records.snmp(seen.receiver)
    ends = ((sender, _SENDER), (receiver, _RECEIVER))
    numbers: dict[str, Number] = {_NAMES[name]: snmp.get(name, NAN) for snmp, names in ends for name in names}
    return numbers | {_NAMES[name]: sender.get(name, NAN) + receiver.get(name, NAN) for name in _BOTH}
