# SPDX-License-Identifier: Apache-2.0
"""Records of made-up conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import Conversation, write_point

Load = Callable[..., Records]


@pytest.fixture
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """The records of a conversation, by way of its captures; its sender sends tail loss probes if `probes`,
    and has its `own` settings."""

    def made(
        talk: Conversation, *, probes: bool = False, own: Mapping[str, int] | None = None, **given: Any
    ) -> Records:
        where: Path = tmp_path_factory.mktemp("point")
        settings = {"net.ipv4.tcp_early_retrans": 3 * probes, **(own or {})}
        write_point(where, talk.captures(), settings={"sender": settings}, **given)
        return load_raw(where)

    return made
