# SPDX-License-Identifier: Apache-2.0
"""Rows as P4Runtime has them, names as P4Info has them, and BMv2's units."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from testctl_agent.spec.errors import DriverError, ProgramError
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Range, Ternary
from testctl_bmv2 import p4info, p4runtime, schema, units
from testctl_bmv2.p4runtime_key import number, table_entry

P4INFO = """
tables {
  preamble { id: 1 name: "ingress.acl.rules" }
  match_fields { id: 1 name: "dst" bitwidth: 32 match_type: LPM }
  match_fields { id: 2 name: "port" bitwidth: 16 match_type: RANGE }
  match_fields { id: 3 name: "flags" bitwidth: 8 match_type: TERNARY }
  action_refs { id: 11 }
  action_refs { id: 12 scope: DEFAULT_ONLY }
  size: 64
}
tables {
  preamble { id: 2 name: "egress.exact" }
  match_fields { id: 1 name: "flow" bitwidth: 16 match_type: EXACT }
  action_refs { id: 11 }
  size: 8
}
actions { preamble { id: 11 name: "ingress.acl.send" } params { id: 1 name: "port" bitwidth: 9 } }
actions { preamble { id: 12 name: "NoAction" } }
counters { preamble { id: 21 name: "ingress.seen" } spec { unit: BOTH } size: 4 }
direct_counters { preamble { id: 22 name: "ingress.acl.hits" } spec { unit: BOTH } direct_table_id: 1 }
registers {
  preamble { id: 31 name: "ingress.last" } size: 16
  type_spec { bitstring { bit { bitwidth: 32 } } }
}
"""


@pytest.fixture
def info(tmp_path: Path) -> p4info.Info:
    path = tmp_path / "some.p4info.txtpb"
    path.write_text(P4INFO)
    return p4info.read(path)


def row(info: p4info.Info, entry: Entry) -> Any:
    made = schema.message("p4.v1.TableEntry")()
    table_entry(info, entry, made)
    return made


def acl(priority: int = 0, port: int = 3, **keys: Key) -> Entry:
    return Entry("rules", keys, "send", {"port": port}, priority)


@pytest.mark.parametrize(("value", "data"), [(0, b"\0"), (255, b"\xff"), (256, b"\1\0"), (1 << 40, b"\1\0\0\0\0\0")])
def test_numbers_are_as_short_as_can_be(value: int, data: bytes) -> None:
    assert number(value) == data


def test_names_are_found_by_their_end(info: p4info.Info) -> None:
    rules = info.table("rules")
    assert rules.name == "ingress.acl.rules"
    assert rules.direct == 22
    assert rules.ordered
    assert info.table("acl.rules") is rules
    assert info.counter("seen").size == 4
    assert info.register("last").bits == 32
    assert [one.name for one in rules.actions] == ["ingress.acl.send"]
    assert info.action(rules, "NoAction", default=True).id == 12
    with pytest.raises(DriverError, match=r"table 'ules': want one of egress.exact, ingress.acl.rules"):
        info.table("ules")


def test_a_row(info: p4info.Info) -> None:
    made = row(info, acl(5, dst=Lpm(0x0A0000FF, 24)))
    assert made.table_id == 1
    assert made.priority == 6
    assert [(m.field_id, m.lpm.value, m.lpm.prefix_len) for m in made.match] == [(1, b"\x0a\0\0\0", 24)]
    assert [(p.param_id, p.value) for p in made.action.action.params] == [(1, b"\3")]


def test_what_matches_anything_is_left_out(info: p4info.Info) -> None:
    keys: dict[str, Key] = {"dst": Lpm(7, 0), "port": Range(0, 65535), "flags": Ternary(9, 0)}
    assert not row(info, Entry("rules", keys, "send", {"port": 3})).match


def test_bits_outside_a_mask_are_zero(info: p4info.Info) -> None:
    made = row(info, acl(flags=Ternary(0xFF, 0x12)))
    assert (made.match[0].ternary.value, made.match[0].ternary.mask) == (b"\x12", b"\x12")


def test_rows_without_an_order_have_no_priority(info: p4info.Info) -> None:
    made = row(info, Entry("exact", {"flow": Exact(300)}, "send", {"port": 1}))
    assert made.priority == 0
    assert made.match[0].exact.value == b"\1\x2c"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("exact", {}, "send", {"port": 1}), "table egress.exact: want the exact key flow; got none"),
        (Entry("exact", {"flow": Exact(65536)}, "send", {"port": 1}), "flow: want a number of 16 bits; got 65536"),
        (Entry("exact", {"flow": Lpm(1, 2)}, "send", {"port": 1}), "key flow: want a match that is exact; got Lpm"),
        (Entry("exact", {"flow": Exact(1)}, "send", {}), "send: want the parameters port; got none"),
        (Entry("exact", {"flow": Exact(1)}, "drop", {}), "action 'drop': want one of ingress.acl.send"),
        (acl(dst=Lpm(1, 33)), "key dst: want a prefix of 0 to 32 bits; got 33"),
        (acl(flows=Exact(1)), "rules: want keys dst, port, flags; got flows"),
        (Entry("rules", {"port": Range(4, 3)}, "send", {"port": 1}), "want a range from low to high; got 4 to 3"),
        (acl(priority=-1), "want a priority of 0 to 2147483646; got -1"),
        (acl(port=512), "send, port: want a number of 9 bits; got 512"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(info: p4info.Info, entry: Entry, said: str) -> None:
    with pytest.raises(DriverError, match=said):
        row(info, entry)


def test_a_file_that_is_not_p4info_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txtpb"
    path.write_text("tables {")
    with pytest.raises(ProgramError, match=r"x\.txtpb: not P4Info"):
        p4info.read(path)


def test_a_server_that_does_not_answer(info: p4info.Info, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the stream and says nothing on it."""
    monkeypatch.setattr(p4runtime, "READY_S", 0.5)
    asked, ended = threading.Event(), threading.Event()

    def stream(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        next(requests)
        asked.set()
        ended.wait(60)
        yield from ()

    handler = grpc.method_handlers_generic_handler(
        "p4.v1.P4Runtime", {"StreamChannel": grpc.stream_stream_rpc_method_handler(stream)}
    )
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool, handlers=(handler,))
        address = f"unix:{tmp_path}/socket"
        server.add_insecure_port(address)
        server.start()
        giver_up = threading.Timer(20, ended.set)
        giver_up.start()
        try:
            with pytest.raises(DriverError, match=r"socket: arbitration: want an answer within 0\.5 s; got none$"):
                p4runtime.P4RuntimeDriver(address, tmp_path / "x.json", info)
            assert asked.is_set()
            assert not ended.is_set()
        finally:
            giver_up.cancel()
            ended.set()
            server.stop(None).wait()


def test_the_units_of_bmv2() -> None:
    packet = units.packet_bytes(1500)
    assert packet == 1514
    assert units.packets_per_s(10**8, packet) == 8256
    assert units.packets_per_s(1, packet) == 1
    assert units.packets_per_s(0, packet) == 0
    assert units.depth(100_000, packet) == 66
    assert units.depth(100, packet) == 1
    assert units.mark(30_000, packet) == 20
    assert units.mark(0, packet) == 0
