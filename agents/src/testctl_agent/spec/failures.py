# SPDX-License-Identifier: Apache-2.0
"""How a connection may fail: a result of the test, unlike a generator that fails for another reason."""

from __future__ import annotations

INCOMPLETE = "incomplete"
FAILURES: dict[str, str] = {
    "ETIMEDOUT": "no answer: to SYNs, to data (tcp_retries2, TCP_USER_TIMEOUT) or to keepalive probes",
    "ECONNRESET": "the peer sent a RST",
    "ECONNREFUSED": "the peer answered the SYN with a RST",
    "ECONNABORTED": "it was aborted at this end",
    "EPIPE": "it was written to after the connection's end",
    "EHOSTUNREACH": "no route to the host, or it did not answer ARP or neighbour discovery",
    "ENETUNREACH": "no route to the network",
    INCOMPLETE: "it did not end within a minute after the flow's end, or without all of its bytes",
}
"""By the name of the errno that the application got; INCOMPLETE: it got none."""
