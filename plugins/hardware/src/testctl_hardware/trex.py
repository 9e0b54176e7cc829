# SPDX-License-Identifier: Apache-2.0
"""TRex, for loads that a host's TCP can't make: stateless UDP, or very many TCP connections (ASTF).

Never run against a TRex server: the requests are those of its RPC server specification and of the sources of
3.08, and what is tested is a scripted peer.  The server runs by itself (`t-rex-64 -i`, with --astf for ASTF),
owns its ports, and is both ends of the traffic; so the server's side of a flow does nothing.  TRex's TCP is its
own, not the kernel's: it is load, not what is tested.

Of a flow's options it takes rate and duration; write_size is the payload of a UDP packet, and bytes what each
of ASTF's connections carries, as many a second as the rate needs.  Beside them:

    trex_kind     stl or astf; otherwise astf for a flow with bytes
    packet_bytes  of a whole IP packet, instead of write_size
    latency_pps   stamped packets a second; 0: latency is not measured
    trex_server, trex_rpc_port   127.0.0.1, 4501
    trex_port     the number of the port that sends
    trex_force    on: take ports that another user has
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from testctl_agent.generators._options import asked, need
from testctl_agent.params.flow.socket import IPV6
from testctl_agent.params.flow.traffic import OTHERWISE, duration_ns
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import Result
from testctl_agent.tasks.thread_task import Running, ThreadTask

from testctl_hardware import trex_astf, trex_stl
from testctl_hardware.trex_load import Load, Mode
from testctl_hardware.trex_rpc import PORT, Client, unavailable

NAME = "trex"
KINDS = ("stl", "astf")
_NEVER = (
    "pattern", "verify", "lowat", "notsent_lowat", "keepalive", "blocking", "nodelay", "cc", "send_buffer",
    "receive_buffer", "user_timeout", "burst", "parallel", "reverse",
)  # fmt: skip
_HEADERS = 28
"""Bytes of IPv4's and UDP's headers."""
_LOOK_S, _UNDER_WAY_S, _LATE_S = 0.1, 0.2, 10.0
_READY_S = 120.0
"""Loading and building an ASTF profile takes its time."""


def refuses(options: Mapping[str, Value]) -> list[str]:
    """What of a flow's options it can't honour, with the reason."""
    reasons = [f"{name}: TRex has no such setting" for name in _NEVER if asked(options, name)]
    if options.get("family") == IPV6:
        reasons.append("family: it sends IPv4")
    if not asked(options, "rate"):
        reasons.append("rate: TRex needs one")
    other = "write_size" if _kind(options) == "astf" else "bytes"
    if asked(options, other):
        reasons.append(f"{other}: a load of kind {_kind(options)} has none")
    return reasons


def load(options: Mapping[str, Value]) -> Load:
    """What the options ask for; TestbedError for what can't be."""
    if reasons := refuses(options):
        raise TestbedError(f"{NAME}: {'; '.join(reasons)}")
    payload = int(options["write_size"]) if asked(options, "write_size") else Load.packet_bytes - _HEADERS
    found = Load(
        rate=int(options["rate"]),
        duration_s=(duration_ns(options) or int(OTHERWISE)) / 1e9,
        source=str(need(options, "bind", NAME)),
        sink=str(need(options, "address", NAME)),
        source_port=int(options.get("client_port", 1024)),
        sink_port=int(options.get("server_port", 80)),
        packet_bytes=int(options.get("packet_bytes") or payload + _HEADERS),
        flow_bytes=int(options.get("bytes") or Load.flow_bytes),
        latency_pps=int(options.get("latency_pps") or 0),
        send_port=int(options.get("trex_port", 0)),
        force=options.get("trex_force") in (True, "on"),
    )
    (trex_astf if _kind(options) == "astf" else trex_stl).check(found)
    return found


def _kind(options: Mapping[str, Value]) -> str:
    kind = str(options.get("trex_kind") or ("astf" if options.get("bytes") else "stl"))
    if kind not in KINDS:
        raise TestbedError(f"{NAME}: trex_kind: want one of {', '.join(KINDS)}; got {kind}")
    return kind


def drive(mode: Mode, asked_for: Load, start_ns: int, running: Running) -> dict[str, Any]:
    """Prepare, wait for the time, send, wait for the end, count; the server is left as it was in every case."""
    try:
        mode.prepare()
        running.ready.set()
        running.stop.wait(max((start_ns - time.time_ns()) / 1e9, 0.0))
        if running.stop.is_set():
            raise TestbedError("was stopped before it began")
        begin_ns = time.time_ns()
        mode.start()
        late = time.monotonic() + asked_for.duration_s + _LATE_S
        try:
            while mode.running():
                if running.stop.wait(_LOOK_S) or time.monotonic() > late:
                    mode.stop()
                    break
        except TestbedError:
            with suppress(TestbedError):
                mode.stop()  # what sends can't be given back
            raise
        end_ns = time.time_ns()
        time.sleep(_UNDER_WAY_S)
        return {**mode.result(), "begin_ns": begin_ns, "end_ns": end_ns}
    finally:
        mode.close()


def task(options: Mapping[str, Value], workdir: Path) -> ThreadTask:
    """One end of a flow; options["side"] says which.  The server's ends at once."""
    side = "server" if need(options, "side", NAME) == "server" else "client"
    if why := unavailable():
        raise TestbedError(f"{NAME}: {why}")
    kind, wanted = _kind(options), load(options)

    def work(running: Running) -> Result:
        outcome: Result = {"generator": NAME, "side": side, "error": None, "kind": kind, "connections": []}
        if side == "server":
            return outcome
        where = str(options.get("trex_server", "127.0.0.1")), int(options.get("trex_rpc_port", PORT))
        with Client(*where) as client:
            mode: Mode = (trex_astf.Stateful if kind == "astf" else trex_stl.Stateless)(client, wanted)
            return outcome | {"trex": drive(mode, wanted, int(options.get("start_ns", 0)), running)}

    return ThreadTask(f"{NAME} {side}", work, ready_s=_READY_S)
