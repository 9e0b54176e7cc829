# SPDX-License-Identifier: Apache-2.0
"""iperf3, for comparison with other people's measurements.

Its control connection goes to the same server port from a port that the kernel chooses; data
connections use the ports from client_port on.  It sends bytes in whole writes, and its receiver may
stop before it has read the last of them.  `refuses` lists the options that it does not support.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testctl_agent.generators import tgen
from testctl_agent.generators._options import asked, need, with_defaults
from testctl_agent.generators._sockets import listens, wait_until
from testctl_agent.generators.tgen import Side
from testctl_agent.params.flow.traffic import duration_ns
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.subprocesses import Process
from testctl_agent.tasks.task import ProgramTask, Result

NAME = "iperf3"
BINARY = "iperf3"
_NEVER = {
    "pattern": "it has no schedule",
    "verify": "it does not check content",
    "lowat": "it can't set SO_RCVLOWAT",
    "notsent_lowat": "it can't set TCP_NOTSENT_LOWAT",
    "keepalive": "it can't set SO_KEEPALIVE",
    "keepalive_probes": "it can't set TCP_KEEPCNT",
    "read_pause": "it reads what arrives",
    "read_rate": "it reads what arrives",
    "receive_buffer_later": "it sets SO_RCVBUF once",
    "blocking": "it has one way to call the kernel",
}
_NS_PER_S = 10**9
_LARGEST_WRITE = 2**20


def unavailable() -> str:
    """Why this generator is not available; "" when it is."""
    if shutil.which(BINARY) is None:
        return "iperf3 is not installed: apt-get install iperf3"
    why = tgen.unavailable()
    return f"it is started on time by tgen, and {why}" if why else ""


def refuses(options: Mapping[str, Value]) -> list[str]:
    """Options of a flow that it does not support, each with the reason."""
    reasons = [f"{name}: {why}" for name, why in _NEVER.items() if asked(options, name)]
    sizes = {name: options.get(name) for name in ("send_buffer", "receive_buffer") if asked(options, name)}
    if len(sizes) == 1 or len(set(sizes.values())) > 1:
        reasons.append("send_buffer, receive_buffer: it sets both, to one size")
    if duration_ns(options) % _NS_PER_S and not options.get("bytes"):
        reasons.append(f"duration: want whole seconds; got {duration_ns(options)} ns")
    if options.get("bytes") and duration_ns(options):
        reasons.append("duration: it takes bytes or a duration, not both")
    if options.get("bytes") and int(options.get("parallel", 1)) > 1:
        reasons.append("bytes: it counts the sum of all parallel connections")
    if int(with_defaults(options)["write_size"]) > _LARGEST_WRITE:
        reasons.append(f"write_size: want at most {_LARGEST_WRITE} bytes; got {options['write_size']}")
    if asked(options, "burst"):
        if not asked(options, "rate"):
            reasons.append("burst: wants a rate")
        elif int(options["burst"]) % int(with_defaults(options)["write_size"]):
            reasons.append("burst: want a multiple of write_size")
    return reasons


def _client(options: Mapping[str, Value]) -> list[str]:
    arguments = ["--client", str(need(options, "address", NAME)), "--parallel", str(options.get("parallel", 1))]
    if options.get("bind"):
        arguments += ["--bind", str(options["bind"])]
    if options.get("client_port"):
        arguments += ["--cport", str(options["client_port"])]
    if options.get("bytes"):
        arguments += ["--bytes", str(int(options["bytes"]))]
    else:
        arguments += ["--time", str(duration_ns(options) // _NS_PER_S)]
    size = int(with_defaults(options)["write_size"])
    rate = str(int(options["rate"])) if asked(options, "rate") else "0"
    burst = f"/{int(options['burst']) // size}" if asked(options, "burst") else ""
    arguments += ["--length", str(size), "--bitrate", rate + burst]
    if asked(options, "send_buffer"):
        arguments += ["--window", str(int(options["send_buffer"]))]
    if options.get("cc"):
        arguments += ["--congestion", str(options["cc"])]
    if asked(options, "nodelay"):
        arguments.append("--no-delay")
    if asked(options, "reverse"):
        arguments.append("--reverse")
    if asked(options, "user_timeout"):
        arguments += ["--snd-timeout", str(int(options["user_timeout"]) // 10**6)]
    return arguments


def argv(side: Side, options: Mapping[str, Value], workdir: Path) -> list[str]:
    """The command of one end; options as tgen's.  Its JSON goes to standard output."""
    common = ["--port", str(need(options, "server_port", NAME)), "--json"]
    if side == "server":
        return [BINARY, "--server", "--one-off", "--bind", str(need(options, "address", NAME)), *common]
    at = [tgen.binary() or tgen.BINARY, "at", f"start_ns={int(options.get('start_ns', 0))}"]
    return [*at, BINARY, *_client(options), *common]


def parse(text: str, side: Side) -> Result:
    """iperf3's JSON in the form of tgen's.  Raises TestbedError with iperf3's message if it failed.

    `intervals` and the sums are unchanged under "iperf3".
    """
    try:
        printed: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise TestbedError(f"iperf3 {side}: want JSON; got {text[:200]!r}") from error
    if printed.get("error"):
        raise TestbedError(f"iperf3 {side}: {printed['error']}")
    sockets = {c["socket"]: c for c in printed["start"]["connected"]}
    sends = (side == "client") != bool(printed["start"]["test_start"]["reverse"])
    connections = []
    for number, stream in enumerate(printed["end"]["streams"]):
        own = sockets.get(stream["sender"]["socket"], {})
        connections.append(
            {
                "conn": number,
                "local_port": own.get("local_port"),
                "remote_port": own.get("remote_port"),
                "bytes_sent": stream["sender"]["bytes"] if sends else 0,
                "bytes_received": 0 if sends else stream["receiver"]["bytes"],
                "retransmits": stream["sender"].get("retransmits"),
                "error": None,
            }
        )
    role = "sender" if sends else "receiver"
    parsed: Result = {"generator": NAME, "side": side, "role": role, "error": None, "connections": connections}
    return parsed | {"bytes": tgen.moved(parsed), "iperf3": printed}


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    """One end of a flow, by options["side"].  Raises TestbedError for unsupported options."""
    side: Side = "server" if need(options, "side", NAME) == "server" else "client"
    reasons = [why] if (why := unavailable()) else refuses(options)
    if reasons:
        raise TestbedError(f"iperf3 {side}: {'; '.join(reasons)}")

    def read(code: int, printed: str) -> Result:
        text = (workdir / "stdout.txt").read_text(encoding="utf-8")
        parsed = parse(text, side) if text or code == 0 else {}
        if code != 0:
            raise TestbedError(f"iperf3 {side}: exit {code}: {printed or 'no output'}")
        return parsed

    port = int(need(options, "server_port", NAME))

    def ready(process: Process, timeout_s: float) -> bool:
        return wait_until(lambda: listens(port), process, timeout_s)

    return ProgramTask(
        name=f"iperf3 {side}", argv=argv(side, options, workdir), workdir=workdir, read=read,
        outputs=("stdout.txt",), ready=ready if side == "server" else None,
    )  # fmt: skip
