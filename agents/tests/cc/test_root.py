# SPDX-License-Identifier: Apache-2.0
"""Congestion controls as BPF struct_ops of the running kernel.  root_struct_ops.py is what runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.cc.compile import name_of
from testctl_agent.cc.struct_ops import Registered, available, unavailable, unregister
from testctl_agent.spec.errors import TestbedError

from agents.tests.cc.sources import SOURCES, write

pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-")]


def test_struct_ops(in_namespace: Callable[..., str]) -> None:
    """Each is available, carries a transfer, decides as its code does here, and goes."""
    names = [name_of(source) for source in SOURCES]
    said = in_namespace(Path(__file__).with_name("root_struct_ops.py"), *names, timeout_s=300)
    assert said.endswith("all is as before\n")


BAD = """
#include "testctl_cc.h"
struct bad_state { u32 none; };
static void bad_ack(void *state, const struct cc_event *e, struct cc_window *w) { w->cwnd = *((u32 *)state + 1000); }
static u32 bad_loss(void *state, const struct cc_event *e, const struct cc_window *w) { return 2; }
static const struct cc_growth bad_growth = { .ack = bad_ack, .loss = bad_loss };
TESTCTL_CC(bad, bad)
"""


def test_refused_by_the_verifier(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"congestion control bad \(.*tcp_bad\.c\): .*the kernel refuses it"):
        Registered(write(tmp_path, BAD))


def test_a_name_that_is_taken() -> None:
    with pytest.raises(TestbedError, match="cubic: this kernel has a congestion control of that name already"):
        Registered(Path("tcp_cubic.c"))


def test_what_a_killed_process_left_is_removed() -> None:
    source = next(source for source in SOURCES if source.name == "tcp_areno.c")
    argv = [sys.executable, "-m", "testctl_agent.cc", "register", str(source)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("areno is registered")
        process.kill()
    assert "areno" in available()
    with pytest.raises(TestbedError, match="unregister areno"):
        Registered(source)
    unregister("areno")
    assert "areno" not in available()
    with pytest.raises(TestbedError, match="none of that name is registered as BPF"):
        unregister("areno")
