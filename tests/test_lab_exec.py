# SPDX-License-Identifier: Apache-2.0
"""`testctl lab exec`: any program in virtual time, twice the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from testctl.lab.built import built
from testctl.results import load_run

from tests import cli_commands
from tests.cli_commands import output
from tests.plan_runs import run_of
from tests.test_ordinary_user import UID, USER

pytestmark = pytest.mark.lab

NETWORK = ["--set", "switch:receiver.rate=100mbit", "--set", "switch.delay=5ms"]


def lab_exec(*words: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
    return cli_commands.call(where or Path.cwd(), "lab", "exec", *words, code=None, timeout_s=600)


def test_output_exit_code_and_virtual_time(tmp_path: Path) -> None:
    """The command's own, and an hour passes at once; the machine's files are as they were, but for --writable."""
    given, ours = tmp_path / "given", tmp_path / "ours"
    given.mkdir()
    ours.mkdir()
    script = f"date +%s; sleep 3600; date +%s; pwd; echo wrong >&2; echo kept > {given}/file; touch {ours}/file; exit 7"
    done = lab_exec("--writable", str(given), "--", "sh", "-c", script, where=tmp_path)
    before, after, where = done.stdout.splitlines()
    assert int(after) - int(before) == 3600
    assert where == str(tmp_path)
    assert done.stderr.splitlines()[0] == "wrong"
    assert "Read-only file system" in done.stderr
    assert done.returncode == 7
    assert (given / "file").read_text() == "kept\n"
    assert list(ours.iterdir()) == []


DRAWS = """
import os, random, tempfile, threading, time, uuid
start = time.monotonic_ns()
reads = 0
while time.monotonic_ns() < start + 10**6:
    reads += 1
threads = [threading.Thread(target=time.sleep, args=(random.random(),)) for _ in range(3)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(os.urandom(8).hex(), random.random(), uuid.uuid4(), tempfile.mkdtemp(), reads, time.time_ns(), hash("text"))
with open("/dev/urandom", "rb") as file:
    print(file.read(200).hex())
"""


def test_random_numbers_and_the_clock_repeat() -> None:
    first, second = (lab_exec("--", sys.executable, "-c", DRAWS) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert len(first.stdout.split()) == 8
    assert first.stdout == second.stdout


def twice(tmp_path: Path, *words: str) -> tuple[dict[str, Any], list[bytes]]:
    """The JSON of two runs, which has to be the same, and the packets of each host, which have to be, too."""
    found, packets = [], []
    for number in range(2):
        where = tmp_path / str(number)
        where.mkdir()
        done = lab_exec(*NETWORK, "--json", "--capture", str(where / "packets.pcap"), *words)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(json.loads(done.stdout))
        packets.append([path.read_bytes() for path in sorted(where.iterdir())])
    assert found[0] == found[1]
    assert packets[0] == packets[1]
    return found[0], packets[0]


IPV6 = 0x86DD


def ether_types(pcap: bytes) -> list[int]:
    """Of each packet of a capture (pcap, little-endian)."""
    found, at = [], 24
    while at < len(pcap):
        found.append(int.from_bytes(pcap[at + 16 + 12 : at + 16 + 14], "big"))
        at += 16 + int.from_bytes(pcap[at + 8 : at + 12], "little")
    return found


def page(where: Path) -> Path:
    """A directory with a page of 180 kB."""
    (where / "page").mkdir()
    (where / "page" / "index.html").write_text("a page of the lab\n" * 10_000)
    os.utime(where / "page" / "index.html", (0, 0))
    return where / "page"


def test_curl_and_pythons_http_server(tmp_path: Path) -> None:
    """The server goes on, and is stopped; the names of hosts are known; what --set sets is in force."""
    server = f"{sys.executable} -m http.server 8000 -d {page(tmp_path)}"
    found, packets = twice(
        tmp_path, "--host", f"receiver={server}", "--host", "sender",
        "--", "curl", "-sS", "-w", "%{size_download} %{time_connect}", "-o", "/dev/null", "http://receiver:8000/",
    )  # fmt: skip
    served, fetched = found["programs"]
    size, connected = fetched["stdout"].split()
    assert int(size) == 180_000
    assert 0.010 <= float(connected) < 0.011  # 5 ms each way
    assert '"GET / HTTP/1.1" 200' in served["stderr"]
    assert (served["stopped"], fetched["stopped"]) == (True, False)
    assert len(packets) == 2
    assert all(len(of_host) > 180_000 for of_host in packets)


def test_iperf3(tmp_path: Path) -> None:
    found, packets = twice(
        tmp_path, "--host", "receiver=iperf3 --server --one-off",
        "--host", "sender=iperf3 --client receiver -t 1 --json",
    )  # fmt: skip
    assert [one["exit"] for one in found["programs"]] == [0, 0]
    assert not any(one["stopped"] for one in found["programs"])
    received = json.loads(found["programs"][1]["stdout"])["end"]["sum_received"]["bits_per_second"]
    assert 80e6 < received < 100e6
    assert len(packets) == 2


@pytest.mark.long
def test_curl_over_ipv6(tmp_path: Path) -> None:
    """A name stands for its host's IPv6 address alone, and no packet of IPv4 is sent."""
    server = f"{sys.executable} -m http.server --bind fd00::2 8000 -d {page(tmp_path)}"
    told = "%{size_download} %{remote_ip} %{time_connect}"
    found, packets = twice(
        tmp_path, "--family", "6", "--host", f"receiver={server}", "--host", "sender",
        "--", "curl", "-sS", "-w", told, "-o", "/dev/null", "http://receiver:8000/",
    )  # fmt: skip
    size, address, connected = found["programs"][1]["stdout"].split()
    assert (int(size), address) == (180_000, "fd00::2")
    assert 0.010 <= float(connected) < 0.011  # 5 ms each way
    assert all(set(ether_types(of_host)) == {IPV6} for of_host in packets)


@pytest.mark.long
def test_iperf3_over_ipv6(tmp_path: Path) -> None:
    """With both addresses a program has its choice: without -4 iperf3 takes IPv6."""
    found, packets = twice(
        tmp_path, "--family", "both",
        "--host", "receiver=iperf3 --server --one-off", "--host", "sender=iperf3 --client receiver -t 1 --json",
    )  # fmt: skip
    said = json.loads(found["programs"][1]["stdout"])
    assert said["start"]["connected"][0]["remote_host"] == "fd00::2"
    assert 80e6 < said["end"]["sum_received"]["bits_per_second"] < 100e6
    assert all(set(ether_types(of_host)) == {IPV6} for of_host in packets)


def test_the_times_of_links_begin_with_the_first_program() -> None:
    """A SYN at 1.5 s, while the link is down, is sent again 1 s later; before and after that a port answers at once."""
    script = """
import socket, time
for _ in range(3):
    began = time.monotonic()
    print(socket.socket().connect_ex(("receiver", 9)), round(time.monotonic() - began))
    time.sleep(1.5)
"""
    done = lab_exec("--set", "switch:receiver.down=1s-2s", "--", sys.executable, "-c", script)
    assert done.stdout.splitlines() == ["111 0", "111 1", "111 0"], done.stderr


def test_names_of_both_families() -> None:
    script = """
import socket
print([one[4][0] for one in socket.getaddrinfo("h3", 1, type=socket.SOCK_STREAM)])
with socket.create_server(("::1", 1), family=socket.AF_INET6), socket.create_connection(("localhost", 1)) as own:
    print(own.getpeername()[0])
"""
    words = ["--family", "both", "--topology", "star:hosts=3"]
    done = lab_exec(*words, "--", sys.executable, "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["['fd00::3', '10.0.0.3']", "::1"]
    wrong = lab_exec("--family", "7", "--", "true")
    assert wrong.returncode == 2
    assert wrong.stderr == "--family: want 4, 6 or both; got 7\n"


def test_several_hosts_and_signals() -> None:
    """Lines by host in the order of the commands; the first one that failed by itself gives the exit code."""
    done = lab_exec(
        "--topology", "star:hosts=3",
        "--host", "h1=sh -c 'echo one; echo else >&2; kill -KILL $$'",
        "--host", "h2=sh -c 'echo two; exec sleep 1000'",
        "--host", "h3=sh -c 'hostname=$(getent hosts h1); echo $hostname; sleep 2'",
    )  # fmt: skip
    assert done.stdout.splitlines() == ["h1: one", "h2: two", "h3: 10.0.0.1 h1"]
    assert done.stderr.splitlines() == ["h1: else"]
    assert done.returncode == 137


def test_one_that_never_ends_is_ended() -> None:
    done = lab_exec("--timeout", "8", "--", "sh", "-c", "echo before; while :; do :; done")
    assert done.returncode == 3
    assert done.stdout == "before\n"
    assert "sender: sh -c 'echo before; while :; do :; done': did not end within 8 s of wall time" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.root
def test_an_ordinary_user() -> None:
    kernel = built("6.12")
    assert kernel is not None
    with tempfile.TemporaryDirectory(prefix="testctl-user-") as name:
        home = Path(name)
        (home / "cache").mkdir()
        (home / "cache" / "kernels").symlink_to(kernel.directory.parent)
        for path in (home, home / "cache"):
            os.chown(path, UID, UID)
        env = {"HOME": name, "TMPDIR": name, "TESTCTL_CACHE": f"{name}/cache", "PATH": os.environ["PATH"]}
        capture = home / "packets.pcap"
        hosts = ["--host", "receiver=iperf3 -s -1", "--host", "sender=iperf3 -c receiver -n 1M"]
        done = subprocess.run(
            [*USER, *cli_commands.TESTCTL, "lab", "exec", "--capture", str(capture), *hosts],
            capture_output=True, text=True, timeout=600, check=False, env=env, cwd=home,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert {path.stat().st_uid for path in home.glob("*.pcap")} == {UID}
        assert sorted(path.name for path in home.glob("*.pcap")) == ["packets-receiver.pcap", "packets-sender.pcap"]


PLAN = """
topology: pair
flows: {fetch: sender -> receiver}
tuples:
  - [fetch, generator, command]
  - [fetch, server, "SERVER {server_port} -b {address} -d DIRECTORY"]
  - [fetch, client, "curl -sS -o /dev/null http://{address}:{server_port}/file"]
  - [hosts, tcp_info, 10ms]
  - [switch:sender, rate, 10mbit]
  - [switch, delay, 5ms]
expect:
  - {metric: payload_bytes, min: 1000000, max: 1001000}
"""


def command_plan(where: Path) -> Path:
    (where / "file").write_bytes(bytes(1_000_000))
    os.utime(where / "file", (0, 0))
    text = PLAN.replace("SERVER", f"{sys.executable} -m http.server").replace("DIRECTORY", str(where))
    (where / "fetch.yaml").write_text(text)
    return where / "fetch.yaml"


def test_a_plan_with_commands_has_metrics_and_repeats(tmp_path: Path) -> None:
    """A run is replayed only with the user's word: its plan may be another person's."""
    (point,) = run_of(tmp_path, command_plan(tmp_path)).points
    assert 8e6 < float(point.metrics["fetch"]["throughput_bps"] or 0) <= 10e6
    said = output(tmp_path, "replay", "run", point.id, code=2)
    assert "want --commands, if they may" in said
    assert "fetch, client: curl -sS" in said
    assert "want --commands" in output(tmp_path, "shrink", "run", point.id, "--holds", code=2)
    again = output(tmp_path, "replay", "run", point.id, "--commands", "--out", "again")
    assert "the same:" in again


@pytest.mark.root
def test_a_plan_with_commands_in_namespaces(tmp_path: Path) -> None:
    words = ("--testbed", "netns", "--without", "switch.delay", "--without", "switch:sender.rate")
    output(tmp_path, "run", str(command_plan(tmp_path)), "--out", "run", *words)
    assert load_run(tmp_path / "run").points[0].verdict == "pass"
