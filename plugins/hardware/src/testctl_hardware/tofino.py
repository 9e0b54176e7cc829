# SPDX-License-Identifier: Apache-2.0
"""A Tofino 1 as the switch, over BFRuntime: the testbed's program, and the traffic manager as port model.

$TESTCTL_BFRT is the address of bf_switchd ("host:50052").  A device is named by its front-panel port
("3/0") or by its number on the chip ("132").  Never tried on hardware.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, DriverError, TestbedError
from testctl_agent.spec.fate import CHANGES, HOLDING, Action
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import SWITCH_PARAMETERS, UNSET, settable
from testctl_agent.switch.testbed_tables import TestbedTables

from testctl_hardware import tofino_units as units
from testctl_hardware.bfrt import BfrtDriver

VARIABLE = "TESTCTL_BFRT"
PROGRAM = "testbed"
_QUEUE = 0
"""The only queue of a port that the program uses."""
_POOL = "EG_APP_POOL_0"
_SHAPING, _SHAPED = "tf1.tm.port.sched_shaping", "tf1.tm.port.sched_cfg"
_BUFFER, _POOL_SIZE, _PORT = "tf1.tm.queue.buffer", "tf1.tm.pool.cfg", "tf1.tm.port.cfg"
UNABLE: tuple[Action, ...] = (*HOLDING, *CHANGES, "swap")
"""p4/tna has none of them."""
_CANNOT = {
    "aqm": "Tofino's program has no queue that manages itself",
    "delay": "Tofino has no delay",
    "down": "Tofino's links don't change",
    "jitter": "Tofino has no delay",
    "largest": "Tofino's program drops no packets by their size",
    "framing": "Tofino's shaper counts what its own hardware counts",
}


class TofinoBackend:
    """The back end `tofino`.

    ports  device → number on the chip, which is its P4 port
    """

    name = "tofino"

    def __init__(self, driver: BfrtDriver, ports: Mapping[str, int], forwarding: Stations) -> None:
        self._driver = driver
        self._ports = ports
        self._tables = TestbedTables(driver, ports, forwarding, unable=UNABLE)
        self._thresholds: dict[str, int] = {}
        self._before: dict[str, Callable[[], None]] = {}

    def close(self) -> None:
        """Give every port back what it had, the last change first, then the connection."""
        with ExitStack() as undo:
            undo.callback(self._driver.close)
            for restore in self._before.values():
                undo.callback(restore)

    def unavailable(self, what: str) -> str:
        return _CANNOT.get(what, "" if what in UNSET else f"a port has no {what}")

    def read(self, port: str, what: str) -> Value:
        if what in SWITCH_PARAMETERS:
            return self._tables.read(what)
        if what in _CANNOT:
            return UNSET[what]
        if what == "ecn_threshold":
            return units.cell_bytes(self._thresholds[port]) if port in self._thresholds else "none"
        try:
            return self._rate(self._number(port)) if what == "rate" else self._buffer(self._number(port))
        except DriverError as error:
            raise ApplyError(f"port {port}, {what}: {error}") from error

    def apply(self, port: str, what: str, value: Value) -> None:
        if not settable(self, port, what, value):
            return
        try:
            self._apply(port, what, value)
        except (DriverError, ValueError) as error:
            raise ApplyError(f"port {port}, {what}: want {value}; {error}") from error

    def describe(self) -> dict[str, str]:
        cell = f"cells of {units.CELL_BYTES} bytes"
        return {
            "forwarding": "Tofino, the testbed's P4 program for TNA; this back end has never met hardware",
            "rate": f"in kbit/s, rounded down, then to the nearest the shaper has; bursts of {units.BURST_BYTES} bytes",
            "buffer": f"in {cell}, rounded down; a packet takes whole ones, so small packets fill it sooner",
            "ecn_threshold": f"in {cell}, rounded up",
            "fate": "a range of packets becomes as many rows as it has prefixes: at most 62",
            **_CANNOT,
            "telemetry": "none yet: fates are counted by rule",
        }

    def counters(self) -> list[dict[str, object]]:
        """Drops and the deepest queue in cells, by port."""
        rows: list[dict[str, object]] = []
        for device, number in self._ports.items():
            queue = self._queue(number)
            found = self._driver.fixed("tf1.tm.counter.queue", queue, number >> 7)
            cells = {name: found.get(name, 0) for name in ("usage_cells", "watermark_cells")}
            row = {"device": device, "kind": "tofino", "drops": found.get("drop_count_packets", 0), "extra": cells}
            rows.append(row)
        return rows

    def _number(self, port: str) -> int:
        if port not in self._ports:
            raise DriverError(f"want one of the ports {', '.join(self._ports)}")
        return self._ports[port]

    def _queue(self, number: int) -> dict[str, object]:
        """The key of a port's queue in the traffic manager's tables."""
        found = self._driver.fixed(_PORT, {"dev_port": number}, number >> 7)
        return {"pg_id": found["pg_id"], "pg_queue": found["egress_qid_queues"][_QUEUE]}

    def _rate(self, number: int) -> Value:
        if not self._driver.fixed(_SHAPED, {"dev_port": number}, number >> 7)["max_rate_enable"]:
            return "none"
        return units.bps(int(self._driver.fixed(_SHAPING, {"dev_port": number}, number >> 7)["max_rate"]))

    def _buffer(self, number: int) -> Value:
        if f"buffer {number}" not in self._before:
            return "none"
        found = self._driver.fixed(_BUFFER, self._queue(number), number >> 7)
        return units.cell_bytes(int(found["pool_max_cells"]))

    def _apply(self, port: str, what: str, value: Value) -> None:
        if what in SWITCH_PARAMETERS:
            self._tables.apply(what, value)
            return
        number = self._number(port)
        if what == "rate":
            self._set_rate(number, 0 if value == "none" else int(value))
        elif what == "buffer":
            self._set_buffer(number, 0 if value == "none" else int(value))
        elif value == "none":
            self._tables.set_threshold(port, None)
            self._thresholds.pop(port, None)
        else:
            depth = units.threshold_cells(int(value))
            self._tables.set_threshold(port, depth)
            self._thresholds[port] = depth

    def _set_rate(self, number: int, rate: int) -> None:
        key, pipe = {"dev_port": number}, number >> 7
        self._remember(f"rate {number}", _SHAPED, key, pipe, ("max_rate_enable",))
        if rate:
            shape: dict[str, object] = {"unit": "BPS", "provisioning": "MIN_ERROR"}
            shape |= {"max_rate": units.kbps(rate), "max_burst_size": units.BURST_BYTES}
            self._remember(f"shape {number}", _SHAPING, key, pipe, tuple(shape))
            self._driver.modify(_SHAPING, key, shape, pipe=pipe)
        self._driver.modify(_SHAPED, key, {"max_rate_enable": bool(rate)}, pipe=pipe)

    def _set_buffer(self, number: int, limit: int) -> None:
        key, pipe = self._queue(number), number >> 7
        if not limit:
            if restore := self._before.get(f"buffer {number}"):
                restore()
                del self._before[f"buffer {number}"]
            return
        cells = units.cells(limit)
        pool = self._driver.fixed(_POOL_SIZE, {"pool": _POOL})
        if int(pool["size_cells"]) < cells:
            self._remember("pool", _POOL_SIZE, {"pool": _POOL}, None, ("size_cells",))
            self._driver.modify(_POOL_SIZE, {"pool": _POOL}, {"size_cells": cells})
        fields = ("guaranteed_cells", "hysteresis_cells", "pool_id", "pool_max_cells", "dynamic_baf")
        self._remember(f"buffer {number}", _BUFFER, key, pipe, fields, "shared_pool")
        limits: dict[str, object] = {"guaranteed_cells": 0, "hysteresis_cells": 0, "pool_max_cells": cells}
        limits |= {"pool_id": _POOL, "dynamic_baf": "DISABLE"}
        self._driver.modify(_BUFFER, key, limits, "shared_pool", pipe)

    def _remember(
        self,
        what: str,
        table: str,
        key: Mapping[str, object],
        pipe: int | None,
        fields: tuple[str, ...],
        action: str = "",
    ) -> None:
        """Keep the way back to what a row of a fixed table has, unless it is kept already."""
        if what in self._before:
            return
        where: dict[str, Any] = {} if pipe is None else {"pipe": pipe}
        found = self._driver.fixed(table, key, **where)
        old = {name: found[name] for name in fields if name in found}
        self._before[what] = lambda: self._driver.modify(table, key, old, action, **where)


def chip_port(driver: BfrtDriver, device: str) -> int:
    """The number on the chip of a front-panel port ("3/0"), or the number itself."""
    if device.isascii() and device.isdigit():
        return int(device)
    return int(driver.fixed("$PORT_STR_INFO", {"$PORT_NAME": device})["$DEV_PORT"])


def open_backend(ports: tuple[str, ...], forwarding: Stations) -> TofinoBackend:
    address = os.environ.get(VARIABLE)
    if not address:
        raise TestbedError(f"Tofino: want the address of bf_switchd in ${VARIABLE}; got none")
    driver = BfrtDriver(address, PROGRAM)
    with ExitStack() as undo:
        undo.callback(driver.close)
        backend = TofinoBackend(driver, {device: chip_port(driver, device) for device in ports}, forwarding)
        undo.pop_all()
    return backend
