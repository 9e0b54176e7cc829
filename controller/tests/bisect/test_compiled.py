# SPDX-License-Identifier: Apache-2.0
"""Which changed files make another kernel of the lab."""

from __future__ import annotations

import pytest
from testctl.bisect.compiled import relevant

SOURCES = {"net/ipv4/tcp.c", "include/net/tcp.h", "tools/lib/bpf/relo_core.c"}


@pytest.mark.parametrize(
    "name",
    ["net/ipv4/tcp.c", "include/net/tcp.h", "tools/lib/bpf/relo_core.c", "net/ipv4/Kconfig", "Makefile",
     "arch/um/Makefile", "arch/x86/entry/syscalls/syscall_64.tbl", "scripts/basic/fixdep.c",
     "arch/um/configs/x86_64_defconfig", "arch/Kconfig", "kernel/time/timeconst.bc"],
)  # fmt: skip
def test_these_do(name: str) -> None:
    assert relevant([name], SOURCES) == [name]


@pytest.mark.parametrize(
    "name",
    ["net/sctp/socket.c", "include/net/sctp/sctp.h", "Documentation/networking/ip-sysctl.rst", "Documentation/Kconfig",
     "MAINTAINERS", "arch/arm64/Kconfig", "arch/arm64/kernel/head.S", "tools/testing/selftests/net/Makefile",
     "rust/kernel/lib.rs", "samples/bpf/Makefile", "drivers/net/dsa/README.md"],
)  # fmt: skip
def test_these_do_not(name: str) -> None:
    assert relevant([name], SOURCES) == []
