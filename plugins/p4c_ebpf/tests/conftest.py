# SPDX-License-Identifier: Apache-2.0
"""The small P4 programs, in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugins.p4c_ebpf.tests.documents import Document, Make, loaded
from plugins.p4c_ebpf.tests.harness import EbpfTarget

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def target() -> Iterator[Callable[[str], EbpfTarget]]:
    """target("router"): the program loaded; it is gone after the test."""
    made: list[EbpfTarget] = []

    def make(name: str) -> EbpfTarget:
        made.append(EbpfTarget(PROGRAMS / f"{name}.json"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Make]:
    """made(document): the program of a document written by a test, loaded; it is gone after the test."""
    found: list[EbpfTarget] = []

    def make(one: Document) -> EbpfTarget:
        found.append(loaded(tmp_path, one))
        return found[-1]

    yield make
    for one in found:
        one.close()
