# SPDX-License-Identifier: Apache-2.0
"""The small P4 programs, in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from plugins.p4c_ebpf.tests.documents import Make, loaded
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.program_files import PROGRAMS


@pytest.fixture
def target() -> Iterator[Target]:
    """target("router"): the program loaded; it is gone after the test."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(closing(EbpfTarget(PROGRAMS / f"{name}.json")))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Make]:
    """made(document): the program of a document written by a test, loaded; it is gone after the test."""
    with ExitStack() as stack:
        yield lambda document: stack.enter_context(closing(loaded(tmp_path, document)))
