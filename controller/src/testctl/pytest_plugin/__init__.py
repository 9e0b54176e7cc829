# SPDX-License-Identifier: Apache-2.0
"""`pytest --plan PLAN`: every point of a plan is a test.  Without --plan it adds its options and nothing else."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("testctl", "plans of testctl")
    group.addoption(
        "--plan",
        dest="testctl_plans",
        action="append",
        default=[],
        metavar="PLAN",
        help="run each of its points as a test",
    )
    group.addoption(
        "--testctl-out",
        dest="testctl_out",
        metavar="DIR",
        help="the run's directory (several plans: one each below it; default: results/<time>-<plan>)",
    )
    group.addoption(
        "--testctl-testbed",
        dest="testctl_testbed",
        default="lab",
        metavar="lab|netns|INVENTORY",
        help="where the points run",
    )
    group.addoption(
        "--testctl-set",
        dest="testctl_sets",
        action="append",
        default=[],
        metavar="ENTITY.PARAM=VALUE",
        help="replace or add a tuple",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("testctl_plans"):
        from testctl.pytest_plugin.collect import PlanSession

        config.pluginmanager.register(PlanSession(config), "testctl-plans")
