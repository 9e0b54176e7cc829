# SPDX-License-Identifier: Apache-2.0
"""Each lab has a processor of its own, as long as there are enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testctl.lab.cpu_pinning import own_processor, spread

SOME = [10_000 + 2 * os.getpid(), 10_001 + 2 * os.getpid()]
"""Nobody's: no other test takes them, and whether there are such processors is not asked."""
HOLD = f"""
from testctl.lab.cpu_pinning import own_processor
with own_processor({SOME[:1]}) as cpu:
    print(cpu, flush=True)
    input()
"""


def test_labs_at_once_have_different_ones_and_the_third_has_none() -> None:
    with own_processor(SOME) as one, own_processor(SOME) as other:
        assert {one, other} == set(SOME)
        with own_processor(SOME) as third:
            assert third is None
    with own_processor(SOME) as again:
        assert again in SOME


def test_it_is_one_that_this_process_may_run_on() -> None:
    with own_processor() as cpu:
        assert cpu is None or cpu in os.sched_getaffinity(0)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_dead_have_none(how: signal.Signals) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == f"{SOME[0]}\n".encode()
    with own_processor(SOME[:1]) as cpu:
        assert cpu is None
    holder.send_signal(how)
    holder.communicate()
    with own_processor(SOME[:1]) as cpu:
        assert cpu == SOME[0]


@pytest.mark.parametrize(
    ("siblings", "order"),
    [
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, [2, 0, 3, 1]),
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, [1, 0, 3, 2]),
        ({0: "0", 1: "1"}, [1, 0]),
        ({}, [3, 2, 1, 0]),
    ],
)
def test_cores_come_before_threads(tmp_path: Path, siblings: dict[int, str], order: list[int]) -> None:
    for cpu, said in siblings.items():
        where = tmp_path / f"cpu{cpu}" / "topology"
        where.mkdir(parents=True)
        (where / "thread_siblings_list").write_text(f"{said}\n", encoding="ascii")
    assert spread(sorted(order), tmp_path) == order
