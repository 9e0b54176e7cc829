# SPDX-License-Identifier: Apache-2.0
"""An agent that was taken over, answering through mutual TLS: its point is lost, with one sentence, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testctl.testbeds.point_runner import drift

from plugins.rack.tests.rack import hostile
from plugins.rack.tests.rack.bed import Bed
from plugins.rack.tests.rack.test_faults import points, small_disk

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]
LEASE_S, PATIENT_S = 2.0, 60.0
"""Of a lease where its loss is what is tested, and where a busy machine must not lose it."""
SILENT_S = 20.0
"""How long an agent that renews its lease may be silent."""
LONGEST = 4100
"""Characters that a reason may have."""
SAYS = {
    "an endless file": "to stay free; what comes would leave",
    "names of files": "want the name of a file; got '../../../../planted-by-an-agent'",
    "a huge result": "message larger than max",
    "a deep result": "want a result in JSON; got '[[[",
    "many words": "bulk-server on receiver: xxxx",
    "escapes": "bulk-server on receiver: \ufffd]0;mine",
    "facts": "Attestation.facts, a name: want a name, printable",
    "another value": "agent receiver: receiver, mtu: want 1400; read back 9000",
    "a value less": "; read back nothing",
    "no answer to anything": "did not answer in time; its lease is lost",
    "no answer to anything, and a slow restore": "did not answer in time; its lease is lost",
    "no answer but to the lease": "did not answer in time",
}


FIRST = {
    "a kernel to have again": "Description.notes[kernel after this boot]: want [A-Z",
    "a kernel that runs": "Description.kernel: want [A-Z",
    "notes": "",
    "a fact without a device": "want a fact, such as 'link eth0 mtu'; got 'link '",
    "a token": "Lease.token: want [0-9a-f]",
}


def files(rack: Bed) -> set[Path]:
    """What is beside the results, but what the agents themselves write."""
    own = {
        "results",
        "calls",
        *(node.name for node in rack.rack.nodes),
        *(f"{node.name}.log" for node in rack.rack.nodes),
    }
    return {path for path in rack.where.rglob("*") if path.relative_to(rack.where).parts[0] not in own}


@pytest.mark.parametrize("how", SAYS)
def test_a_hostile_agent(rack: Bed, how: str) -> None:
    """beta's agent, in the first of two points."""
    before, there = rack.attest(), files(rack)
    rack.kill("beta")
    rack.start("beta", sys.executable, hostile.__file__, how)
    with small_disk(rack.where / "results", "1500m"):
        call_s = SILENT_S if how == "no answer but to the lease" else 120.0
        lease_s = LEASE_S if how.startswith("no answer") else PATIENT_S
        told = rack.ends(rack.run(lease_s=lease_s, call_s=call_s), 3, timeout_s=400)
        newest = (rack.where / "results" / "latest").resolve()
        first, second = points(rack)
        kept = [json.loads(path.read_text()) for path in newest.glob("points/*/verdict.json")]
    assert second["verdict"] == "pass", second["reason"]
    assert first["verdict"] in ("broken", "invalid")
    reason = first["reason"]
    length = len(reason)
    assert length <= LONGEST
    assert SAYS[how] in reason
    assert "receiver" in reason or "host beta" in reason
    assert not any(line.startswith("second line") for line in told.splitlines())
    for text in (told, reason, *(one["reason"] for one in kept)):
        assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert files(rack) == there
    assert not list(Path("/tmp").glob(f"{hostile.PLANTED}*"))
    assert not list(rack.where.parent.rglob(f"{hostile.PLANTED}*"))
    others = {name: facts for name, facts in before.items() if name != "beta"}
    assert drift(others, rack.attest()) == []


@pytest.mark.parametrize("how", FIRST)
def test_an_agent_that_is_hostile_from_the_first_call_on(rack: Bed, how: str) -> None:
    """Every command that asks it ends with one sentence about it, or works."""
    there = files(rack)
    rack.kill("beta")
    rack.start("beta", sys.executable, hostile.__file__, how)
    code = 3 if FIRST[how] else 0
    told = [rack.ends(rack.run(lease_s=PATIENT_S), code)]
    for command in ("status", "restore"):
        words = [*rack.command(command), "--testbed", str(rack.inventory)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 3), done.stderr
        told.append(done.stdout + done.stderr)
    assert FIRST[how] in "".join(told)
    for text in told:
        assert "a bug" not in text
        assert "Traceback" not in text
        assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert files(rack) == there
