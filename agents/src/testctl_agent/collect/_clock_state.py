# SPDX-License-Identifier: Apache-2.0
"""The synchronisation state of this host's clock and its error bound: from chrony, else PTP, else the kernel."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.subprocesses import run

RUN = Path("/run/testctl/ptp")
"""Where ptp4l finds pmc's socket: the agent can write there, and both see it.  pmc's own choice is /run itself."""
_TIMEOUT_S = 5.0
_TRACKING_FIELDS = 14
_PTP_FIELDS = ("offsetFromMaster", "meanPathDelay", "portState", "timestamping")
_STA_UNSYNC, _TIME_ERROR = 0x40, 5


@dataclass(frozen=True)
class ClockState:
    """This host's clock against the reference of `source`.

    offset_ns     this clock - reference, according to the source
    error_ns      maximum error, including the offset, according to the source
    synchronised  whether it follows its reference now
    tried         sources that could not be read, with the reason
    """

    source: str
    synchronised: bool
    offset_ns: int
    error_ns: int
    reference: str = ""
    tried: tuple[str, ...] = ()


def chrony(output: str) -> ClockState:
    """From `chronyc -c tracking`; the bound is |offset| + root dispersion + root delay / 2 (chronyc(1), tracking).

    TestbedError when the text is not that.
    """
    fields = output.strip().split(",")
    try:
        if len(fields) != _TRACKING_FIELDS:
            raise ValueError(f"{len(fields)} fields")
        slow_s, delay_s, dispersion_s = float(fields[4]), float(fields[10]), float(fields[11])
    except ValueError as error:
        raise TestbedError(
            f"chronyc tracking: want {_TRACKING_FIELDS} fields, numbers; got {output[:200]!r}"
        ) from error
    return ClockState(
        source="chrony",
        synchronised=fields[13] != "Not synchronised",
        offset_ns=round(-slow_s * 1e9),
        error_ns=round((abs(slow_s) + dispersion_s + delay_s / 2) * 1e9),
        reference=fields[1] or fields[0],
    )


def ptp(output: str) -> ClockState:
    """From pmc's CURRENT_DATA_SET and PORT_PROPERTIES_NP: the bound is |offset| + path delay, because the path may be
    fully asymmetric.  Without a port in state SLAVE the clock is not synchronised, and the offset may be unknown yet.

    Raises TestbedError if no clock replied, or it is the NIC's: with hardware timestamps ptp4l keeps the NIC's clock,
    and phc2sys, which reports no error, this host's.
    """
    found = re.findall(rf"^\s*({'|'.join(_PTP_FIELDS)})\s+(-?[0-9.]+|[A-Z]\w+)\s*$", output, re.M)
    values = dict(found)
    if len(values) != len(_PTP_FIELDS):
        raise TestbedError(f"pmc: want {', '.join(_PTP_FIELDS)}; got {output.strip()[:200]!r}")
    if (stamps := values["timestamping"]) != "SOFTWARE":
        raise TestbedError(f"pmc: want timestamping SOFTWARE; got {stamps}: its offset is that of the NIC's clock")
    offset, delay = float(values["offsetFromMaster"]), float(values["meanPathDelay"])
    return ClockState("ptp", ("portState", "SLAVE") in found, round(offset), round(abs(offset) + abs(delay)))


def kernel() -> ClockState:
    """From adjtimex(2), which reports the maximum and the estimated error in microseconds."""
    import ctypes

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_long * 32),
        )  # fmt: skip

    state = Timex()
    code = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    if code < 0:
        raise TestbedError(f"adjtimex: error {ctypes.get_errno()}")
    synchronised = code != _TIME_ERROR and not state.status & _STA_UNSYNC
    return ClockState("kernel", synchronised, 0, int(state.maxerror) * 1000)


def clock_state() -> ClockState:
    """The state from the first available source; the kernel is always available."""
    tried: list[str] = []
    own = RUN / f"pmc.{os.getpid()}"
    with suppress(OSError):  # pmc then says why it can't be there
        RUN.mkdir(parents=True, exist_ok=True)
    sources: tuple[tuple[tuple[str, ...], Callable[[str], ClockState]], ...] = (
        (("chronyc", "-c", "tracking"), chrony),
        (("pmc", "-u", "-i", str(own), "-b", "0", "GET CURRENT_DATA_SET", "GET PORT_PROPERTIES_NP"), ptp),
    )
    for argv, read in sources:
        if shutil.which(argv[0]) is None:
            tried.append(f"{argv[0]} is not installed")
            continue
        try:
            state = read(run(argv, timeout_s=_TIMEOUT_S))
        except TestbedError as error:
            tried.append(str(error))
            continue
        return ClockState(**{**state.__dict__, "tried": tuple(tried)})
    return ClockState(**{**kernel().__dict__, "tried": tuple(tried)})
