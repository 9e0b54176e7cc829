# SPDX-License-Identifier: Apache-2.0
"""testctl shrink and replay with the real lab, on the DCTCP bug of plans/dctcp_htb.yaml."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.plan import load_plan
from testctl.results import load_run
from testctl.system import checkout

from tests import cli_commands

pytestmark = [pytest.mark.long, pytest.mark.lab]

EXPECT = """expect:
  - name: throughput is steady
    metric: stability_cv_10ms
    max: 0.05
"""
LEFT_OUT = ("ends.kernel", "ends.tcp_ecn", "ends.tcp_early_retrans", "all.mtu", "sender.htb_mark", "receiver.gro_flush",
            "switch.rate", "switch.delay", "bulk.duration")  # fmt: skip
SET = ("ends.cc=dctcp_bug", "sender.htb_ecn_threshold=3kB", "bulk.bytes=20MB", "bulk.parallel=1")


def call(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return cli_commands.call(where, *words, code=None, timeout_s=3600)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of one point in which the bug shows, with an expectation of steady throughput; its id."""
    where = tmp_path_factory.mktemp("bug")
    text = (checkout.root() / "plans" / "dctcp_htb.yaml").read_text(encoding="utf-8")
    (where / "bug.yaml").write_text(text.partition("exclude:")[0] + EXPECT, encoding="utf-8")
    words = [word for tuple_ in LEFT_OUT for word in ("--without", tuple_)]
    words += [word for value in SET for word in ("--set", value)]
    done = call(where, "run", "bug.yaml", "--captures", "--out", "run", *words)
    assert done.returncode == 1, done.stdout + done.stderr
    (point,) = load_run(where / "run").points
    return where, point.id


def test_the_bug_is_named(failing: tuple[Path, str]) -> None:
    """cc, gro and the threshold matter, with the range of the threshold; TSO does not; the plan shows it again."""
    where, point = failing
    words = ("shrink", "run", point, "--out", "shrunk", "--jobs", "2", "--probes", "2", "--json")
    done = call(where, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["complete"]
    matters = {".".join(one["item"][:2]): one for one in said["tuples"] if one["matters"]}
    assert {"ends.cc", "receiver.gro", "sender.htb_ecn_threshold"} <= set(matters)
    assert "sender.tso" not in matters
    answers = {(key, probe["value"]): probe["answer"] for key, one in matters.items() for probe in one["probes"]}
    assert answers["ends.cc", "dctcp"] == "goes"
    assert answers["receiver.gro", "off"] == "goes"
    assert answers["sender.htb_ecn_threshold", "30kB"] == "goes"
    threshold = matters["sender.htb_ecn_threshold"]
    assert threshold["least"]
    assert threshold["above"]

    again = call(where, *words)
    assert json.loads(again.stdout)["runs"] <= said["runs"] // 2, "what was run once is known"
    assert json.loads(again.stdout)["smallest"] == said["smallest"]

    plan = Path(said["plan"])
    shown = call(where, "run", str(where / plan), "--out", "again")
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert [p.verdict for p in load_run(where / "again").points] == ["fail"]


def test_an_interrupted_search_goes_on_later(failing: tuple[Path, str]) -> None:
    """Ctrl-C after two trials: the plan of what was found is there; --max-runs 1 ends it again, after one run more."""
    where, point = failing
    argv = [*cli_commands.TESTCTL, "shrink", "run", point, "--out", "stopped"]
    with subprocess.Popen(argv, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
        assert search.stderr is not None
        lines = iter(search.stderr)
        for line in lines:
            if line.startswith("[2] "):
                break
        search.send_signal(signal.SIGINT)
        rest = "".join(lines)
        assert search.wait(300) == 130
    assert "interrupted; what was found is kept in stopped" in rest
    said = json.loads((where / "stopped" / "shrink.json").read_text())
    assert not said["complete"]
    assert load_plan(where / said["plan"]).points

    again = call(where, "shrink", "run", point, "--out", "stopped", "--max-runs", "1", "--json")
    assert again.returncode == 0, again.stderr
    assert "[2] " in again.stderr
    assert json.loads(again.stdout)["runs"] == 1
    assert "--max-runs 1: all were made" in again.stderr
    other = call(where, "shrink", "run", point, "--out", "run")
    assert other.returncode == 2
    assert "want a new directory, or one of an earlier search" in other.stderr


def test_a_replay_is_the_same_with_every_instrument(failing: tuple[Path, str]) -> None:
    where, point = failing
    words = ("--packets", "full", "--events", "--kernel-log", "--out", "replayed")
    done = call(where, "replay", "run", point[:6], *words)
    assert done.returncode == 0, done.stdout + done.stderr
    before, after = (load_run(where / name).point(point) for name in ("run", "replayed"))
    assert f"digest {before.digest}" in done.stdout
    assert "not what the run had" not in done.stdout
    assert before.tcp_events() is None
    events = after.tcp_events()
    assert events is not None
    assert events.num_rows > 1000
    assert cut(before.captures()["sender"])
    assert not cut(after.captures()["sender"])
    assert "Linux version" in (after.path / "kernel.log").read_text(encoding="utf-8")
    assert call(where, "show", "replayed").returncode == 0


def test_a_replay_says_what_differs_and_where(failing: tuple[Path, str]) -> None:
    """Against a run that was tampered with: one packet's sequence number, and the key of its code."""
    where, point = failing
    shutil.copytree(where / "run", where / "other")
    place = where / "other" / "points" / point
    packets = pq.read_table(place / "packets.parquet")
    seq = packets.column("seq").to_pylist()
    seq[100] += 1
    changed = packets.set_column(packets.column_names.index("seq"), "seq", pa.array(seq, pa.int64()))
    pq.write_table(changed, place / "packets.parquet")
    verdict = json.loads((place / "verdict.json").read_text())
    verdict |= {"digest": "0" * 64, "code_key": "0-" + verdict["code_key"].partition("-")[2]}
    (place / "verdict.json").write_text(json.dumps(verdict))

    done = call(where, "replay", "other", point, "--out", "differs")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not what the run had: another kernel" in done.stdout
    assert "first: packet 100 at " in done.stdout
    assert f"seq {seq[100]} → {seq[100] - 1}" in done.stdout


def cut(pcap: Path) -> bool:
    """Whether a capture holds some packet that is shorter than it was on the wire."""
    data = pcap.read_bytes()
    at = 24
    while at < len(data):
        kept, whole = (int.from_bytes(data[at + o : at + o + 4], "little") for o in (8, 12))
        if kept < whole:
            return True
        at += 16 + kept
    return False
