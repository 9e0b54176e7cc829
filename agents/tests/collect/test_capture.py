# SPDX-License-Identifier: Apache-2.0
"""Captures: the command, what tcpdump says at its end, and a real one in a namespace."""

from __future__ import annotations

import struct
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.collect import capture
from testctl_agent.spec.errors import TestbedError

GOOD = """tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes
42 packets captured
42 packets received by filter
0 packets dropped by kernel
"""


def test_the_command() -> None:
    assert capture.argv({"device": "eth3", "ring_kib": 4096}) == [
        "tcpdump", "-i", "eth3", "-n", "-s", "128", "-B", "4096", "--time-stamp-precision=nano", "-Z", "root",
        "-w", "-", "tcp",
    ]  # fmt: skip


def test_all_packets_are_there() -> None:
    assert capture.counts(GOOD, "eth0") == {"captured": 42, "received": 42, "dropped": 0}


def test_one_packet() -> None:
    assert capture.counts(GOOD.replace("42 packets", "1 packet"), "eth0")["captured"] == 1


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("0 packets dropped", "7 packets dropped", "capture: 7 of 42 packets were dropped by the kernel"),
        ("42 packets captured", "40 packets captured", "capture: 40 of 42 packets were written"),
        ("42 packets captured", "", "capture: tcpdump did not say how many packets were captured: "),
    ],
)
def test_packets_are_missing(old: str, new: str, error: str) -> None:
    with pytest.raises(TestbedError, match=f"^{error}"):
        capture.counts(GOOD.replace(old, new), "eth0")


def test_at_lo_every_packet_is_received_twice() -> None:
    assert capture.counts(GOOD.replace("42 packets captured", "21 packets captured"), "lo")["captured"] == 21


@pytest.mark.skipif(bool(capture.unavailable()), reason="tcpdump is not installed")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    task = capture.task({"device": "nonesuch0"}, tmp_path)
    with pytest.raises(TestbedError, match="capture: ended before it was ready: tcpdump: nonesuch0: "):
        task.start()


SCRIPT = """
    import sys, time
    from pathlib import Path
    from testctl_agent.collect import capture, counters, tcp_info
    from testctl_agent.generators import tgen
    from testctl_agent.system.subprocesses import run, start
    from agents.tests.own_host import another

    base = Path(sys.argv[1])
    run(["mount", "-t", "sysfs", "sysfs", "/sys"])
    with another() as peer:
        there = ["nsenter", "--net", "--target", str(peer)]
        run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"])
        run(["ip", "link", "set", "eth1", "netns", str(peer)])
        for words, where, address in ((["ip"], "eth0", "10.9.0.1/24"), ([*there, "ip"], "eth1", "10.9.0.2/24")):
            run([*words, "address", "add", address, "dev", where])
            run([*words, "link", "set", where, "up"])

        def started(module, name, options):
            (base / name).mkdir()
            task = module.task(options, base / name)
            task.start()
            return task

        collectors = [
            started(counters, "counters", {"devices": "eth0"}),
            started(capture, "capture", {"device": "eth0"}),
            started(tcp_info, "tcp_info", {"ports": "5001", "interval_ns": 10_000_000}),
        ]
        flow = {"address": "10.9.0.1", "server_port": 5001, "client_port": 40000, "rate": 10**7, "verify": True,
                "start_ns": time.time_ns() + 2 * 10**8, "bytes": 400_000, "seed": 1}
        server = started(tgen, "server", flow | {"side": "server"})
        (base / "client").mkdir()
        client = start([*there, *tgen.argv("client", flow, base / "client")], stderr=base / "client.txt")
        assert server.wait(120) and client.wait() == 0, (base / "client.txt").read_text()
        for task in collectors:
            task.stop()
        print(server.result()["connections"][0]["bytes_received"], *(t.result() for t in collectors), sep="\\n")
"""


@pytest.mark.root
@pytest.mark.skipif(bool(capture.unavailable()), reason="tcpdump is not installed")
def test_a_capture_of_a_flow_is_whole(tmp_path: Path, in_namespace: Callable[..., str]) -> None:
    """In namespaces of its own; both end with the last process in them."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    received, counted, captured, sampled = in_namespace(script, str(tmp_path), timeout_s=300).splitlines()
    assert int(received) == 400_000
    assert counted == "{'errors': []}"
    assert "'dropped': 0" in captured
    assert int(sampled.split()[1].rstrip("}")) > 5 * 344
    data = (tmp_path / "capture" / "capture.pcap").read_bytes()
    magic, *_, snap, link = struct.unpack_from("<IHHiIII", data)
    assert (magic, snap, link) == (0xA1B23C4D, 128, 1)
