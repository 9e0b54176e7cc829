# SPDX-License-Identifier: Apache-2.0
"""BMv2 as the switch on the running kernel.  bmv2_switch.py is what runs, in namespaces that go with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.switch.drivers import schema, simple_switch

MISSING = simple_switch.unavailable() or schema.unavailable()


@pytest.mark.root
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_switch(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).with_name("bmv2_switch.py"), timeout_s=300)
    assert said.endswith("all is as before\n")
