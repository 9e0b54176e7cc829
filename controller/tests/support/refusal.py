# SPDX-License-Identifier: Apache-2.0
"""The error that refuses what a user gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testctl_agent.spec.errors import PlanError


def refusal(call: Callable[..., object], *given: Any, **more: Any) -> str:
    """The text of the PlanError that a call raises."""
    with pytest.raises(PlanError) as error:
        call(*given, **more)
    return str(error.value)
