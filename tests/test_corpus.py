# SPDX-License-Identifier: Apache-2.0
"""Every bug of plans/corpus: its plan passes in the lab, and fails when the bug is brought back."""

from __future__ import annotations

import json

import pytest
from testctl.cli.main import app
from testctl.lab.source import tarball_of
from typer.testing import CliRunner

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(tarball_of("6.12") is None, reason="linux-source-6.12 is not installed"),
]


def test_each_is_detected_and_nothing_is_without_it() -> None:
    result = CliRunner().invoke(app, ["corpus", "--json"], catch_exceptions=False)
    entries = json.loads(result.stdout)["bugs"]
    assert {entry["name"]: entry["without"] for entry in entries if entry["without"]} == {}
    assert {entry["name"]: entry["verdict"] for entry in entries if not entry["detected"]} == {}
    assert result.exit_code == 0
