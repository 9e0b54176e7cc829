# SPDX-License-Identifier: Apache-2.0
"""TRex's requests and answers, against a scripted peer on a real ZMQ socket (trex_peer.py): no server has been seen."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.generators._options import defaults
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_hardware import trex, trex_astf, trex_rpc, trex_stl
from testctl_hardware.trex_load import Load
from testctl_hardware.trex_rpc import RpcError, decode, encode

pytest.importorskip("zmq", reason="pyzmq is not installed: pip install testctl-hardware[trex]")

from plugins.hardware.tests.trex_peer import Peer, Refusal, peer, states

LOAD = Load(10**9, 1.0, "16.0.0.1", "48.0.0.1", 1024, 80)
COUNTED = {"flow_stats": {"1": {"tp": {"0": 1000}, "tb": {"0": 1_514_000}, "rp": {"1": 990}, "rb": {"1": 1_498_860}}}}
STAMPED = {
    "latency": {"2": {"lat": {"average": 12.5, "total_min": 10, "total_max": 40, "jit": 3}, "er": {"drp": 1}}, "g": {}}
}
NAMES = ("tcps_connects", "tcps_sndbyte_ok", "tcps_rcvbyte", "tcps_sndrexmitpack", "tcps_drops")


def stl(**others: Any) -> dict[str, Any]:
    return {
        "api_sync_v2": {"api_h": "VGDJwdiY"},
        "acquire": "37JncCHr",
        "remove_all_streams": {},
        "add_stream": {},
        "get_pgid_stats": states({}, COUNTED | STAMPED),
        "start_traffic": {"multiplier": 1.0, "ts": 20395.4},
        "get_port_status": states({"owner": "testctl", "state": "TX"}, {"owner": "testctl", "state": "STREAMS"}),
        "stop_traffic": {},
        "remove_rx_filters": {},
        "release": {},
        **others,
    }


def astf(**others: Any) -> dict[str, Any]:
    described = {"epoch": 0, "data": [{"id": number, "name": name} for number, name in enumerate(NAMES)]}
    before = {"client": {"0": 5, "1": 700}, "server": {"2": 700}}
    after = {"client": {"0": 105, "1": 10_000_700, "3": 7}, "server": {"2": 9_900_700}}
    told = [{"state": s, "state_profile": {"_": s}} for s in (0, 0, 2, 1, 3, 4, 5, 1, 0)]
    return {
        "api_sync_v2": {"api_h": "vupG2csF"},
        "acquire": {"handler": "vNWxUEPD", "ports": {"0": "a", "1": "b"}},
        "sync": states(*told),
        "profile_clear": None,
        "profile_fragment": None,
        "get_counter_desc": described,
        "get_counter_values": states(before, after),
        "start": None,
        "stop": None,
        "release": {},
        **others,
    }


def options(server: Peer, **others: Value) -> Mapping[str, Value]:
    return {
        "side": "client", "address": "48.0.0.1", "bind": "16.0.0.1", "server_port": 80, "client_port": 1024,
        "rate": 10**9, "duration": 10**9, "trex_rpc_port": server.port,
    } | others  # fmt: skip


def run(where: Path, given: Mapping[str, Value]) -> Any:
    task = trex.task(given, where)
    task.start()
    assert task.wait(120)
    return task.result()


def test_a_stateless_load(tmp_path: Path) -> None:
    with peer(stl()) as server:
        found = run(tmp_path, options(server, latency_pps=1000, trex_port=2))
    assert server.methods == [
        "api_sync_v2", "acquire", "remove_all_streams", "add_stream", "add_stream", "get_pgid_stats", "start_traffic",
        "get_port_status", "get_port_status", "get_pgid_stats", "remove_rx_filters", "remove_all_streams", "release",
    ]  # fmt: skip
    assert server.requests[0]["params"] == {"name": "STL", "major": 5, "minor": 1}
    assert all(request["params"]["api_h"] == "VGDJwdiY" for request in server.requests[1:])
    assert server.params("acquire")["port_id"] == 2
    assert server.params("start_traffic")["handler"] == "37JncCHr"
    assert server.params("start_traffic")["duration"] == 1.0
    assert server.params("release") == {"api_h": "VGDJwdiY", "port_id": 2, "handler": "37JncCHr"}
    load = server.requests[3]["params"]["stream"]
    assert load["mode"] == {"type": "continuous", "rate": {"type": "bps_L2", "value": 1e9}}
    told = found["trex"]
    assert (told["packets_sent"], told["packets_received"], told["drops"]) == (1000, 990, 10)
    assert told["latency_us"] == {"mean": 12.5, "least": 10, "most": 40, "jitter": 3}
    assert told["latency_errors"] == {"dropped": 1, "out_of_order": 0, "duplicates": 0}


def test_a_stateful_load(tmp_path: Path) -> None:
    with peer(astf()) as server:
        found = run(tmp_path, options(server, trex_kind="astf"))
    told = found["trex"]
    counted = {name: told[name] for name in ("connections", "bytes_sent", "bytes_received", "retransmissions", "drops")}
    assert counted == {
        "connections": 100, "bytes_sent": 10_000_000, "bytes_received": 9_900_000, "retransmissions": 7, "drops": 0,
    }  # fmt: skip
    assert server.methods.count("profile_clear") == 2
    assert server.methods[-1] == "release"
    sent = [request["params"] for request in server.requests if request["method"] == "profile_fragment"]
    profile = json.loads("".join(piece["fragment"] for piece in sent))
    assert profile["templates"][0]["client_template"]["cps"] == 1250.0
    assert sent[0]["frag_first"]
    assert sent[-1]["frag_last"]


def test_the_servers_side_of_a_flow_does_nothing(tmp_path: Path) -> None:
    with peer({}) as server:
        assert run(tmp_path, options(server, side="server"))["connections"] == []
    assert server.requests == []


def test_it_is_stopped(tmp_path: Path) -> None:
    with peer(stl(get_port_status={"state": "TX"})) as server:
        task = trex.task(options(server, duration=3600 * 10**9), tmp_path)
        task.start()
        while "start_traffic" not in server.methods:
            assert not task.wait(0.01)
        task.stop()
        assert task.result()["trex"]["packets_sent"] == 1000
    assert server.methods.count("stop_traffic") == 1
    assert server.methods[-1] == "release"


def test_nobody_is_there() -> None:
    with (
        trex_rpc.Client("127.0.0.1", 1, timeout_s=0.05) as client,
        pytest.raises(
            TestbedError, match=r"trex 127\.0\.0\.1:1: no answer to api_sync_v2 within 0\.05 s: is the server"
        ),
    ):
        client.sync("STL", 5, 1)


def test_a_late_answer_is_no_answer_to_the_next_call() -> None:
    def late(params: dict[str, Any]) -> str:
        time.sleep(0.5)
        return "late"

    with (
        peer({"ping": late, "release": "given back"}) as server,
        trex_rpc.Client("127.0.0.1", server.port, timeout_s=0.2) as client,
    ):
        with pytest.raises(TestbedError, match=r"no answer to ping within 0\.2 s"):
            client.call("ping")
        time.sleep(0.5)
        assert client.call("release") == "given back"


def test_a_port_whose_state_is_not_known_is_stopped_before_it_is_given_back(tmp_path: Path) -> None:
    """One that sends refuses to."""
    with peer(stl(get_port_status=b"hello")) as server, pytest.raises(TestbedError, match="get_port_status: want JSON"):
        run(tmp_path, options(server))
    assert server.methods[-4:] == ["stop_traffic", "remove_rx_filters", "remove_all_streams", "release"]


def test_the_first_of_two_errors_is_the_one_that_is_shown(tmp_path: Path) -> None:
    answers = stl(get_port_status=b"hello", stop_traffic=b"bye")
    with peer(answers) as server, pytest.raises(TestbedError, match="get_port_status: want JSON"):
        run(tmp_path, options(server))


def test_another_version_is_refused_in_the_servers_words(tmp_path: Path) -> None:
    why = "RPC version mismatch: a newer client version is required"
    refusal = Refusal(code=-32000, message="Failed To Execute Method", specific_err=why)
    with (
        peer(stl(api_sync_v2=refusal)) as server,
        pytest.raises(TestbedError, match=f"trex client: trex .*: api_sync_v2: Failed To Execute Method: {why}"),
    ):
        run(tmp_path, options(server))
    assert server.methods == ["api_sync_v2"]


def test_what_was_taken_is_given_back_after_an_error(tmp_path: Path) -> None:
    refusal = Refusal(code=-32000, message="Failed To Execute Method", specific_err="Bad packet size provided: 20000")
    with (
        peer(stl(add_stream=refusal)) as server,
        pytest.raises(TestbedError, match="add_stream: Failed To Execute Method: Bad packet size provided: 20000"),
    ):
        run(tmp_path, options(server))
    assert server.methods[-2:] == ["remove_all_streams", "release"]


def test_a_profile_that_is_not_loaded_is_an_error(tmp_path: Path) -> None:
    with (
        peer(astf(sync={"state": 0})) as server,
        pytest.raises(TestbedError, match="the profile was not loaded: state 0"),
    ):
        run(tmp_path, options(server, trex_kind="astf"))
    assert server.methods[-1] == "release"


def test_what_takes_time_is_asked_for_again() -> None:
    busy = Refusal(code=-32001, message="Try again later")
    under_way = Refusal(code=-32002, message="Work in progress", specific_err="17")
    with (
        peer({"ping": states(busy, under_way), "get_async_results": {"done": True}}) as server,
        trex_rpc.Client("127.0.0.1", server.port) as client,
    ):
        assert client.call("ping") == {"done": True}
    assert server.params("get_async_results") == {"ticket_id": 17}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"hello", "ping: want JSON; got b'hello'"),
        (b"[1, 2]", "want an answer of JSON-RPC 2.0"),
        (b'{"jsonrpc": "2.0", "id": 99, "result": 1}', "want the answer to request 1; got that to 99"),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}}', r"ping: it did not say why \(-32601\)"),
    ],
)
def test_answers_that_are_none(answer: bytes, why: str) -> None:
    with pytest.raises(TestbedError, match=why):
        decode(answer, "ping", 1)


def test_a_batch_of_one_is_an_answer() -> None:
    assert decode(b'[{"jsonrpc": "2.0", "id": 3, "result": null}]', "start", 3) is None


@given(st.binary(max_size=60))
def test_no_answer_breaks_the_decoder(data: bytes) -> None:
    with pytest.raises(TestbedError):
        decode(data, "ping", 1)


@given(st.text(max_size=20), st.dictionaries(st.text(), st.integers() | st.text()), st.integers(1, 2**31))
def test_a_request_is_json_rpc(method: str, params: dict[str, Any], number: int) -> None:
    assert json.loads(encode(method, params, number)) == {
        "jsonrpc": "2.0", "id": number, "method": method, "params": params,
    }  # fmt: skip


@given(st.integers(64, 9216), st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_a_packet_is_whole(size: int, source: Any, sink: Any) -> None:
    found = trex_stl.packet(Load(1, 1.0, str(source), str(sink), 1024, 80, packet_bytes=size))
    assert len(found) == 14 + size
    assert trex_stl.checksum(found[14:34]) == 0
    assert int.from_bytes(found[16:18]) == size
    assert int.from_bytes(found[38:40]) == size - 20
    stream = trex_stl.streams(LOAD)[trex_stl.STREAM]
    assert base64.b64decode(stream["packet"]["binary"]) == trex_stl.packet(LOAD)


@given(st.text(min_size=1, max_size=5000))
def test_fragments_are_the_profile(text: str) -> None:
    pieces = list(trex_astf.fragments(text))
    assert "".join(piece["fragment"] for piece in pieces) == text
    assert [bool(piece.get("frag_first")) for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [bool(piece.get("frag_last")) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    if len(pieces) > 1:
        assert pieces[0]["md5"] == hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def test_what_it_can_not_do() -> None:
    assert trex.refuses(defaults() | {"rate": 10**9}) == []
    assert trex.refuses({"bytes": 5, "cc": "cubic", "write_size": 9}) == [
        "cc: TRex has no such setting", "rate: TRex needs one", "write_size: a load of kind astf has none",
    ]  # fmt: skip
    assert trex.refuses({"bytes": 5, "rate": 5, "trex_kind": "stl"}) == ["bytes: a load of kind stl has none"]
    assert trex.refuses(defaults() | {"rate": 10**9, "family": 6}) == ["family: it sends IPv4"]
    assert trex.refuses(defaults() | {"rate": 10**9, "family": 4}) == []
    asked = {"side": "client", "address": "48.0.0.1", "bind": "16.0.0.1", "rate": 10**9}
    with pytest.raises(TestbedError, match="want IP packets of 64 to 9216 bytes; got 38"):
        trex.load(asked | {"write_size": 10})
    with pytest.raises(TestbedError, match="sink: want an IPv4 address; got 'beta'"):
        trex.load(asked | {"address": "beta"})
    with pytest.raises(TestbedError, match="trex_kind: want one of stl, astf; got udp"):
        trex.load(asked | {"trex_kind": "udp"})
    with pytest.raises(TestbedError, match="want bytes from 1 to 1000000000; got 2000000000"):
        trex.load(asked | {"bytes": 2 * 10**9})


def test_a_flows_words_are_the_loads() -> None:
    asked = defaults() | {"side": "client", "address": "48.0.0.1", "bind": "16.0.0.1", "rate": 10**9}
    assert trex.load(asked).packet_bytes == 1500
    assert trex.load(asked).duration_s == 10.0
    assert trex.load(asked | {"write_size": 100, "duration": 2 * 10**9}).packet_bytes == 128
    assert trex.load(asked | {"packet_bytes": 9000}).packet_bytes == 9000
    assert trex.load(asked | {"bytes": 5000}).flow_bytes == 5000


def test_counters_that_are_not_there() -> None:
    with pytest.raises(TestbedError, match="want stream 1; got none"):
        trex_stl.summary({}, {"flow_stats": {}})
    with pytest.raises(TestbedError, match=r"get_counter_desc: want tcps_connects, .* got 0 other counters"):
        trex_astf.summary([], {}, {})
    with pytest.raises(RpcError) as refused:
        decode(b'{"jsonrpc": "2.0", "id": 1, "error": "no"}', "ping", 1)
    assert refused.value.message == "no"


def test_without_pyzmq_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(TestbedError, match=r"pyzmq is not installed: pip install testctl-hardware\[trex\]"):
        trex.task({"side": "client"}, tmp_path)
