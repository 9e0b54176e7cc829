# SPDX-License-Identifier: Apache-2.0
"""A lab's network is that of `ip` and `ethtool`, though the lab starts neither of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("lab_network.py").read_text(encoding="utf-8")


@pytest.mark.lab
@pytest.mark.parametrize(
    ("backend", "ipv6"), [pytest.param("ebpf", "", marks=pytest.mark.long), ("netem", ""), ("ebpf", "yes")]
)
def test_the_labs_own_code_makes_the_network_that_the_programs_make(
    in_lab: Callable[..., str], backend: str, ipv6: str
) -> None:
    programs, own = map(json.loads, in_lab(SCRIPT, BACKEND=backend, IPV6=ipv6).splitlines()[-2:])
    assert programs.keys() == {"h1", "h2", "h3", "s1", "s2"}
    assert [link["ifname"] for link in programs["s2"]["links"]] >= ["lo", "h2"]
    for name, found in programs.items():
        for what, want in found.items():
            assert own[name][what] == want, f"{name}: {what}"
    assert [line["dst"] for line in own["h2"]["routes ipv6"] if line["dst"] == "fd00::/64"] == ["fd00::/64"] * bool(
        ipv6
    )
    for name in ("h1", "h2", "h3"):
        device = next(line for line in own[name]["sent"].splitlines() if "eth0" in line)
        assert set(device.partition(":")[2].split()) == {"0"}, "nothing was sent unasked"
