# SPDX-License-Identifier: Apache-2.0
"""The word after --testbed: a testbed's name, a path, or neither."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest
from testctl.testbeds import testbed
from testctl.testbeds.choose import find
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import entry_points


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points that are installed."""
    installed: list[EntryPoint] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [e for e in installed if e.group == group])
    entry_points.forget()
    yield installed
    entry_points.forget()


@pytest.mark.parametrize("word", ["labb", ""])
def test_a_word_that_is_no_testbed(word: str) -> None:
    with pytest.raises(
        PlanError, match=rf"^--testbed: want lab, netns or an Ansible inventory; got '{word}', which is no"
    ):
        find(word)


def test_a_testbed_of_another_distribution(only: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module gets the word."""
    module = ModuleType("my_testbed")
    module.testbed = lambda word: Mock(testbed.Testbed, word=word)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_testbed", module)
    only.append(EntryPoint("mine", "my_testbed", "testctl.testbeds"))
    assert find("mine").word == "mine"  # type: ignore[attr-defined]


def test_a_testbed_that_lacks_methods(only: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_testbed")
    module.testbed = lambda word: Mock(["check", "places", "requirements"])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_testbed", module)
    only.append(EntryPoint("mine", "my_testbed", "testctl.testbeds"))
    with pytest.raises(TestbedError, match=r"^--testbed mine: want the methods of .*Testbed; lacking: ready, interru"):
        find("mine")


def test_a_rack_without_the_distribution_that_has_racks(only: list[EntryPoint], tmp_path: Path) -> None:
    only.append(EntryPoint("netns", "testctl.testbeds.netns", "testctl.testbeds"))
    words = r"^--testbed: want netns; got '/.*': an inventory needs the distribution testctl-rack, which is not in"
    with pytest.raises(TestbedError, match=words):
        find(str(tmp_path))
