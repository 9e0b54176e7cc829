# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: TCP's events on the running kernel, beside its tcp_info.

Started under `unshare --net --mount`.  A transfer over a bottleneck that loses packets is traced and drained;
what the trace says at its end is what the kernel says itself.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from testctl_agent.collect import tcp_events
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.tasks import Tasks
from testctl_agent.tcp_trace.lab import EVENT_BYTES

from agents.tests.cc.root_struct_ops import BYTES, far_end, transfer_to

EVENT = np.dtype(
    [(name, "<u8") for name in ("time_ns", "acked", "pacing", "rate")]
    + [(name, "<u4") for name in ("flight", "cwnd", "ssthresh", "pipe", "prior", "delivered", "srtt_us", "length")]
    + [("cc", "<u4", (5,))]
    + [(name, "<u2") for name in ("local", "remote", "segs")]
    + [(name, "u1") for name in ("kind", "state", "limit", "cc_kind")]
    + [("spare", "<u2")]
)
ACK, SEND, RETRANSMIT, TIMEOUT = range(4)
RECOVERY, MSS = 3, 1448
APPLICATION, CWND = 1, 4


def kernel_says(sender: socket.socket) -> dict[str, int]:
    """struct tcp_info once all is acknowledged."""
    while True:
        info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        if struct.unpack_from("=I", info, 24) == (0,):
            break
        time.sleep(0.01)
    found = {"ca_state": info[1]}
    at = {"rtt": 68, "ssthresh": 76, "cwnd": 80, "total_retrans": 100, "data_segs_out": 156, "delivered": 192}
    found |= {name: struct.unpack_from("=I", info, where)[0] for name, where in at.items()}
    at = {"pacing": 104, "acked": 120, "rate": 160}
    found |= {name: struct.unpack_from("=Q", info, where)[0] for name, where in at.items()}
    return found


def check(events: np.ndarray, said: dict[str, int], lost: int) -> None:
    did = Counter(events["kind"].tolist())
    print(f"{len(events)} events {dict(did)}, {lost} lost; {said}")
    assert set(events["remote"].tolist()) == {5000}, "another namespace's connections, or another's"
    assert len(set(events["local"].tolist())) == 1
    sent = np.isin(events["kind"], (SEND, RETRANSMIT)) & (events["length"] > 0)
    again = events["kind"] == RETRANSMIT
    new = events[events["kind"] == SEND]
    # TCP's own counts say what of its packets the trace does not have.
    assert events["segs"][sent].sum() + lost == said["data_segs_out"]
    assert lost < said["data_segs_out"] // 20
    lost_again = said["total_retrans"] - int(events["segs"][again].sum())
    assert 0 <= lost_again <= lost
    assert said["total_retrans"] > 0
    # What the host's own queue refuses TCP does not count as sent, and sends as new once more.
    assert new["length"].sum() >= BYTES - (lost - lost_again) * MSS
    assert (new["acked"] + new["flight"])[new["length"] > 0].max() in (BYTES + 1, BYTES + 2)
    acks = events[events["kind"] == ACK]
    last = acks[acks["acked"] == BYTES + 1][0]
    assert (last["pipe"], last["flight"], said["acked"]) == (0, 0, BYTES + 1)
    names = {"cwnd": "cwnd", "ssthresh": "ssthresh", "delivered": "delivered", "ca_state": "state", "rtt": "srtt_us"}
    names |= {"pacing": "pacing", "rate": "rate"}
    assert {name: int(last[column]) for name, column in names.items()} == {name: said[name] for name in names}
    assert (np.diff(acks["acked"].astype(np.int64)) >= 0).all()
    assert (np.diff(acks["delivered"].astype(np.int64)) >= 0).all()
    assert (events["state"] == RECOVERY).any()
    assert last["limit"] == APPLICATION, "all was sent"
    full = new["pipe"] >= new["cwnd"]
    assert full.any()
    assert ((new["limit"] == CWND) == full).all()
    assert not events["cc_kind"].any()
    assert not events["cc"].any()
    # One transmission changes the pipe by its packets; what it was before is what it was after the event before.
    assert (events["prior"][1:][sent[1:]] == events["pipe"][:-1][sent[1:]]).mean() > 0.99
    grown = events["pipe"].astype(int) - events["prior"]
    assert (grown[sent & ~again] == events["segs"][sent & ~again]).all()


def attached() -> list[str]:
    """The BPF programs that this process has attached."""
    links = Path("/proc/self/fdinfo").iterdir()
    return [path.name for path in links if path.exists() and "link_type" in path.read_text()]


def check_end(workdir: Path) -> None:
    """After a reader that was killed nothing stays attached."""
    tasks = Tasks("alpha", lambda kind, name, options, where: tcp_events.task(options, where), workdir, Limits())
    task = tasks.start("first", "collector", "tcp_events", {})
    assert isinstance(task, tcp_events._BpfTask)
    assert task._process is not None
    assert attached()
    task._process.kill()
    assert task.wait(30)
    tasks.stop_all()
    assert not attached(), attached()


def main() -> None:
    workdir = Path(sys.argv[1])
    check_end(workdir)
    with far_end() as server:
        task = tcp_events.task({}, workdir)
        task.start()
        said: dict[str, int] = {}
        assert transfer_to(server, "cubic", lambda sender: said.update(kernel_says(sender))) == BYTES
        time.sleep(0.2)
        task.stop()
    result = task.result()
    data = (workdir / tcp_events.FILE).read_bytes()
    assert result["records"] * EVENT_BYTES == len(data), result
    check(np.frombuffer(data, EVENT), said, result["lost"])
    print("all is as the kernel says")


if __name__ == "__main__":
    main()
