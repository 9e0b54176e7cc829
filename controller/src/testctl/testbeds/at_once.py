# SPDX-License-Identifier: Apache-2.0
"""Agents that are processes of their own in wall-clock time: where several are called, all at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from testctl.testbeds.agents import Agents


class AtOnce(Agents):
    """A subclass has `call`, which several threads make, each for another agent."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(names)
        self._pool = ThreadPoolExecutor(max(len(names), 1))

    def each(self, jobs: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        futures = {name: self._pool.submit(job) for name, job in jobs.items()}
        errors = [error for future in futures.values() if (error := future.exception())]
        if errors:
            raise errors[0]
        return {name: future.result() for name, future in futures.items()}

    def close(self) -> None:
        self._pool.shutdown()
