# SPDX-License-Identifier: Apache-2.0
"""Congestion controls that can't be: each is refused with the reason, while it is compiled or before."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.cc.compile import BPF, HOST, Target, compiled
from testctl_agent.cc.host import Algorithm
from testctl_agent.cc.struct_ops import unavailable
from testctl_agent.spec.errors import ProgramError

from agents.tests.cc.sources import SOURCES, write

TEXT = """
#include "testctl_cc.h"
struct bad_state { u32 all[18]; };
static __maybe_unused void bad_ack(void *state, const struct cc_event *e, struct cc_window *w) { w->cwnd++; }
static __maybe_unused u32 bad_loss(void *state, const struct cc_event *e, const struct cc_window *w) { return 2; }
static void bad_step(void *state, const struct cc_event *e, struct cc_window *w) { w->cwnd = 1; }
static const struct cc_growth bad_growth __maybe_unused = { .ack = bad_ack, .loss = bad_loss };
struct rest_state { u32 none; };
static const struct cc_recovery rest_recovery __maybe_unused = { .enter = bad_step, .ack = bad_step };
TESTCTL_CC_RECOVERY(bad, bad, rest)
"""


@pytest.mark.parametrize("target", [HOST, BPF], ids=["host", "bpf"])
def test_the_text_itself_compiles(tmp_path: Path, target: Target) -> None:
    assert compiled(write(tmp_path, TEXT), target).exists()


@pytest.mark.parametrize("target", [HOST, BPF], ids=["host", "bpf"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (".ack = bad_ack, ", "", "a congestion control needs the operation `ack`"),
        (", .loss = bad_loss", "", "a congestion control needs the operation `loss`"),
        (".enter = bad_step, ", "", "a loss recovery needs the operation `enter`"),
        (", .ack = bad_step", "", "a loss recovery needs the operation `ack`"),
        ("all[18]", "all[19]", "bad_state is larger than the 72 bytes that the kernel leaves"),
        ("rest_state { u32 none; }", "rest_state { u32 all[5]; }", "rest_state is larger than the 16 bytes"),
        ("TESTCTL_CC_RECOVERY(bad,", "TESTCTL_CC_RECOVERY(a_name_of_16_let,", "a name of at most 15 characters"),
        ("w->cwnd++;", "w->window++;", "window"),
        ("return 2;", "", "return"),
    ],
)
def test_refused_by_the_compiler(tmp_path: Path, target: Target, old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(ProgramError, match=r"tcp_bad\.c: does not compile for ") as caught:
        compiled(write(tmp_path, TEXT.replace(old, new)), target)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["bad.c", "tcp_Bad.c", "tcp_.c", "tcp_1st.c", "tcp_sixteen_letters_.c"])
def test_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProgramError, match="at most 15 lower-case letters"):
        compiled(write(tmp_path, TEXT, name), HOST)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="can't be read: No such file"):
        compiled(tmp_path / "tcp_none.c", HOST)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_file_says_the_name(source: Path) -> None:
    assert f"tcp_{Algorithm(source).name}" == source.stem


def test_kernels_that_lack_something(tmp_path: Path) -> None:
    assert "has no BTF" in unavailable(tmp_path)
    btf = tmp_path / "sys/kernel/btf/vmlinux"
    btf.parent.mkdir(parents=True)
    btf.write_bytes(b"\x9f\xeb\x01\x00 no such type")
    assert "has no struct_ops for congestion controls" in unavailable(tmp_path)
    btf.write_bytes(b"\x9f\xeb\x01\x00 bpf_struct_ops_tcp_congestion_ops\0")
    assert unavailable(tmp_path) == ""
    jit = tmp_path / "proc/sys/net/core/bpf_jit_enable"
    jit.parent.mkdir(parents=True)
    jit.write_text("0\n")
    assert "has its BPF JIT off" in unavailable(tmp_path)
