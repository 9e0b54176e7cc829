# SPDX-License-Identifier: Apache-2.0
"""Bills of materials name every pinned package, and an audit without advisories is not called a good one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {"sbom": "constraints", "sbom-docs": "constraints-docs", "sbom-audit": "constraints-audit"}
pytestmark = pytest.mark.skipif(not (ROOT / ".venv-audit" / ".done").exists(), reason="tools/audit --sbom installs it")


def audit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "tools" / "audit"), *words]
    return subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, check=False)


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE))


def test_bills_of_materials() -> None:
    done = audit("--sbom")
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in ROOT.glob("constraints*.txt")} == set(FILES.values())
    for sbom, file in FILES.items():
        found = json.loads((ROOT / "build" / f"{sbom}.cdx.json").read_text(encoding="utf-8"))
        assert found["bomFormat"] == "CycloneDX"
        assert {component["name"]: component["version"] for component in found["components"]} == pinned(file)


def test_without_advisories() -> None:
    nowhere = "http://127.0.0.1:9"
    done = audit(http_proxy=nowhere, https_proxy=nowhere, HTTPS_PROXY=nowhere, PIP_INDEX_URL=nowhere)
    assert done.returncode == 4, done.stdout + done.stderr
    for file in FILES.values():
        assert f"{file}.txt: advisories could not be fetched for" in done.stderr
    assert done.stderr.count("this is no audit") == len(FILES)
    assert "No known" not in done.stdout
