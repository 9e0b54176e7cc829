# SPDX-License-Identifier: Apache-2.0
"""A function as a Task: its errors are the task's, and it is stopped by an event."""

from __future__ import annotations

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.task import Result
from testctl_agent.tasks.thread_task import Running, ThreadTask


def until_stopped(running: Running) -> Result:
    running.ready.set()
    assert running.stop.wait(30)
    return {"done": True}


def test_start_and_stop() -> None:
    task = ThreadTask("it", until_stopped)
    assert not task.poll()
    with pytest.raises(TestbedError, match="it: has not started"):
        task.result()
    task.start()
    assert not task.wait(0.01)
    with pytest.raises(TestbedError, match="it: has not ended"):
        task.result()
    task.stop()
    assert task.result() == {"done": True}
    assert task.files() == []


@pytest.mark.parametrize("error", [TestbedError("no such address"), OverflowError("no such address")])
def test_an_error_before_it_is_ready_is_one_of_start(error: Exception) -> None:
    def fail(running: Running) -> Result:
        raise error

    with pytest.raises(TestbedError, match="it: no such address"):
        ThreadTask("it", fail).start()


def test_an_error_afterwards_is_one_of_the_result() -> None:
    def fail(running: Running) -> Result:
        running.ready.set()
        running.stop.wait(30)
        raise OSError(5, "Input/output error")

    task = ThreadTask("it", fail)
    task.start()
    task.stop()
    with pytest.raises(TestbedError, match=r"it: .*Input/output error"):
        task.result()


def test_one_that_is_never_ready_is_stopped() -> None:
    def never(running: Running) -> Result:
        running.stop.wait(30)
        return {}

    task = ThreadTask("it", never, ready_s=0.01)
    with pytest.raises(TestbedError, match=r"it: was not ready within 0\.01 s"):
        task.start()
    assert task.poll()
