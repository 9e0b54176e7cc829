# SPDX-License-Identifier: Apache-2.0
"""A time server for the machines: python -m machine_rack.ntp ADDRESS.  It never sets this machine's clock.

NTP version 4 as of RFC 5905, section 7.3: client packets are answered, nothing else is done.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

PORT = 123
EPOCH_S = 2_208_988_800
"""From 1900, where NTP begins, to 1970."""
PACKET = struct.Struct("!BBbbII4sQQQQ")
CLIENT, SERVER = 3, 4
STRATUM, PRECISION = 2, -20


def stamp(time_ns: int) -> int:
    """NTP's 64 bits of a time: seconds, and their fraction in 2^-32."""
    seconds, rest_ns = divmod(time_ns, 10**9)
    return ((seconds + EPOCH_S) % 2**32) << 32 | (rest_ns << 32) // 10**9


def answer(asked: bytes, received_ns: int, now_ns: int) -> bytes | None:
    """The server's packet; None for what is no question of a client."""
    if len(asked) < PACKET.size:
        return None
    first, _, poll, _, _, _, _, _, _, _, sent = PACKET.unpack_from(asked)
    version = first >> 3 & 7
    if first & 7 != CLIENT or not 3 <= version <= 4:
        return None
    at = stamp(received_ns)
    head = (version << 3 | SERVER, STRATUM, poll, PRECISION, 0, 1 << 6, b"\x7f\x7f\x01\x00", at)
    return PACKET.pack(*head, sent, at, stamp(now_ns))


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((sys.argv[1], PORT))
        while True:
            asked, client = server.recvfrom(1024)
            received_ns = time.time_ns()
            if (said := answer(asked, received_ns, time.time_ns())) is not None:
                server.sendto(said, client)


if __name__ == "__main__":
    main()
