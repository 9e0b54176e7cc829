# SPDX-License-Identifier: Apache-2.0
"""What the tests of kernels on hosts begin with."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source tree of a kernel, 6.12.117, and an empty cache."""
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    found = tmp_path / "linux"
    found.mkdir()
    makefile = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = Baby\n"
    (found / "Makefile").write_text(makefile, encoding="utf-8")
    (found / "Kconfig").write_text("# all\n", encoding="utf-8")
    return found
