# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: for each parser of foreign bytes a call that may raise the project's errors and nothing else.

A target's seeds are inputs that are right.  `run` gets any bytes; an exception that leaves it is a fault.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from google.protobuf.message import DecodeError
from testctl.analyse import choose, scan
from testctl.analyse.assess import assess_capture
from testctl.analyse.run import records_and_notes, with_what_is_known
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl.records.files import read_object
from testctl.records.packets import read_packets
from testctl.records.store import Records
from testctl.results import load_run
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.protobuf import from_wire
from testctl_agent.engine import limits, values
from testctl_agent.params import registry
from testctl_agent.spec.errors import PlanError, TestctlError

ROOT = Path(__file__).parents[2]
MAX_POINTS = 100
MAX_CHARS = 20_000
FLOW = {"name": "bulk", "from": "sender", "to": "receiver", "generator": "tgen", "server_port": 5000,
        "client_port": 40000, "parallel": 2, "options": {}}  # fmt: skip
POINT = {"id": "fuzzed", "tuples": [], "settings": {}, "flows": [FLOW], "topology": {}}
OUTCOME = {"t0_ns": 1, "addresses": {"sender": ["10.0.0.1", "fd00::1"], "receiver": ["10.0.0.2", "fd00::2"]}}
REQUESTS = (pb.ApplyRequest, pb.StartRequest, pb.WaitRequest, pb.FetchRequest, pb.AcquireRequest, pb.TaskStatus)


@dataclass(frozen=True)
class Target:
    seeds: Callable[[], Iterator[bytes]]
    run: Callable[[bytes], None]


@cache
def _scratch() -> Path:
    """A directory in memory, where there is one, for the files that readers want."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="testctl-fuzz-", dir=memory if memory.is_dir() else None))


def clean() -> None:
    """Remove what the targets wrote."""
    shutil.rmtree(_scratch(), ignore_errors=True)


def _check_text(error: TestctlError) -> None:
    """A message that a terminal can show."""
    assert len(str(error)) < MAX_CHARS
    assert all(line.isprintable() for line in str(error).splitlines())


def _wire_seeds() -> Iterator[bytes]:
    for entity, parameter, value in (
        ("alpha", "mtu", pb.Value(integer=1500)),
        ("alpha", "cc", pb.Value(text="dctcp")),
        ("switch", "fate", pb.Value(text="drop data 1-4,6-8 of bulk, first; lose 1e-5 of bulk seed 3")),
        ("alpha", "net.ipv4.tcp_rmem", pb.Value(text="4096 131072 6291456")),
    ):
        setting = pb.Setting(entity=entity, parameter=parameter, value=value)
        yield b"\0" + pb.ApplyRequest(settings=[setting]).SerializeToString()
    options = {"side": pb.Value(text="client"), "address": pb.Value(text="127.0.0.1"), "parallel": pb.Value(integer=8)}
    yield b"\1" + pb.StartRequest(task="bulk-0", kind="generator", name="tgen", options=options).SerializeToString()
    yield b"\2" + pb.WaitRequest(task="bulk-0", timeout_ns=10**9).SerializeToString()
    yield b"\3" + pb.FetchRequest(task="bulk-0", file="result.json").SerializeToString()
    yield b"\4" + pb.AcquireRequest(holder="lab", lifetime_ns=10**9).SerializeToString()
    yield b"\5" + pb.TaskStatus(ended=True, ok=True, result='{"connections": []}', files=["a"]).SerializeToString()


def _wire(data: bytes) -> None:
    """A request as an agent takes it in, up to where it would touch the host."""
    kind = REQUESTS[data[0] % len(REQUESTS)] if data else REQUESTS[0]
    try:
        request = kind.FromString(data[1:])
    except DecodeError:
        return
    try:
        if isinstance(request, pb.ApplyRequest):
            for one in request.settings:
                _setting(one)
        elif isinstance(request, pb.StartRequest):
            limits.task_name("host alpha", request.task)
            limits.options("host alpha", {name: from_wire(value) for name, value in request.options.items()})
    except TestctlError as error:
        _check_text(error)


def _setting(one: pb.Setting) -> None:
    value = from_wire(one.value)
    limits.setting("host alpha", one.entity, one.parameter, value)
    for kind in ("host", "port", "switch"):
        found = registry.find(kind, one.parameter)
        if found is not None and found.role == "state":
            spec = values.spec_of(registry.module(kind, one.parameter), one.parameter)
            values.check("host alpha", spec, value)


def _pcap_seeds() -> Iterator[bytes]:
    import struct

    tcp = struct.pack(">HHIIBBHHH", 40000, 5000, 1, 1, 0x80, 0x10, 1000, 0, 0) + b"\1\1\x08\x0a" + bytes(8)
    for magic, order in ((0xA1B23C4D, "<"), (0xA1B2C3D4, ">")):
        data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1)
        for n, tag in enumerate((b"", b"\x81\x00\x00\x05", b"")):
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 2, 20 + len(tcp), n, 0, 64, 6, 0, bytes((10, 0, 0, 1)),
                             bytes((10, 0, 0, 2)))  # fmt: skip
            frame = bytes(12) + tag + b"\x08\x00" + ip + tcp
            data += struct.pack(order + "IIII", n, 0, len(frame), len(frame) + 1448) + frame
        yield data


def _pcap(data: bytes) -> None:
    path = _scratch() / "capture.pcap"
    path.write_bytes(data)
    try:
        packets, _ = read_packets({"sender": path}, PointSpec.from_json(POINT), Outcome.from_json(OUTCOME))
    except TestctlError:
        return
    packets.validate(full=True)
    assert packets.num_rows <= len(data) // 70


def _capture_seeds() -> Iterator[bytes]:
    """Of pcap, as other tools write it, and of pcapng; a first byte says where it was captured."""
    import struct

    for at, data in enumerate(_pcap_seeds()):
        frames, offset, order = [], 24, "<>"[at]
        while offset < len(data):
            _, _, length, _ = struct.unpack_from(order + "IIII", data, offset)
            frames.append(data[offset + 16 : offset + 16 + length])
            offset += 16 + length
        blocks = [(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
                  (1, struct.pack(order + "HHIHHI", 1, 0, 0, 9, 1, 9))]  # fmt: skip
        for frame in frames:
            body = struct.pack(order + "IIIII", 0, 0, 1000, len(frame), len(frame))
            blocks.append((6, body + frame + bytes(-len(frame) % 4)))
        made = b""
        for kind, body in blocks:
            size = len(body) + 12
            made += struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)
        yield bytes((at,)) + data
        yield bytes((at + 2,)) + made
        for link, skipped in ((101, 14), (12, 14)):
            raw = data[:20] + struct.pack(order + "I", link)
            for frame in frames[:1]:
                raw += struct.pack(order + "IIII", 1, 0, len(frame) - skipped, len(frame)) + frame[skipped:]
            yield b"\3" + raw


def _captures(data: bytes) -> None:
    """A file as `testctl analyse` reads and judges it, without its report."""
    path = _scratch() / "anybodys"
    path.write_bytes(data[1:])
    with tempfile.TemporaryDirectory(dir=_scratch()) as work:
        try:
            at = (None, "client", "server", "between")[data[0] % 4] if data else None
            chosen = choose([scan(path, Path(work))], at)
            records, notes = records_and_notes(chosen, _scratch())
        except TestctlError as error:
            _check_text(error)
            return
    records, _ = assess_capture(with_what_is_known(records, chosen, notes))
    records.packets.validate(full=True)
    assert records.packets.num_rows <= chosen.packets  # copies are left out


def _plan_seeds() -> Iterator[bytes]:
    for path in sorted(
        file for file in (ROOT / "plans").rglob("*.yaml") if "corpus" not in file.parts and file.stem != "releases"
    ):
        yield path.read_bytes()


def _plan(data: bytes) -> None:
    try:
        load_plan(data, metrics=metric_names(), max_points=MAX_POINTS)
    except PlanError as error:
        _check_text(error)


DOCUMENTS = ("summary.json", "points/0/verdict.json", "points/0/point.json", "points/0/metrics.json",
             "points/0/records.json", "points/0/outcome.json", "points/0/packets.parquet")  # fmt: skip


@cache
def _run_dir() -> Path:
    run = _scratch() / "20260101T000000Z-plan"
    (run / "points" / "0").mkdir(parents=True)
    return run


def _documents() -> dict[str, bytes]:
    """A small run, as its files: enough for every reader to come to its end."""
    tuples = [["sender", "cc", "cubic"]]
    point = {"id": "0", "tuples": tuples, "topology": {}, "flows": {}, "settings": {"sender": {"cc": "cubic"}}}
    verdict = {"id": "0", "verdict": "pass", "reason": "", "digest": "00", "wall_s": 1.0, "virtual_s": 1.0}
    metrics = {"bulk": {"throughput_bps": 1e9, "cwnd_mean": None}}
    summary = {
        "plan": "plan", "run": "20260101T000000Z-plan", "digest": "00", "expectations": [],
        "points": [verdict | {"tuples": tuples, "metrics": metrics}],
    }  # fmt: skip
    records = {"counters": {}, "outcome": {}, "point": point, "notes": []}
    documents = (summary, verdict, point, metrics, records, {"t0_ns": 0, "end_ns": 1, "entities": {}})
    found = {name: json.dumps(value).encode() for name, value in zip(DOCUMENTS, documents, strict=False)}
    return found | {DOCUMENTS[-1]: b"PAR1"}


def _results_seeds() -> Iterator[bytes]:
    for number, data in enumerate(_documents().values()):
        yield bytes((number,)) + data


def _results(data: bytes) -> None:
    """A run one of whose files is `data`, opened as `show`, `serve` and the library open it."""
    number = data[0] % len(DOCUMENTS) if data else 0
    run = _run_dir()
    for at, (name, right) in enumerate(_documents().items()):
        (run / name).write_bytes(data[1:] if at == number else right)
    try:
        found = load_run(run)
        str((found.name, found.digest, found.complete))
        for point in found.points:
            str((point.summary(), point.outcome, point.point, point.fates))
            read_object(point.path / "records.json")
            Records.load(point.path)
    except TestctlError:
        return


TARGETS = {
    "wire": Target(_wire_seeds, _wire),
    "pcap": Target(_pcap_seeds, _pcap),
    "captures": Target(_capture_seeds, _captures),
    "plan": Target(_plan_seeds, _plan),
    "results": Target(_results_seeds, _results),
}
