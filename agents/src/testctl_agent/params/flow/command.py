# SPDX-License-Identifier: Apache-2.0
"""The programs of a flow whose generator is `command`: any of the machine, in the lab and in netns only.

{address}, {server_port}, {client_port} and {bind} in a command line are the server's address and port, the first of
the flow's client ports, and the client's own address.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import partial

from testctl_agent.params.types import Grammar
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value

GENERATOR = "command"
SIDES = ("client", "server")
PLACES = ("address", "server_port", "client_port", "bind")
HONOURED = frozenset({*SIDES, "generator", "duration", "start", "parallel", "family"})
"""The parameters of a flow that such a program has; what it sends is its own affair."""
TESTBEDS = frozenset({"lab", "netns"})
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENSSL_ia32cap": "~0x4000000000000010:~0x40000",
}
"""What repeats a program: OpenSSL reads no time stamp counter and no random numbers of the processor (RDTSC, RDRAND,
RDSEED), which virtual time does not cover."""
_PLACE = re.compile(rf"\{{({'|'.join(PLACES)})\}}")


def _canonical(text: str) -> str:
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"want a command line; got {text!r} ({error})") from error
    if not arguments or not arguments[0] or not text.isprintable():
        raise ValueError(f"want a command line, of printable characters; got {text!r}")
    return text


def argv(text: str, options: Mapping[str, Value]) -> list[str]:
    """The arguments of a command line, placeholders replaced.  No shell reads it."""
    return [_PLACE.sub(lambda match: str(options[match[1]]), word) for word in shlex.split(text)]


_spec = partial(
    ParamSpec,
    kind="flow",
    role="flow",
    type=Grammar("a command line, such as 'curl -s http://{address}:{server_port}/'", _canonical),
    testbeds=TESTBEDS,
)

SPECS = [
    _spec(name="client", help="With generator command: the program at `from`; the flow ends when it does"),
    _spec(name="server", help="With generator command: the program at `to`; SIGTERM ends it after the client's end"),
]
