# SPDX-License-Identifier: Apache-2.0
"""The connections that a switch tells apart, and the numbers that its program knows them by.

    flows = "none" | flow {";" flow}
    flow  = NAME "/" CONNECTION "tcp" ADDRESS ":" PORT ADDRESS ":" PORT ["reversed"]

Source first, sink second; an IPv6 address stands in brackets; the sink sends the data of a reversed flow.
The flow at place k (from 0) has the ids 1 + 2 k forward and 2 + 2 k backward; id 0 is what belongs to no flow.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_CONNECTIONS = 2048
"""Ids go up to 4096: the size of the program's registers."""

NONE = "none"

_FLOW = re.compile(
    r"(?P<name>[a-z][a-z0-9_]{0,30})/(?P<conn>[0-9]{1,4}) tcp "
    r"(?P<source>[0-9.]+|\[[0-9a-f:.]+\]):(?P<sport>[0-9]{1,5}) (?P<sink>[0-9.]+|\[[0-9a-f:.]+\]):(?P<dport>[0-9]{1,5})"
    r"(?P<reversed> reversed)?"
)
_WANT = "NAME/CONNECTION tcp ADDRESS:PORT ADDRESS:PORT [reversed]"


@dataclass(frozen=True)
class Connection:
    """One connection of a flow; addresses as text, IPv4 or IPv6."""

    flow: str
    conn: int
    source: str
    source_port: int
    sink: str
    sink_port: int
    reversed: bool = False

    def direction_of(self, *, acks: bool) -> int:
        """The direction of the flow's data, or of its ACKs: 0 forward, 1 backward."""
        return int(acks != self.reversed)


def flow_id(place: int, direction: int) -> int:
    """The id of a connection by its place among all and the direction (0 forward, 1 backward)."""
    return 1 + 2 * place + direction


def parse(text: str) -> tuple[Connection, ...]:
    """The connections of a text, in the order of their ids.  Raises ValueError "want …; got …"."""
    if text.strip() == NONE:
        return ()
    parts = text.split(";")
    if len(parts) > MAX_CONNECTIONS:
        raise ValueError(f"want at most {MAX_CONNECTIONS} connections; got {len(parts)}")
    return tuple(_connection(" ".join(part.split())) for part in parts)


def show(connections: Iterable[Connection]) -> str:
    """The canonical text: what `parse` reads back."""
    return "; ".join(map(_shown, connections)) or NONE


def _connection(text: str) -> Connection:
    match = _FLOW.fullmatch(text)
    if match is None:
        raise ValueError(f"want {_WANT}; got {text[:80]!r}")
    ports = int(match["sport"]), int(match["dport"])
    try:
        source, sink = (str(ipaddress.ip_address(match[end].strip("[]"))) for end in ("source", "sink"))
    except ValueError as error:
        raise ValueError(f"want {_WANT}; got {text[:80]!r}: {error}") from error
    if max(ports) > 65535 or not all(ports) or (":" in source) != (":" in sink):
        raise ValueError(f"want {_WANT}, of one IP version, ports from 1 to 65535; got {text[:80]!r}")
    back = match["reversed"] is not None
    return Connection(match["name"], int(match["conn"]), source, ports[0], sink, ports[1], back)


def _shown(c: Connection) -> str:
    source, sink = (f"[{end}]" if ":" in end else end for end in (c.source, c.sink))
    back = " reversed" if c.reversed else ""
    return f"{c.flow}/{c.conn} tcp {source}:{c.source_port} {sink}:{c.sink_port}{back}"
