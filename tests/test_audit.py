# SPDX-License-Identifier: Apache-2.0
"""Packages are pinned for users and for developers, bills of materials name them all, and an audit needs advisories."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILES = {"sbom": "constraints"} | {f"sbom-{of}": f"constraints-{of}" for of in ("audit", "dev", "docs")}
installed = pytest.mark.skipif(not (ROOT / ".venv-audit" / ".done").exists(), reason="tools/audit --sbom installs it")


def audit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "tools" / "audit"), *words]
    return subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, check=False)


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE))


@installed
def test_bills_of_materials() -> None:
    done = audit("--sbom")
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in ROOT.glob("constraints*.txt")} == set(FILES.values())
    for sbom, file in FILES.items():
        found = json.loads((ROOT / "build" / f"{sbom}.cdx.json").read_text(encoding="utf-8"))
        assert found["bomFormat"] == "CycloneDX"
        assert {component["name"]: component["version"] for component in found["components"]} == pinned(file)


@installed
def test_without_advisories() -> None:
    nowhere = "http://127.0.0.1:9"
    done = audit(http_proxy=nowhere, https_proxy=nowhere, HTTPS_PROXY=nowhere, PIP_INDEX_URL=nowhere)
    assert done.returncode == 4, done.stdout + done.stderr
    for file in FILES.values():
        assert f"{file}.txt: advisories could not be fetched for" in done.stderr
    assert done.stderr.count("this is no audit") == len(FILES)
    assert "No known" not in done.stdout


def test_what_users_install_is_what_they_need() -> None:
    """constraints.txt pins the distributions' requirements, with all their extras, and those of requirements.in."""
    waiting, needed = [], {}
    for file in [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        extras = project.get("optional-dependencies", {})
        waiting += [*project.get("dependencies", []), *(each for extra in extras.values() for each in extra)]
    waiting += re.findall(r"^[\w-]+", (ROOT / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE)
    while waiting:
        wanted = Requirement(waiting.pop())
        name, extras = canonicalize_name(wanted.name), {"", *wanted.extras}
        if extras <= needed.get(name, set()):
            continue
        needed[name] = needed.get(name, set()) | extras
        for text in metadata.requires(name) or []:
            marker = Requirement(text).marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(text)
    users = {canonicalize_name(name) for name in pinned("constraints")}
    assert users == {name for name in needed if not name.startswith("testctl")}
    assert not users & {canonicalize_name(name) for name in pinned("constraints-dev")}
