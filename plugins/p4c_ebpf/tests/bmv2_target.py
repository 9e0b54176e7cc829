# SPDX-License-Identifier: Apache-2.0
"""A P4 program on a real BMv2, packet by packet: in at a port, out at ports.

simple_switch_grpc serves its data plane over gRPC (p4.bm.DataplaneInterface) instead of devices, so no
kernel changes a packet on its way and none is lost.  It answers the end of a stream of packets only
when it has none left inside: nothing is waited for by time.  Source: BMv2's dataplane_interface.proto.
"""

from __future__ import annotations

import functools
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from testctl_bmv2 import p4info, simple_switch
from testctl_bmv2.backend import UNABLE
from testctl_bmv2.p4runtime import P4RuntimeDriver

_STREAM_S = 60.0

Sent = tuple[int, bytes]
"""A P4 port and a packet."""


@functools.cache
def _messages() -> tuple[Any, Any]:
    """The classes of PacketStreamRequest and PacketStreamResponse, which have the same fields."""
    file = descriptor_pb2.FileDescriptorProto(name="dataplane_interface.proto", package="p4.bm", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {
        "id": field.TYPE_UINT64,
        "device_id": field.TYPE_UINT64,
        "port": field.TYPE_UINT32,
        "packet": field.TYPE_BYTES,
    }
    for name in ("PacketStreamRequest", "PacketStreamResponse"):
        made = file.message_type.add(name=name)
        for number, (one, kind) in enumerate(kinds.items(), 1):
            made.field.add(name=one, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    request, response = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p4.bm.PacketStream{end}"))
        for end in ("Request", "Response")
    )
    return request, response


class Bmv2Target:
    """One BMv2 with one program; a context manager.

    driver  fills its tables (testctl_agent/switch/drivers/driver.py)
    """

    name = "bmv2"
    unable = UNABLE

    def __init__(self, program: Path, info: Path) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="bmv2-")
        self._switch = simple_switch.start({}, Path(self._place.name) / "switch", packets=True)
        self._channel = grpc.insecure_channel(self._switch.packets)
        try:
            self.driver = P4RuntimeDriver(self._switch.address, program, p4info.read(info))
            self.driver.registers = self._switch.thrift
            self._wait()
        except BaseException:
            self._switch.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.driver.close()
        self._channel.close()
        self._switch.close()
        self._place.cleanup()

    def _wait(self) -> None:
        """Until it takes packets: it starts to when it has a program."""
        until = time.monotonic() + simple_switch.START_S
        while True:
            try:
                self._through([])
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                    raise
            self._switch.check()
            time.sleep(0.01)

    def inject(self, port: int, packet: bytes) -> list[Sent]:
        """Let a packet in; what comes out, sorted by port, in its order at each."""
        return self._through([(port, packet)])

    def _through(self, packets: list[Sent]) -> list[Sent]:
        request, response = _messages()
        call = self._channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream", lambda sent: bytes(sent.SerializeToString()), response.FromString
        )
        sent = (request(device_id=0, port=port, packet=packet) for port, packet in packets)
        out = [(int(got.port), bytes(got.packet)) for got in call(sent, timeout=_STREAM_S)]
        return sorted(out, key=lambda one: one[0])
