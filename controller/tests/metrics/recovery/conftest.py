# SPDX-License-Identifier: Apache-2.0
"""Records of made-up conversations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import Conversation, write_point

Load = Callable[..., Records]


@pytest.fixture
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """The records of a conversation, by way of its captures; its sender sends tail loss probes if `probes`."""

    def made(talk: Conversation, *, probes: bool = False, **given: Any) -> Records:
        where: Path = tmp_path_factory.mktemp("point")
        write_point(where, talk.captures(), settings={"sender": {"net.ipv4.tcp_early_retrans": 3 * probes}}, **given)
        return load_raw(where)

    return made
