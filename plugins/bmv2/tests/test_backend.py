# SPDX-License-Identifier: Apache-2.0
"""The back end: found by its word, and gone with all its parts when one of them fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testctl_agent.spec.errors import ProgramError
from testctl_agent.system.entry_points import BACKENDS
from testctl_bmv2 import backend


def test_it_is_found_by_its_word() -> None:
    assert BACKENDS.module("bmv2") is backend
    assert BACKENDS.distribution("bmv2") == "testctl-bmv2"


def test_it_leaves_nothing_when_it_can_not_be_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []

    class Part:
        """The process, and the session with it."""

        def __init__(self, name: str) -> None:
            self.name, self.address, self.thrift = name, "", None

        def close(self) -> None:
            left.remove(self.name)

    def part(name: str) -> Callable[..., Part]:
        return lambda *_: left.append(name) or Part(name)  # type: ignore[func-returns-value]

    def tables(*_: object, **__: object) -> None:
        assert left == ["process", "session"]
        raise ProgramError("no such table")

    monkeypatch.setattr(backend, "_release", lambda ports: None)
    monkeypatch.setattr(backend.p4info, "read", lambda path: None)
    monkeypatch.setattr(backend.simple_switch, "start", part("process"))
    monkeypatch.setattr(backend, "P4RuntimeDriver", part("session"))
    monkeypatch.setattr(backend, "TestbedTables", tables)
    with pytest.raises(ProgramError):
        backend.open_backend(("a",), {})
    assert left == []
