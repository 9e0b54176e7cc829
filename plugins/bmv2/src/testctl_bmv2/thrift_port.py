# SPDX-License-Identifier: Apache-2.0
"""The port of BMv2's Thrift server, closed to everybody but the agent's own host.

BMv2 opens it on all addresses without authentication: anyone who can reach it may rewrite tables, queues
and registers.  It has no option for an address, so that nftables drops what does not come from loopback.
"""

from __future__ import annotations

import shutil

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import subprocesses

_RULES = """\
table inet {name}
delete table inet {name}
table inet {name} {{
    chain input {{
        type filter hook input priority -300; policy accept;
        iif != "lo" tcp dport {port} drop
    }}
}}
"""


def unavailable() -> str:
    """Why a port can't be closed here; "" when it can."""
    return "" if shutil.which("nft") else "want nft (nftables) on PATH, to close BMv2's Thrift port; got none"


def _name(port: int) -> str:
    return f"testctl_bmv2_{port}"


def close(port: int) -> None:
    """Before anybody listens there.  Raises TestbedError."""
    if reason := unavailable():
        raise TestbedError(f"BMv2: {reason}")
    subprocesses.run(["nft", "-f", "-"], stdin=_RULES.format(name=_name(port), port=port))


def forget(port: int) -> None:
    """Take the rule away, once nobody listens there.  Raises TestbedError."""
    name = _name(port)
    subprocesses.run(["nft", "-f", "-"], stdin=f"table inet {name}\ndelete table inet {name}\n")
