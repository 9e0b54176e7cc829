# SPDX-License-Identifier: Apache-2.0
"""plans/response_functions.yaml sweeps the congestion controls that the lab has, all of them and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

PLAN = Path(__file__).parents[1] / "plans" / "response_functions.yaml"


@pytest.mark.lab
def test_every_congestion_control_is_swept(in_lab: Callable[..., str]) -> None:
    said = in_lab("print(open('/proc/sys/net/ipv4/tcp_available_congestion_control').read())")
    plan = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    (swept,) = (value for entity, parameter, value in plan["tuples"] if (entity, parameter) == ("hosts", "cc"))
    assert sorted(swept) == sorted(said.split())
    drawn = [name for figure in plan["figures"] for name in figure["when"]["hosts.cc"]]
    alike = {"dctcp_bug", "dctcp_resched", "dctcp_ect1"}
    assert set(swept) - set(drawn) == alike, "which differ from dctcp in the receiver, or in the ECN field, only"
