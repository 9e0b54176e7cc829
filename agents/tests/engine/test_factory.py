# SPDX-License-Identifier: Apache-2.0
"""Which agents start no thread, so that one process can be several."""

from __future__ import annotations

import importlib

import pytest
from testctl_agent.engine import factory

USUAL = [("generator", "tgen"), ("collector", "capture"), ("collector", "tcp_info"), ("collector", "telemetry")]
PARAMETERS = [("host", "mtu"), ("host", "net.ipv4.tcp_sack"), ("port", "rate"), ("switch", "fate")]


def test_a_usual_point() -> None:
    assert factory.without_threads(USUAL, "ebpf", PARAMETERS)
    assert factory.without_threads([], "netem", [])


@pytest.mark.parametrize(
    ("tasks", "backend", "parameters"),
    [
        ([("generator", "probe")], "ebpf", []),
        ([("collector", "clock")], "ebpf", []),
        ([("generator", "somebodys")], "ebpf", []),
        ([], "somebodys", []),
        ([], "ebpf", [("host", "somebodys")]),
    ],
)
def test_what_may_start_one(tasks: list[tuple[str, str]], backend: str, parameters: list[tuple[str, str]]) -> None:
    assert not factory.without_threads([*USUAL, *tasks], backend, [*PARAMETERS, *parameters])


def test_all_tasks_that_are_threads_are_known() -> None:
    packages = {"generator": "testctl_agent.generators", "collector": "testctl_agent.collect"}
    found = {
        (kind, name)
        for kind, package in packages.items()
        for name in factory.own_tasks(kind)
        if {"ThreadTask", "threading"} & set(vars(importlib.import_module(f"{package}.{name}")))
    }
    assert found == factory.THREADED
