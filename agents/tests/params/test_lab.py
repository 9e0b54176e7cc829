# SPDX-License-Identifier: Apache-2.0
"""Host parameters on the lab's kernels.  lab_host.py is what runs inside; it also runs by itself as an init's child."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.lab
def test_host(in_lab: Callable[..., str]) -> None:
    said = in_lab(Path(__file__).with_name("lab_host.py").read_text())
    assert "data marking is exact" in said
    assert said.endswith("all is as before\n")


@pytest.mark.lab
def test_interrupts(in_lab: Callable[..., str]) -> None:
    """Coalescing and jitter, of a device with NAPI and of one without."""
    said = in_lab(Path(__file__).with_name("lab_interrupts.py").read_text())
    assert said.endswith("interrupts are as late as they should be\n")


@pytest.mark.lab
def test_default_qdisc(in_lab: Callable[..., str]) -> None:
    """A default fq_codel made while the MTU is another one would keep a quantum of that MTU."""
    said = in_lab(Path(__file__).with_name("lab_default_qdisc.py").read_text())
    assert said.endswith("the default qdisc is as before\n")
