# SPDX-License-Identifier: Apache-2.0
"""A program between real devices.  root_devices.py is what runs, in a namespace that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.root
def test_devices(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_devices.py")) == "tags are right on the wire\n"
