# SPDX-License-Identifier: Apache-2.0
"""The driver of a switch that speaks P4Runtime over gRPC.

The calls are those of p4.v1.P4Runtime (specification 1.4): arbitration makes this client the primary
one, then the pipeline is set, then entities are written one a request, so that an error names its
row.  BMv2's P4Runtime has no registers; `registers` gives another way to them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, instances_of

from testctl_bmv2 import p4info
from testctl_bmv2.p4runtime_key import fill_action, table_entry
from testctl_bmv2.schema import message

RPC_S = 60.0
READY_S = 20.0
_INSERT, _MODIFY, _DELETE = 1, 2, 3
_VERIFY_AND_COMMIT = 3
_DETAILS = "grpc-status-details-bin"


class Registers(Protocol):
    """A way to registers beside P4Runtime; names are fully qualified.  Raises DriverError."""

    def read_register(self, name: str) -> list[int]: ...

    def write_register(self, name: str, index: int, value: int) -> None: ...


def _said(error: grpc.RpcError) -> tuple[str, str]:
    """The code of a failed call, and the server's words for the row it was about.

    Of a write the code proper is in the details, a p4.v1.Error an update (section 11.3).
    """
    code, text = error.code().name, error.details() or ""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            for detail in message("google.rpc.Status").FromString(value).details:
                if detail.type_url.endswith("p4.v1.Error"):
                    row = message("p4.v1.Error").FromString(detail.value)
                    code = next(c.name for c in grpc.StatusCode if c.value[0] == row.canonical_code)
                    text = row.message or text
    return code, text


class P4RuntimeDriver:
    """See driver.py for the contract.  close() ends the session; the switch keeps its tables."""

    def __init__(self, address: str, program: Path, info: p4info.Info, device: int = 0) -> None:
        """Take the switch at a gRPC address over and load a program (BMv2's JSON) into it."""
        self.info = info
        self.registers: Registers | None = None
        self._device = device
        self._who = f"P4Runtime at {address}"
        self._channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            grpc.channel_ready_future(self._channel).result(timeout=READY_S)
            self._arbitrate()
            self._load(program)
        except grpc.FutureTimeoutError as error:
            self.close()
            raise DriverError(f"{self._who}: want a server; got none within {READY_S:g} s") from error
        except DriverError:
            self.close()
            raise

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()

    def insert(self, entry: Entry) -> None:
        update = self._update(_INSERT)
        table = table_entry(self.info, entry, update.entity.table_entry)
        what = f"table {table.name}, insert {entry}"
        if self._write(update, what, allow="UNKNOWN"):  # BMv2's word for a full table and for all else
            full = sum(1 for _ in self._rows(table)) >= table.size
            why = f"the table is full: it has {table.size} rows" if full else "refused, and BMv2 does not say why"
            raise DriverError(f"{self._who}: {what}: {why}")

    def delete(self, entry: Entry) -> None:
        update = self._update(_DELETE)
        table = table_entry(self.info, entry, update.entity.table_entry, action=False)
        self._write(update, f"table {table.name}, delete {entry}")

    def clear(self, table: str) -> None:
        found = self.info.table(table)
        for entity in self._rows(found):
            update = self._update(_DELETE)
            update.entity.table_entry.CopyFrom(entity.table_entry)
            self._write(update, f"table {found.name}, clear")

    def _rows(self, table: p4info.Table) -> Iterator[Any]:
        wanted = message("p4.v1.Entity")()
        wanted.table_entry.table_id = table.id
        return self._read(wanted, f"table {table.name}")

    def set_default(self, table: str, action: str, params: Mapping[str, int]) -> None:
        found = self.info.table(table)
        update = self._update(_MODIFY)
        row = update.entity.table_entry
        row.table_id, row.is_default_action = found.id, True
        if action:
            fill_action(found, self.info.action(found, action, default=True), params, row.action.action)
        self._write(update, f"table {found.name}, default action {action or 'of the program'}")

    def multicast(self, group: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None:
        if not 0 < group < 1 << 16:
            raise DriverError(f"multicast group: want 1 to 65535; got {group}")
        update = self._update(_INSERT if ports else _DELETE)
        entry = update.entity.packet_replication_engine_entry.multicast_group_entry
        entry.multicast_group_id = group
        for port, instance in zip(ports, instances_of(f"multicast group {group}", ports, instances), strict=True):
            entry.replicas.add(egress_port=port, instance=instance)
        what = f"multicast group {group} to ports {list(ports)}"
        if ports and self._write(update, what, allow="ALREADY_EXISTS"):
            update.type = _MODIFY
            self._write(update, what)
        elif not ports:
            self._write(update, what, allow="NOT_FOUND")

    def counter(self, name: str, index: int) -> Count:
        cells = self.info.counter(name)
        if not 0 <= index < cells.size:
            raise DriverError(f"counter {cells.name}: want an index below {cells.size}; got {index}")
        wanted = message("p4.v1.Entity")()
        wanted.counter_entry.counter_id = cells.id
        wanted.counter_entry.index.index = index
        for entity in self._read(wanted, f"counter {cells.name}[{index}]"):
            data = entity.counter_entry.data
            return Count(data.packet_count, data.byte_count)
        raise DriverError(f"{self._who}: counter {cells.name}[{index}]: want a value; got none")

    def direct(self, entry: Entry) -> Count:
        wanted = message("p4.v1.Entity")()
        key = wanted.direct_counter_entry.table_entry
        table = table_entry(self.info, entry, key, action=False)
        if not table.direct:
            raise DriverError(f"table {table.name}: want a direct counter; the program gives it none")
        # a key that matches anything is empty, and an empty key asks for all rows
        for entity in self._read(wanted, f"counter of {entry}"):
            found = entity.direct_counter_entry
            if _same_key(found.table_entry, key):
                return Count(found.data.packet_count, found.data.byte_count)
        raise DriverError(f"{self._who}: table {table.name}: want the row {entry}; got none like it")

    def register(self, name: str) -> list[int]:
        return self._beside(name).read_register(self.info.register(name).name)

    def write_register(self, name: str, index: int, value: int) -> None:
        self._beside(name).write_register(self.info.register(name).name, index, value)

    def _beside(self, name: str) -> Registers:
        if self.registers is None:
            raise DriverError(f"{self._who}: register {name}: BMv2's P4Runtime has no registers")
        return self.registers

    def _arbitrate(self) -> None:
        """Become the primary client; the stream stays open as long as the session shall."""
        request = message("p4.v1.StreamMessageRequest")()
        request.arbitration.device_id = self._device
        request.arbitration.election_id.low = 1
        self._requests.put(request)
        call = self._method(self._channel.stream_stream, "StreamChannel", "StreamMessageResponse")
        self._stream = call(iter(self._requests.get, None))
        late = threading.Timer(READY_S, self._stream.cancel)  # the stream itself may have no deadline: it stays open
        late.start()
        try:
            got = self._answer(lambda: next(self._stream), "arbitration", allow="CANCELLED")
        finally:
            late.cancel()
        if got is None:
            raise DriverError(f"{self._who}: arbitration: want an answer within {READY_S:g} s; got none")
        if got.arbitration.status.code != 0:
            raise DriverError(f"{self._who}: want to be its only client; got {got.arbitration.status.message}")

    def _load(self, program: Path) -> None:
        request = message("p4.v1.SetForwardingPipelineConfigRequest")(device_id=self._device)
        request.election_id.low, request.action = 1, _VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.info.message)
        try:
            request.config.p4_device_config = program.read_bytes()
        except OSError as error:
            raise DriverError(f"{program}: can't be read: {error.strerror}") from error
        self._call("SetForwardingPipelineConfig", request, f"load {program}")

    def _update(self, kind: int) -> Any:
        return message("p4.v1.Update")(type=kind)

    def _write(self, update: Any, what: str, allow: str = "") -> bool:
        """Write one update; True when it was refused with the code `allow`."""
        request = message("p4.v1.WriteRequest")(device_id=self._device)
        request.election_id.low = 1
        request.updates.append(update)
        return self._call("Write", request, what, allow) is None

    def _read(self, wanted: Any, what: str) -> Iterator[Any]:
        request = message("p4.v1.ReadRequest")(device_id=self._device)
        request.entities.append(wanted)
        call = self._method(self._channel.unary_stream, "Read", "ReadResponse")
        for answer in self._answer(lambda: list(call(request, timeout=RPC_S)), what) or ():
            yield from answer.entities

    def _call(self, name: str, request: Any, what: str, allow: str = "") -> Any:
        call = self._method(self._channel.unary_unary, name, f"{name}Response")
        return self._answer(lambda: call(request, timeout=RPC_S), what, allow)

    def _method(self, kind: Callable[..., Any], name: str, reply: str) -> Any:
        return kind(
            f"/p4.v1.P4Runtime/{name}",
            lambda sent: bytes(sent.SerializeToString()),
            message(f"p4.v1.{reply}").FromString,
        )

    def _answer(self, ask: Callable[[], Any], what: str, allow: str = "") -> Any:
        try:
            return ask()
        except grpc.RpcError as error:
            code, text = _said(error)
            if code == allow:
                return None
            raise DriverError(f"{self._who}: {what}: {code}: {text or 'it says no more'}") from error
        except StopIteration:
            raise DriverError(f"{self._who}: {what}: the stream ended") from None


def _same_key(one: Any, other: Any) -> bool:
    """Whether two TableEntry have the same match fields and priority."""
    first, second = (sorted(entry.match, key=lambda match: int(match.field_id)) for entry in (one, other))
    return bool(one.priority == other.priority) and first == second
