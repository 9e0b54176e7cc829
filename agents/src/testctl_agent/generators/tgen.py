# SPDX-License-Identifier: Apache-2.0
"""The project's own traffic program; its sources are in agents/tgen."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from testctl_agent.generators._options import need, with_defaults
from testctl_agent.params.flow import reader
from testctl_agent.params.flow.pattern import base_units
from testctl_agent.params.flow.traffic import MAX_TOGETHER, end_ns
from testctl_agent.params.flow.workload import HONOURED
from testctl_agent.spec import workload
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.failures import FAILURES
from testctl_agent.spec.types import Value, shown
from testctl_agent.system import tgen_program
from testctl_agent.tasks.task import Announcement, ProgramTask, Result

NAME = "tgen"
BINARY = tgen_program.NAME
READY = Announcement("stdout", "ready\n")
Side = Literal["server", "client"]
REQUESTS, TIMES = "requests.txt", "times.bin"
"""Files of a flow that makes requests: what it is to ask, and what became of each (agents/tgen/workload_result.c)."""
_COPIED = (
    "server_port", "client_port", "parallel", "start_ns", "limit_ns", "seed", "bytes", "send_buffer", "receive_buffer",
    "rate", "burst", "write_size", "nodelay", "keepalive", "keepalive_probes", "user_timeout", "blocking", "cc",
    "reverse", "verify", "read_rate", "lowat", "notsent_lowat",
)  # fmt: skip
_PLACES = ("server_port", "client_port", "start_ns", "limit_ns")


def binary() -> str:
    """The program's path; "" when it is not built."""
    return tgen_program.found()


def unavailable() -> str:
    """Why this generator is not available; "" when it is."""
    path = binary()
    if not path:
        return tgen_program.MISSING
    return "" if os.access(path, os.X_OK) else f"{path} can't be executed"


def refuses(options: Mapping[str, Value]) -> list[str]:
    """What of a flow's options it can't honour, with the reason."""
    complete = with_defaults(options)
    together = int(complete["write_size"]) * int(complete["parallel"])
    if together > MAX_TOGETHER and not workload.asks(options):
        return [
            f"write_size: want at most {MAX_TOGETHER} bytes for all {complete['parallel']} connections; got {together}"
        ]
    return []


def _word(value: Value) -> str:
    """A value in base units: a Quantity would print itself with its unit."""
    return shown(int(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def argv(side: Side, options: Mapping[str, Value], workdir: Path) -> list[str]:
    """The command of one end.

    options: params/flow's, and address, bind, server_port, client_port, parallel, start_ns,
    end_ns (0 or none: by duration), limit_ns, seed.  One that makes requests finds them in workdir/REQUESTS.
    """
    all_options = with_defaults(options)
    if workload.asks(options):
        copied = _copied(all_options, [name for name in _COPIED if name in HONOURED or name in _PLACES])
        files = [f"requests={workdir / REQUESTS}", f"times={workdir / TIMES}"]
        return [*_ends(side, options, workdir), *copied, *files]
    arguments = _ends(side, options, workdir) + _copied(all_options, _COPIED)
    arguments.append(f"pattern={base_units(str(all_options['pattern']))}")
    arguments.append(f"end_ns={end_ns(options)}")
    if pauses := reader.base_units(str(all_options.get("read_pause", reader.NONE))):
        arguments.append(f"read_pause={pauses}")
    arguments += [
        f"{name}={value}"
        for name, value in reader.resize(str(all_options.get("receive_buffer_later", reader.NONE))).items()
    ]
    return arguments


def _ends(side: Side, options: Mapping[str, Value], workdir: Path) -> list[str]:
    arguments = [binary() or BINARY, "serve" if side == "server" else "send", f"out={workdir / 'result.json'}"]
    arguments.append(f"address={need(options, 'address', NAME)}")
    if side == "client" and options.get("bind"):
        arguments.append(f"bind={options['bind']}")
    return arguments


def _copied(options: Mapping[str, Value], names: Sequence[str]) -> list[str]:
    given = ((name, options.get(name)) for name in names)
    return [f"{name}={_word(v)}" for name, v in given if v is not None and v not in ("", "off", "none", "auto")]


def drain(map_id: int, record_bytes: int, file: Path) -> list[str]:
    """The command that writes the records of a BPF ring to a file."""
    return [binary() or BINARY, "drain", f"out={file}", f"map_id={map_id}", f"record_bytes={record_bytes}"]


def result(workdir: Path, side: Side) -> Result:
    """The JSON that this end wrote, also where its connections failed.

    Raises TestbedError when it wrote none, or failed for another reason.
    """
    path = workdir / "result.json"
    try:
        printed: Result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TestbedError(f"tgen {side}: no result: {error}") from error
    failed = [connection for connection in printed.get("connections", ()) if connection.get("error")] or [printed]
    if printed.get("error") and any(connection.get("failure") not in FAILURES for connection in failed):
        raise TestbedError(f"tgen {side}: {printed['error']}")
    return printed | {"bytes": moved(printed)}


def moved(result: Result) -> int:
    """What the application of this end wrote, or read, by its `role`, over all its connections: a result's `bytes`."""
    name = "bytes_sent" if result["role"] == "sender" else "bytes_received"
    if name in result:
        return int(result[name])
    return sum(int(connection.get(name) or 0) for connection in result["connections"])


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    """One end of a flow; options["side"] says which."""
    side: Side = "server" if need(options, "side", NAME) == "server" else "client"
    if why := unavailable():
        raise TestbedError(why)
    if reasons := refuses(options):
        raise TestbedError(f"{NAME}: {'; '.join(reasons)}")
    outputs = ["result.json"]
    if workload.asks(options):
        requests = workload.requests(options, str(need(options, "stream", NAME)))
        (workdir / REQUESTS).write_text(workload.schedule(requests), encoding="ascii")
        outputs.append(TIMES)

    def read(code: int, printed: str) -> Result:
        reported = result(workdir, side) if (workdir / "result.json").exists() else {}
        if not reported or (code != 0 and not reported.get("error")):
            raise TestbedError(f"tgen {side}: exit {code}: {printed or 'no output'}")
        return reported

    return ProgramTask(
        name=f"tgen {side}",
        argv=argv(side, options, workdir),
        workdir=workdir,
        read=read,
        outputs=outputs,
        announcement=READY if side == "server" else None,
    )
