# SPDX-License-Identifier: Apache-2.0
"""Host parameters on the running kernel.  root_host.py is what runs, in namespaces that go with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.root
def test_host(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_host.py")).endswith("all is as before\n")


@pytest.mark.root
def test_initcwnd_of_routes_with_several_nexthops(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_initcwnd.py")).endswith("all is as before\n")
