# SPDX-License-Identifier: Apache-2.0
"""The eBPF switch on the running kernel.  root_ebpf.py is what runs, in a namespace that goes with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.root
def test_ebpf(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_ebpf.py")).endswith("all is as before\n")


@pytest.mark.alone
@pytest.mark.skipif(os.cpu_count() == 1, reason="needs two processors")
def test_two_processors_count_every_packet_once(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_processors.py")).endswith("all counted\n")
