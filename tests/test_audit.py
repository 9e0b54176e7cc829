# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names every pinned package, and an audit without advisories is not called a good one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNED = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
pytestmark = pytest.mark.skipif(not (ROOT / ".venv-audit" / ".done").exists(), reason="tools/audit --sbom installs it")


def audit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "tools" / "audit"), *words]
    return subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_bill_of_materials() -> None:
    done = audit("--sbom")
    assert done.returncode == 0, done.stderr
    found = json.loads((ROOT / "build" / "sbom.cdx.json").read_text(encoding="utf-8"))
    assert found["bomFormat"] == "CycloneDX"
    assert {component["name"]: component["version"] for component in found["components"]} == PINNED


def test_without_advisories() -> None:
    nowhere = "http://127.0.0.1:9"
    done = audit(http_proxy=nowhere, https_proxy=nowhere, HTTPS_PROXY=nowhere, PIP_INDEX_URL=nowhere)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "this is no audit" in done.stderr
    assert "No known" not in done.stdout
