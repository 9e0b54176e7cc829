# SPDX-License-Identifier: Apache-2.0
"""Ports on the lab's kernels: netem's (lab_port.py runs inside) and those of ebpf (lab_ebpf.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.switch import testbed_object


@pytest.mark.lab
def test_port(in_lab: Callable[..., str]) -> None:
    said = in_lab(Path(__file__).with_name("lab_port.py").read_text())
    assert said.endswith("all is as before\n")


@pytest.mark.lab
def test_ebpf_ports(in_lab: Callable[..., str], tmp_path: Path) -> None:
    """Departures are those of an ideal link exactly, recorded by either; packets leave within 1 us of them."""
    text = Path(__file__).with_name("lab_ebpf.py").read_text()
    where = tmp_path / "recorded"
    where.mkdir()
    said = in_lab(text, TESTCTL_PROGRAM=str(testbed_object.path()), TESTCTL_OUT=str(where))
    assert said.count("ns late") == 10
    assert said.endswith("all is as before\n")
